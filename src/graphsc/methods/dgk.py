"""DGK: deep graph kernels on Weisfeiler-Lehman colours (Yanardag and Vishwanathan, KDD 2015).

    K = P M P^T, normalised;  P: counts of colours per graph;  M = E E^T, E: one learned vector per colour

Two colours co-occur at neighbouring nodes in the same round, and at one node in consecutive rounds. The
original learns E by skip-gram with negative sampling, which implicitly factorises the positive pointwise
mutual information of the co-occurrences (Levy and Goldberg, 2014); here that matrix is factorised directly.
"""

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
from graphsc.methods.fitted import Arrays, VectorKernel, check_at_least, require_fitted
from graphsc.methods.registry import METHODS, MethodEntry

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class DeepGraphKernel(VectorKernel):
    """Counts of colours, compared by learned vectors.

    Colours that occur in fewer than `min_graphs` graphs are left out: they cannot be shared between graphs.
    """

    def __init__(
        self, *, iterations: int = 2, start: Start = "auto", vector_size: int = 64, min_graphs: int = 2
    ) -> None:
        check_at_least(0, iterations=iterations)
        check_at_least(1, vector_size=vector_size, min_graphs=min_graphs)
        self.iterations = iterations
        self.start = start
        self.vector_size = vector_size
        self.min_graphs = min_graphs
        self._learned: tuple[Colours, Matrix] | None = None  # the vocabulary, and one vector per colour

    def learn(self, collection: GraphCollection, seed: int) -> None:
        rounds = wl_labels(collection, self.iterations, self.start)
        counts, colours = count_colours(collection, rounds)
        graphs = np.bincount(counts.indices, minlength=len(colours))
        vocabulary = colours[graphs >= min(self.min_graphs, len(collection))]
        information = positive_information(co_occurrences(collection, rounds, vocabulary))
        self._learned = vocabulary, factorise(information, self.vector_size, numpy_generator(seed, "dgk"))

    def vectors(self, collection: GraphCollection) -> Matrix:
        vocabulary, vectors = require_fitted(self._learned)
        counts, colours = count_colours(collection, wl_labels(collection, self.iterations, self.start))
        rows: Matrix = known_colours(counts, colours, vocabulary) @ vectors
        return rows

    def state(self) -> dict[str, NDArray[Any]]:
        vocabulary, vectors = require_fitted(self._learned)
        return {**super().state(), "vocabulary": vocabulary, "vectors": vectors}

    def load_state(self, state: Arrays) -> None:
        super().load_state(state)
        self._learned = state["vocabulary"], state["vectors"]


def co_occurrences(collection: GraphCollection, rounds: list[Colours], vocabulary: Colours) -> csr_array:
    """How often two colours of the vocabulary co-occur: symmetric, colours x colours."""
    from scipy.sparse import csr_array  # here, because its import is slow

    size = len(vocabulary)
    total = csr_array((size, size))
    codes = [np.where(known, place, -1) for place, known in (positions(c, vocabulary) for c in rounds)]

    def count(first: NDArray[np.int64], second: NDArray[np.int64]) -> csr_array:
        known = (first >= 0) & (second >= 0)
        entries = (np.ones(int(known.sum())), (first[known], second[known]))
        return csr_array(entries, shape=(size, size))

    for graphs in chunks_of_edges(collection.edge_ptr):
        edges = slice(int(collection.edge_ptr[graphs.start]), int(collection.edge_ptr[graphs.stop]))
        counts = np.diff(collection.edge_ptr[graphs.start : graphs.stop + 1])
        source, destination = np.repeat(collection.node_ptr[graphs], counts) + collection.edge_index[:, edges]
        for code in codes:
            total = total + count(code[source], code[destination])
    for before, after in pairwise(codes):
        total = total + count(before, after)
    return total + total.T


def positive_information(counts: csr_array) -> csr_array:
    """Positive pointwise mutual information: max(0, log(N m_ab / (m_a m_b))), N the sum of all counts."""
    from scipy.sparse import csr_array

    entries = counts.tocoo()
    totals = np.asarray(counts.sum(axis=1)).ravel()
    values = np.log(entries.data * totals.sum() / (totals[entries.row] * totals[entries.col]))
    positive = values > 0
    return csr_array((values[positive], (entries.row[positive], entries.col[positive])), shape=counts.shape)


def factorise(matrix: csr_array, dimensions: int, generator: np.random.Generator) -> Matrix:
    """E = U S^(1/2) of a symmetric matrix's truncated singular value decomposition U S V^T."""
    size = matrix.shape[0]
    if matrix.nnz == 0:  # the sparse solver refuses a matrix of zeros
        return np.zeros((size, min(dimensions, size)))
    if dimensions >= size or size <= 256:  # small enough for the whole spectrum
        values, vectors = np.linalg.eigh(matrix.toarray())
    else:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(matrix, dimensions, which="LM", v0=generator.normal(size=size), tol=1e-6)
    # The singular values of a symmetric matrix are the absolute values of its eigenvalues.
    order = np.argsort(-np.abs(values), kind="stable")[:dimensions]
    embedding: Matrix = vectors[:, order] * np.sqrt(np.abs(values[order]))
    return embedding


METHODS.register("dgk")(
    MethodEntry(
        DeepGraphKernel, "Deep Graph Kernels", 2015,
        "Weisfeiler-Lehman colours, compared by learned vectors", kind="gram",
        contrast="colours that occur together",
    )
)  # fmt: skip
