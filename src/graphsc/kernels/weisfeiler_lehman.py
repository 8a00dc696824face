"""Weisfeiler-Lehman colours of the nodes of a collection, and their counts per graph.

A colour is a 64-bit hash of the rooted subtree it stands for, so no dictionary is stored, and nodes of
different collections have equal colours exactly if their neighbourhoods are equal. Among N distinct
neighbourhoods, the probability of a collision is about N^2 / 2^65: 3e-8 for a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.arrays import chunks_of_edges, pointer
from graphsc.data.collection import GraphCollection
from graphsc.data.features import CONSTANT, DEGREE

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Start = Literal["auto", "labels", "degree", "constant"]
Colours = NDArray[np.uint64]

_CHUNK = 500_000  # edges at once, so that each round finds them in the processor's cache
GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's step


def wl_labels(collection: GraphCollection, iterations: int, start: Start = "auto") -> list[Colours]:
    """The Weisfeiler-Lehman colours of all nodes.

    c_0(v) is the start label, c_t(v) = hash(t, c_{t-1}(v), {{c_{t-1}(u) : u -> v}}). The round is part of the
    hash, so no colour occurs in two rounds.

    Args:
        collection: the graphs.
        iterations: the number of rounds, 0 or more.
        start: the start labels: node "labels", "degree", or the same "constant" for all. "auto" follows the
            features of the collection: node labels if it has them, else the degree, or constant if they are.

    Returns:
        iterations + 1 arrays, the colours of all nodes after 0, 1, ..., `iterations` rounds.
    """
    if iterations < 0:
        raise ConfigError(f"iterations must be 0 or more, not {iterations}")
    collection.verify_hashes()
    rounds = [_start_colours(collection, start)]
    rounds += [np.empty(collection.num_nodes, np.uint64) for _ in range(iterations)]
    if iterations == 0:
        return rounds
    for graphs in chunks_of_edges(collection.edge_ptr, _CHUNK):
        nodes = slice(int(collection.node_ptr[graphs.start]), int(collection.node_ptr[graphs.stop]))
        source, row_ptr = _csr(collection, graphs)
        for t in range(1, iterations + 1):
            rounds[t][nodes] = _refine(rounds[t - 1][nodes], source, row_ptr, t)
    return rounds


def count_colours(collection: GraphCollection, rounds: list[Colours]) -> tuple[csr_array, Colours]:
    """Counts of the colours of all rounds (graphs x colours, float64), and the colours in ascending order."""
    from scipy.sparse import csr_array  # not at the top: slow to import

    graph = np.repeat(np.arange(len(collection)), np.diff(collection.node_ptr))
    colours, column = np.unique(np.concatenate(rounds), return_inverse=True)
    entries = (np.ones(len(column)), (np.tile(graph, len(rounds)), column))
    counts = csr_array(entries, shape=(len(collection), len(colours)))
    counts.sum_duplicates()
    return counts, colours


def known_colours(counts: csr_array, colours: Colours, vocabulary: Colours) -> csr_array:
    """The counts with the columns of another vocabulary (ascending); colours not in it are left out."""
    from scipy.sparse import csr_array

    place, known = positions(colours, vocabulary)
    selected = counts[:, np.flatnonzero(known)]
    shape = (counts.shape[0], len(vocabulary))
    return csr_array((selected.data, place[known][selected.indices], selected.indptr), shape=shape)


def positions(colours: Colours, vocabulary: Colours) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The position of each colour in an ascending vocabulary, and whether it is in it."""
    if len(vocabulary) == 0:
        return np.zeros(len(colours), np.int64), np.zeros(len(colours), np.bool_)
    place = np.minimum(np.searchsorted(vocabulary, colours), len(vocabulary) - 1)
    return place, vocabulary[place] == colours


def splitmix64(values: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Hash each value with the bijection of SplitMix64, a different one for each salt.

    With salts 0, 1, 2, ... the results are SplitMix64's random stream seeded with each value.
    """
    mixed: NDArray[np.uint64] = values + np.uint64((salt + 1) * GOLDEN % 2**64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _refine(colours: Colours, source: NDArray[np.int64], row_ptr: NDArray[np.int64], t: int) -> Colours:
    """One round; the sum of hashed colours modulo 2^64 is a hash of the multiset."""
    sums = np.zeros(len(source) + 1, np.uint64)
    np.cumsum(splitmix64(colours, 3 * t)[source], out=sums[1:])
    mixed: Colours = sums[row_ptr[1:]] - sums[row_ptr[:-1]]
    mixed += splitmix64(colours, 3 * t + 1)
    return splitmix64(mixed, 3 * t + 2)


def _csr(collection: GraphCollection, graphs: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sources of the edges into each node of a slice of graphs, counted from its first node, as CSR."""
    edge_ptr = collection.edge_ptr[graphs.start : graphs.stop + 1]
    node_ptr = collection.node_ptr[graphs.start : graphs.stop + 1]
    first = np.repeat(node_ptr[:-1] - node_ptr[0], np.diff(edge_ptr))
    source, destination = collection.edge_index[:, int(edge_ptr[0]) : int(edge_ptr[-1])]
    counts = np.bincount(first + destination, minlength=int(node_ptr[-1] - node_ptr[0]))
    return first + source, pointer(counts)


def _start_colours(collection: GraphCollection, start: Start) -> Colours:
    if start == "auto":
        start = _auto_start(collection)
    if start == "degree":
        return splitmix64(collection.degrees.astype(np.uint64), 0)
    colours = splitmix64(np.zeros(collection.num_nodes, np.uint64), 0)
    if start == "labels":
        if _auto_start(collection) != "labels":
            raise DataError(
                f"the features {collection.features.name!r} of these graphs hold no node labels",
                hint="open them with features='labels', or start from 'degree'",
            )
        for column in collection.nodes.codes.T:
            colours = splitmix64(colours + column.astype(np.uint64), 1)
    return colours


def _auto_start(collection: GraphCollection) -> Start:
    # Only columns of the feature scheme are certain to be coded as they were in training.
    names = {column.name for column in collection.features.columns}
    if names - {DEGREE, CONSTANT}:
        return "labels"
    return "constant" if names == {CONSTANT} else "degree"
