"""DGK: Weisfeiler-Lehman colours compared by learned vectors (Yanardag and Vishwanathan, KDD 2015)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import numpy_generator
from graphsc.data.collection import GraphCollection
from graphsc.kernels.bags import count_colours, known_colours
from graphsc.kernels.dgk import factorise, information, meetings
from graphsc.kernels.gram import Matrix
from graphsc.kernels.relabel import Colours, Start, wl_labels
from graphsc.methods.fitted import Arrays
from graphsc.methods.gram import VectorKernel, check_least, known
from graphsc.methods.registry import METHODS, MethodEntry


class DeepGraphKernel(VectorKernel):
    """K = P M P^T, normalised: P counts of colours, M = E E^T from learned vectors of colours.

    Colours of fewer than `min_graphs` graphs have no vector: nothing of theirs could be shared.
    """

    def __init__(
        self, *, iterations: int = 2, start: Start = "auto", vector_size: int = 64, min_graphs: int = 2
    ) -> None:
        for name, value, least in (
            ("iterations", iterations, 0),
            ("vector_size", vector_size, 1),
            ("min_graphs", min_graphs, 1),
        ):
            check_least(name, value, least)
        self.iterations = iterations
        self.start = start
        self.vector_size = vector_size
        self.min_graphs = min_graphs
        self._learned: tuple[Colours, Matrix] | None = None  # vocabulary, a vector each

    def state(self) -> dict[str, NDArray[Any]]:
        vocabulary, vectors = known(self._learned)
        return {**super().state(), "vocabulary": vocabulary, "vectors": vectors}

    def load_state(self, state: Arrays) -> None:
        super().load_state(state)
        self._learned = state["vocabulary"], state["vectors"]

    def learn(self, collection: GraphCollection, seed: int) -> None:
        rounds = wl_labels(collection, self.iterations, self.start)
        counts, colours = count_colours(collection, rounds)
        graphs = np.bincount(counts.indices, minlength=len(colours))
        vocabulary = colours[graphs >= min(self.min_graphs, len(collection))]
        shared = information(meetings(collection, rounds, vocabulary))
        self._learned = vocabulary, factorise(shared, self.vector_size, numpy_generator(seed, "dgk"))

    def vectors(self, collection: GraphCollection) -> Matrix:
        vocabulary, vectors = known(self._learned)
        counts, colours = count_colours(collection, wl_labels(collection, self.iterations, self.start))
        rows: Matrix = known_colours(counts, colours, vocabulary) @ vectors
        return rows


METHODS.register("dgk")(
    MethodEntry(
        DeepGraphKernel, "Deep Graph Kernels", 2015,
        "Weisfeiler-Lehman colours, compared by learned vectors", kind="gram",
    )
)  # fmt: skip
