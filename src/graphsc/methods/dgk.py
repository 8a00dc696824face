"""DGK: deep graph kernels on Weisfeiler-Lehman colours (Yanardag and Vishwanathan, KDD 2015).

    K = P M P^T, normalised;  P: counts of colours per graph;  E: one learned vector per colour

M is the diagonal of the norms of E, as in the authors' script, or E E^T. The corpus has one sentence per
graph, the bag of its colours. The original learns E by skip-gram with negative sampling, which implicitly
factorises the pointwise mutual information of the co-occurrences (Levy and Goldberg, 2014); here its positive
part is factorised directly.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import numpy_generator
from graphsc.data.arrays import chunks_of_edges
from graphsc.data.collection import GraphCollection
from graphsc.kernels.gram import Matrix, products, self_products, unit_rows
from graphsc.kernels.weisfeiler_lehman import (
    Colours,
    Start,
    count_colours,
    known_colours,
    positions,
    wl_labels,
)
from graphsc.methods.fitted import Arrays, FittedMethod, Rows, check_at_least, require_fitted
from graphsc.methods.registry import METHODS, MethodEntry

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class DeepGraphKernel(FittedMethod):
    """Counts of colours, weighted by the norms of learned vectors, or compared by the vectors.

    Colours that occur in fewer than `min_graphs` graphs are left out: they cannot be shared between graphs.
    """

    def __init__(
        self,
        *,
        iterations: int = 2,
        start: Start = "auto",
        vector_size: int = 512,
        min_graphs: int = 2,
        kernel: Literal["norms", "gram"] = "norms",  # M: the diagonal of the vectors' norms, or E E^T
        # Colours co-occur in the same graph, or at neighbouring nodes and in consecutive rounds of a node.
        corpus: Literal["graph", "neighbours"] = "graph",
    ) -> None:
        check_at_least(0, iterations=iterations)
        check_at_least(1, vector_size=vector_size, min_graphs=min_graphs)
        self.iterations = iterations
        self.start = start
        self.vector_size = vector_size
        self.min_graphs = min_graphs
        self.kernel = kernel
        self.corpus = corpus
        self._learned: tuple[Colours, Matrix] | None = None  # the vocabulary, and one vector per colour
        self._fitted: Matrix | csr_array | None = None  # unit rows of the graphs of the fit

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        rounds = wl_labels(collection, self.iterations, self.start)
        counts, colours = count_colours(collection, rounds)
        graphs = np.bincount(counts.indices, minlength=len(colours))
        vocabulary = colours[graphs >= min(self.min_graphs, len(collection))]
        pairs = (
            shared_graphs(known_colours(counts, colours, vocabulary))
            if self.corpus == "graph"
            else co_occurrences(collection, rounds, vocabulary)
        )
        vectors = factorise(positive_information(pairs), self.vector_size, numpy_generator(seed, "dgk"))
        self._learned = vocabulary, vectors
        self._fitted = self._unit_rows(counts, colours)
        return self._against(self._fitted)

    def transform(self, collection: GraphCollection) -> Rows:
        rounds = wl_labels(collection, self.iterations, self.start)
        return self._against(self._unit_rows(*count_colours(collection, rounds)))

    def dimensions(self) -> int:
        return int(require_fitted(self._fitted).shape[0])

    def state(self) -> dict[str, NDArray[Any]]:
        vocabulary, vectors = require_fitted(self._learned)
        learned = {"vocabulary": vocabulary, "vectors": vectors}
        fitted = require_fitted(self._fitted)
        if isinstance(fitted, np.ndarray):
            return {"fitted": fitted, **learned}
        return {"fitted": fitted.data, "columns": fitted.indices, "row_ptr": fitted.indptr, **learned}

    def load_state(self, state: Arrays) -> None:
        from scipy.sparse import csr_array  # here, because its import is slow

        self._learned = state["vocabulary"], state["vectors"]
        self._fitted = state["fitted"]
        if self.kernel == "norms":
            shape = (len(state["row_ptr"]) - 1, len(state["vocabulary"]))
            self._fitted = csr_array((state["fitted"], state["columns"], state["row_ptr"]), shape=shape)

    def _unit_rows(self, counts: csr_array, colours: Colours) -> Matrix | csr_array:
        """P M^(1/2) with rows of length 1: dense for vectors, sparse for their norms."""
        vocabulary, vectors = require_fitted(self._learned)
        known = known_colours(counts, colours, vocabulary)
        if self.kernel == "gram":
            return unit_rows(known @ vectors)
        known.data = known.data * np.sqrt(np.linalg.norm(vectors, axis=1))[known.indices]
        lengths = np.sqrt(self_products(known))
        known.data = known.data / np.repeat(np.where(lengths > 0, lengths, 1), np.diff(known.indptr))
        return known

    def _against(self, rows: Matrix | csr_array) -> Rows:
        fitted = require_fitted(self._fitted)
        dense = isinstance(rows, np.ndarray)
        kernel: Matrix = rows @ fitted.T if dense else products(rows, fitted)
        return kernel.astype(np.float32)


def shared_graphs(counts: csr_array) -> csr_array:
    """How often two colours co-occur in a graph, from counts (graphs x colours): colours x colours.

    The expected number for a window over the bag in random order, up to a factor: each occurrence of a colour
    has the others of its graph as contexts, with a total weight of 1 whatever the size of the graph.
    """
    from scipy.sparse import csr_array, diags_array

    sizes = np.asarray(counts.sum(axis=1)).ravel()
    share = np.divide(1.0, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    weighted = csr_array(diags_array(share) @ counts)
    # An occurrence is not a context of itself.
    pairs = csr_array(counts.T @ weighted - diags_array(np.asarray(weighted.sum(axis=0)).ravel()))
    pairs.data[pairs.data < 1e-12] = 0  # what rounding leaves of a colour that occurs once in its graphs
    pairs.eliminate_zeros()
    return pairs


def co_occurrences(collection: GraphCollection, rounds: list[Colours], vocabulary: Colours) -> csr_array:
    """How often colours are those of neighbours, or of one node in consecutive rounds: colours x colours."""
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
        "Weisfeiler-Lehman colours, weighted by the norms of learned vectors", kind="gram",
        contrast="labels that occur in the same graphs",
    )
)  # fmt: skip
