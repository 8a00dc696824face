"""Random walks on all graphs of a collection at once, and the documents of sub2vec."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import derive_seed
from graphsc.data.arrays import pointer, smallest_unsigned
from graphsc.data.collection import GraphCollection
from graphsc.kernels.doc2vec import Documents
from graphsc.kernels.weisfeiler_lehman import splitmix64

Property = Literal["neighbourhood", "structure"]
# Upper ends of the ranges of degree / nodes that share a letter; the last range ends at 1.
DEGREE_RANGES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75)
LETTERS = len(DEGREE_RANGES) + 1  # words below are letters, words from here on are node ids


def random_walks(
    collection: GraphCollection, steps: int, seed: int, words: NDArray[np.unsignedinteger]
) -> NDArray[np.unsignedinteger]:
    """One random walk on each graph that has nodes.

    A walk starts at a uniformly drawn node and moves to a uniformly drawn neighbour, along edges in either
    direction; from a node without neighbours it restarts. The draws depend on the seed and the graph only,
    not on the other graphs of the collection.

    Args:
        collection: the graphs.
        steps: the number of nodes of a walk.
        seed: of the walks.
        words: the word of each node of the collection; the result has those along each walk, walks x steps.
    """
    collection.verify_hashes()
    sizes = np.diff(collection.node_ptr)
    walking = np.flatnonzero(sizes)
    first, size = collection.node_ptr[walking], sizes[walking]
    key = _graph_keys(collection)[walking] + np.uint64(derive_seed(seed, "walks"))
    row_ptr, neighbours = _neighbours(collection)
    walks = np.empty((steps, len(walking)), words.dtype)
    node = first + _below(splitmix64(key, 0), size)
    for step in range(steps):
        walks[step] = words[node]
        bits = splitmix64(key, step + 1)
        begin = row_ptr[node]
        degree = row_ptr[node + 1] - begin
        isolated = degree == 0
        edge = np.where(isolated, 0, begin + _below(bits, degree))
        neighbour = neighbours[edge] if len(neighbours) else edge
        node = first + np.where(isolated, _below(bits, size), neighbour)
    return walks.T


def walk_documents(
    collection: GraphCollection, steps: int, seed: int, prop: Property, id_share: float = 0.5
) -> Documents:
    """The random walk of each graph as a document; a graph without nodes has an empty one.

    Args:
        collection: the graphs.
        steps: the number of words of a document.
        seed: of the walks.
        prop: "neighbourhood" for the ids of the visited nodes; "structure" for a walk of `id_share` times
            the steps in ids, followed by one in letters, which stand for ranges of degree / nodes.
        id_share: see `prop`.
    """
    sizes = np.diff(collection.node_ptr)
    dtype = smallest_unsigned(int(sizes.max(initial=0)) + LETTERS)
    ids = np.arange(collection.num_nodes) - np.repeat(collection.node_ptr[:-1], sizes) + LETTERS
    letters = degree_letters(collection)
    id_steps = steps if prop == "neighbourhood" else int(id_share * steps)
    parts = [
        random_walks(collection, id_steps, derive_seed(seed, "ids"), ids.astype(dtype)),
        random_walks(collection, steps - id_steps, derive_seed(seed, "letters"), letters.astype(dtype)),
    ]
    words = np.concatenate(parts, axis=1).ravel()
    return Documents(words, pointer(np.where(sizes > 0, steps, 0)))


def degree_letters(collection: GraphCollection) -> NDArray[np.int64]:
    """The letter of each node: the range of its degree as a share of the graph's nodes; (0, 0.05] is 0."""
    sizes = np.diff(collection.node_ptr)
    share = collection.degrees / np.repeat(sizes, sizes)
    letters: NDArray[np.int64] = np.searchsorted(DEGREE_RANGES, share, side="left")
    return letters


def _below(bits: NDArray[np.uint64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
    """Random bits to integers below a bound: the upper 32 bits as a share of it."""
    scaled = (bits >> np.uint64(32)) * bound.astype(np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


def _graph_keys(collection: GraphCollection) -> NDArray[np.uint64]:
    """A hash of the size and the numbered edges of each graph."""
    source, destination = collection.edge_index.astype(np.uint64)
    sums = np.zeros(collection.num_edges + 1, np.uint64)
    np.cumsum(splitmix64((source << np.uint64(32)) | destination, 0), out=sums[1:])
    edges = sums[collection.edge_ptr[1:]] - sums[collection.edge_ptr[:-1]]
    return splitmix64(edges + np.diff(collection.node_ptr).astype(np.uint64), 1)


def _neighbours(collection: GraphCollection) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """The neighbours of each node in either direction, by local id, as CSR: row pointers and neighbours."""
    first = np.repeat(collection.node_ptr[:-1], np.diff(collection.edge_ptr))
    source, destination = collection.edge_index
    node = first + destination
    neighbours: NDArray[np.integer] = source
    if not collection.undirected:
        # A pair may come from an edge and from its opposite; it counts once.
        width = int(np.diff(collection.node_ptr).max(initial=1))
        back = (first + source) * width + destination
        node, neighbours = np.divmod(np.unique(np.concatenate([node * width + source, back])), width)
    return pointer(np.bincount(node, minlength=collection.num_nodes)), neighbours
