"""Graphs as documents: each graph a text whose words are the sub-graphs rooted at its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.data.ragged import pointer
from graphsc.kernels.mixing import mix
from graphsc.kernels.relabel import Start, wl_labels


@dataclass(frozen=True, eq=False)
class Documents:
    """Texts laid end to end: document i is `words[ptr[i]:ptr[i + 1]]`, a word is a number."""

    words: NDArray[np.unsignedinteger]
    ptr: NDArray[np.int64]  # documents + 1

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ptr)


def subgraph_documents(collection: GraphCollection, iterations: int, start: Start = "auto") -> Documents:
    """For each graph the Weisfeiler-Lehman colours of its nodes after 0, 1, ..., `iterations` rounds.

    A graph of n nodes has n (iterations + 1) words. They stand in an order that looks random but depends
    on the words alone, so that graphs that differ in the order of their nodes are the same document.
    """
    rounds = wl_labels(collection, iterations, start)
    lengths = np.diff(collection.node_ptr)
    graph = np.tile(np.repeat(np.arange(len(collection)), lengths), len(rounds))
    words = np.concatenate(rounds)
    order = np.lexsort((words, graph))
    words, graph = words[order], graph[order]
    shuffled = np.lexsort((_scatter(words, graph), graph))
    return Documents(words[shuffled], pointer(lengths * len(rounds)))


def _scatter(words: NDArray[np.uint64], graph: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A key for each of sorted words that tells the first, second, ... copy of a word apart."""
    fresh = np.ones(len(words), dtype=bool)
    fresh[1:] = (words[1:] != words[:-1]) | (graph[1:] != graph[:-1])
    place = np.arange(len(words))
    copy = place - np.maximum.accumulate(np.where(fresh, place, 0))
    return mix(mix(words, 0) + copy.astype(np.uint64), 1)
