"""Weisfeiler-Lehman colours of every node of a collection, the same in every collection.

A colour is a 64-bit hash of what it stands for, so there is no dictionary to keep: nodes of different
collections have the same colour exactly if their neighbourhoods look alike. Two of N distinct
neighbourhoods share a colour by accident with a chance of about N^2 / 2^65: 3e-8 for a million of them.
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


# Numbers scrambled beyond recognition: hashes of colours, and random draws that need no state.


_GOLDEN = 0x9E3779B97F4A7C15


def mix(values: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Spread the bits of each value, differently for each salt: a bijection (SplitMix64's).

    With salts 0, 1, 2, ... the results are SplitMix64's stream of random numbers for each value.
    """
    mixed: NDArray[np.uint64] = values + np.uint64((salt + 1) * _GOLDEN % 2**64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


Start = Literal["auto", "labels", "degree", "constant"]
Colours = NDArray[np.uint64]

_CHUNK = 500_000  # edges at once, so that each round finds them in the cache


def wl_labels(collection: GraphCollection, iterations: int, start: Start = "auto") -> list[Colours]:
    """The colours of all nodes after 0, 1, ..., `iterations` rounds: that many arrays plus one.

    c_0(v) is the start label, c_t(v) = hash(t, c_{t-1}(v), {{c_{t-1}(u) : u -> v}}). A colour holds its
    round, so none is met in two rounds. `auto` starts from what the collection's features say: node
    labels if they are among them, else the degree, or nothing at all where the features are constant.
    """
    if iterations < 0:
        raise ConfigError(f"iterations must be 0 or more, not {iterations}")
    collection.verify_hashes()
    rounds = [_first(collection, start)]
    rounds += [np.empty(collection.num_nodes, np.uint64) for _ in range(iterations)]
    if iterations == 0:
        return rounds
    for graphs in chunks_of_edges(collection.edge_ptr, _CHUNK):
        nodes = slice(int(collection.node_ptr[graphs.start]), int(collection.node_ptr[graphs.stop]))
        source, row_ptr = _rows(collection, graphs)
        for t in range(1, iterations + 1):
            rounds[t][nodes] = _refine(rounds[t - 1][nodes], source, row_ptr, t)
    return rounds


def _refine(colours: Colours, source: NDArray[np.int64], row_ptr: NDArray[np.int64], t: int) -> Colours:
    """One round. A sum of mixed colours, modulo 2^64, is a hash of the multiset: it knows no order."""
    sums = np.zeros(len(source) + 1, np.uint64)
    np.cumsum(mix(colours, 3 * t)[source], out=sums[1:])
    mixed: Colours = sums[row_ptr[1:]] - sums[row_ptr[:-1]]
    mixed += mix(colours, 3 * t + 1)
    return mix(mixed, 3 * t + 2)


def _rows(collection: GraphCollection, graphs: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CSR of a run of graphs: the sources of each node's edges, counted from the run's first node."""
    edge_ptr = collection.edge_ptr[graphs.start : graphs.stop + 1]
    node_ptr = collection.node_ptr[graphs.start : graphs.stop + 1]
    first = np.repeat(node_ptr[:-1] - node_ptr[0], np.diff(edge_ptr))
    source, destination = collection.edge_index[:, int(edge_ptr[0]) : int(edge_ptr[-1])]
    counts = np.bincount(first + destination, minlength=int(node_ptr[-1] - node_ptr[0]))
    return first + source, pointer(counts)


def _first(collection: GraphCollection, start: Start) -> Colours:
    if start == "auto":
        start = _start_of(collection)
    if start == "degree":
        return mix(collection.degrees.astype(np.uint64), 0)
    colours = mix(np.zeros(collection.num_nodes, np.uint64), 0)
    if start == "labels":
        if _start_of(collection) != "labels":
            raise DataError(
                f"the features {collection.features.name!r} of these graphs hold no node labels",
                hint="open them with features='labels', or start from 'degree'",
            )
        for column in collection.nodes.codes.T:
            colours = mix(colours + column.astype(np.uint64), 1)
    return colours


def _start_of(collection: GraphCollection) -> Start:
    """What `auto` means here; only columns of the scheme are known to be coded as they were in training."""
    names = {column.name for column in collection.features.columns}
    if names - {DEGREE, CONSTANT}:
        return "labels"
    return "constant" if names == {CONSTANT} else "degree"


# Graphs as bags of colours: how often each Weisfeiler-Lehman colour occurs in each graph.


def count_colours(collection: GraphCollection, rounds: list[Colours]) -> tuple[csr_array, Colours]:
    """Counts (graphs x colours, float64) over all rounds, and the colours in rising order."""
    from scipy.sparse import csr_array  # here, because its import takes long

    graph = np.repeat(np.arange(len(collection)), np.diff(collection.node_ptr))
    colours, column = np.unique(np.concatenate(rounds), return_inverse=True)
    entries = (np.ones(len(column)), (np.tile(graph, len(rounds)), column))
    counts = csr_array(entries, shape=(len(collection), len(colours)))
    counts.sum_duplicates()
    return counts, colours


def known_colours(counts: csr_array, colours: Colours, vocabulary: Colours) -> csr_array:
    """The counts as columns of another vocabulary (rising); colours it does not hold are left out."""
    from scipy.sparse import csr_array

    place, found = positions(colours, vocabulary)
    kept = counts[:, np.flatnonzero(found)]
    shape = (counts.shape[0], len(vocabulary))
    return csr_array((kept.data, place[found][kept.indices], kept.indptr), shape=shape)


def positions(colours: Colours, vocabulary: Colours) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each colour stands in a rising vocabulary, and whether it does."""
    if len(vocabulary) == 0:
        return np.zeros(len(colours), np.int64), np.zeros(len(colours), np.bool_)
    place = np.minimum(np.searchsorted(vocabulary, colours), len(vocabulary) - 1)
    return place, vocabulary[place] == colours
