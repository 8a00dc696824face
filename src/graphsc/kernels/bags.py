"""Graphs as bags of colours: how often each Weisfeiler-Lehman colour occurs in each graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.kernels.relabel import Colours

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
