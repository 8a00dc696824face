"""DGK: Weisfeiler-Lehman colours compared by learned vectors (Yanardag and Vishwanathan, KDD 2015)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import numpy_generator
from graphsc.data.arrays import chunks_of_edges
from graphsc.data.collection import GraphCollection
from graphsc.kernels.gram import Matrix
from graphsc.kernels.weisfeiler_lehman import (
    Colours,
    Start,
    count_colours,
    known_colours,
    positions,
    wl_labels,
)
from graphsc.methods.fitted import Arrays, VectorKernel, check_least, known
from graphsc.methods.registry import METHODS, MethodEntry

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Vectors for colours from the company they keep: the learned part of the deep graph kernel.
#
# A colour c_t(v) is met together with the colours of v's neighbours in the same round and with v's own
# colour in the rounds next to it. Skip-gram with negative sampling factorises the matrix of positive
# pointwise mutual information of such meetings (Levy and Goldberg, 2014); here it is factorised outright.


def meetings(collection: GraphCollection, rounds: list[Colours], vocabulary: Colours) -> csr_array:
    """How often two colours of the vocabulary meet: symmetric, colours x colours."""
    from scipy.sparse import csr_array  # here, because its import takes long

    size = len(vocabulary)
    total = csr_array((size, size))
    codes = [np.where(found, place, -1) for place, found in (positions(c, vocabulary) for c in rounds)]

    def add(one: NDArray[np.int64], two: NDArray[np.int64]) -> csr_array:
        known = (one >= 0) & (two >= 0)
        entries = (np.ones(int(known.sum())), (one[known], two[known]))
        return csr_array(entries, shape=(size, size))

    for graphs in chunks_of_edges(collection.edge_ptr):
        edges = slice(int(collection.edge_ptr[graphs.start]), int(collection.edge_ptr[graphs.stop]))
        counts = np.diff(collection.edge_ptr[graphs.start : graphs.stop + 1])
        source, destination = np.repeat(collection.node_ptr[graphs], counts) + collection.edge_index[:, edges]
        for code in codes:
            total = total + add(code[source], code[destination])
    for before, after in pairwise(codes):
        total = total + add(before, after)
    return total + total.T


def information(met: csr_array) -> csr_array:
    """Positive pointwise mutual information: max(0, log(N m_ab / (m_a m_b))), N the sum of all meetings."""
    from scipy.sparse import csr_array

    entries = met.tocoo()
    each = np.asarray(met.sum(axis=1)).ravel()
    values = np.log(entries.data * each.sum() / (each[entries.row] * each[entries.col]))
    kept = values > 0
    return csr_array((values[kept], (entries.row[kept], entries.col[kept])), shape=met.shape)


def factorise(matrix: csr_array, dimensions: int, generator: np.random.Generator) -> Matrix:
    """Rows E = U S^(1/2) of a symmetric matrix's truncated singular value decomposition U S V^T."""
    size = matrix.shape[0]
    if matrix.nnz == 0:  # the solver below refuses a matrix of zeros
        return np.zeros((size, min(dimensions, size)))
    if dimensions >= size or size <= 256:  # few enough for the whole spectrum
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(matrix, dimensions, which="LM", v0=generator.normal(size=size), tol=1e-6)
    # The singular values of a symmetric matrix are its eigenvalues without their signs.
    order = np.argsort(-np.abs(values), kind="stable")[:dimensions]
    embedding: Matrix = vectors[:, order] * np.sqrt(np.abs(values[order]))
    return embedding


class DeepGraphKernel(VectorKernel):
    """K = P M P^T, normalised: P counts of colours, M = E E^T from learned vectors of colours.

    Colours of fewer than `min_graphs` graphs have no vector: nothing of theirs could be shared.
    """

    def __init__(
        self, *, iterations: int = 2, start: Start = "auto", vector_size: int = 64, min_graphs: int = 2
    ) -> None:
        check_least(0, iterations=iterations)
        check_least(1, vector_size=vector_size, min_graphs=min_graphs)
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
