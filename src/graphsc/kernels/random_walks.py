"""Random walks on every graph of a collection at once, and the documents sub2vec makes of them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import derive_seed
from graphsc.data.arrays import pointer, smallest_unsigned
from graphsc.data.collection import GraphCollection
from graphsc.kernels.doc2vec import Documents
from graphsc.kernels.weisfeiler_lehman import mix

Property = Literal["neighbourhood", "structure"]
# Upper ends of the ranges of degree / nodes that share a letter; the last range ends at 1.
DEGREE_RANGES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 0.75)
LETTERS = len(DEGREE_RANGES) + 1  # words below are letters, words from here on are node ids


def random_walks(
    collection: GraphCollection, steps: int, seed: int, words: NDArray[np.unsignedinteger]
) -> NDArray[np.unsignedinteger]:
    """One walk of `steps` nodes on each graph with nodes, told by the `words` of its nodes: walks x steps.

    It starts at any node and goes on to any neighbour, each with the same chance, along an edge in either
    direction; from a node without neighbours it starts anew. Draws depend on the seed and on the graph
    itself, never on the graphs beside it.
    """
    collection.verify_hashes()
    sizes = np.diff(collection.node_ptr)
    walking = np.flatnonzero(sizes)
    first, size = collection.node_ptr[walking], sizes[walking]
    key = _graph_keys(collection)[walking] + np.uint64(derive_seed(seed, "walks"))
    row_ptr, neighbours = _neighbours(collection)
    walks = np.empty((steps, len(walking)), words.dtype)
    here = first + _below(mix(key, 0), size)
    for step in range(steps):
        walks[step] = words[here]
        draw = mix(key, step + 1)
        begin = row_ptr[here]
        degree = row_ptr[here + 1] - begin
        stuck = degree == 0
        edge = np.where(stuck, 0, begin + _below(draw, degree))
        onward = neighbours[edge] if len(neighbours) else edge
        here = first + np.where(stuck, _below(draw, size), onward)
    return walks.T


def walk_documents(
    collection: GraphCollection, steps: int, seed: int, prop: Property, id_share: float = 0.5
) -> Documents:
    """Each graph's walk as a document; a graph without nodes has an empty one.

    `neighbourhood`: the ids of the nodes walked over. `structure`: a walk of `id_share` times the steps
    in ids, then one of the rest in letters, which stand for ranges of degree / nodes.
    """
    sizes = np.diff(collection.node_ptr)
    narrow = smallest_unsigned(int(sizes.max(initial=0)) + LETTERS)
    ids = np.arange(collection.num_nodes) - np.repeat(collection.node_ptr[:-1], sizes) + LETTERS
    in_ids = steps if prop == "neighbourhood" else int(id_share * steps)
    parts = [
        random_walks(collection, in_ids, derive_seed(seed, "ids"), ids.astype(narrow)),
        random_walks(
            collection,
            steps - in_ids,
            derive_seed(seed, "letters"),
            degree_letters(collection).astype(narrow),
        ),
    ]
    words = np.concatenate(parts, axis=1).ravel()
    return Documents(words, pointer(np.where(sizes > 0, steps, 0)))


def degree_letters(collection: GraphCollection) -> NDArray[np.int64]:
    """For each node the range its degree, as a share of the graph's nodes, lies in: (0, 0.05] is 0."""
    sizes = np.diff(collection.node_ptr)
    share = collection.degrees / np.repeat(sizes, sizes)
    letters: NDArray[np.int64] = np.searchsorted(DEGREE_RANGES, share, side="left")
    return letters


def _below(draw: NDArray[np.uint64], bound: NDArray[np.int64]) -> NDArray[np.int64]:
    """Random bits to whole numbers below a bound: the upper 32 bits as a share of it."""
    scaled = (draw >> np.uint64(32)) * bound.astype(np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


def _graph_keys(collection: GraphCollection) -> NDArray[np.uint64]:
    """A hash of each graph's size and edges, as they are numbered."""
    source, destination = collection.edge_index.astype(np.uint64)
    sums = np.zeros(collection.num_edges + 1, np.uint64)
    np.cumsum(mix((source << np.uint64(32)) | destination, 0), out=sums[1:])
    edges = sums[collection.edge_ptr[1:]] - sums[collection.edge_ptr[:-1]]
    return mix(edges + np.diff(collection.node_ptr).astype(np.uint64), 1)


def _neighbours(collection: GraphCollection) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
    """Each node's neighbours by local id, laid end to end, and where each node's begin."""
    first = np.repeat(collection.node_ptr[:-1], np.diff(collection.edge_ptr))
    source, destination = collection.edge_index
    at = first + destination
    neighbours: NDArray[np.integer] = source
    if not collection.undirected:
        # The same pair may come from an edge and from one that runs against it; it counts once.
        width = int(np.diff(collection.node_ptr).max(initial=1))
        back = (first + source) * width + destination
        at, neighbours = np.divmod(np.unique(np.concatenate([at * width + source, back])), width)
    return pointer(np.bincount(at, minlength=collection.num_nodes)), neighbours
