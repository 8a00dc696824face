"""WL: the Weisfeiler-Lehman subtree kernel (Shervashidze et al., JMLR 2011)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.kernels.gram import cosine, products, self_products
from graphsc.kernels.weisfeiler_lehman import Colours, Start, count_colours, known_colours, wl_labels
from graphsc.methods.fitted import Arrays, FittedMethod, Rows, check_at_least, require_fitted
from graphsc.methods.registry import METHODS, MethodEntry

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class WeisfeilerLehman(FittedMethod):
    """Inner products of the counts of colours of rounds 0 to `iterations`.

    Three rounds by default: the three layers of the default encoder cannot distinguish more.
    """

    def __init__(self, *, iterations: int = 3, start: Start = "auto", normalise: bool = True) -> None:
        check_at_least(0, iterations=iterations)
        self.iterations = iterations
        self.start = start
        self.normalise = normalise
        self._fitted: tuple[csr_array, Colours] | None = None  # counts, vocabulary

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        del seed  # there is nothing random
        self._fitted = self._counts(collection)
        return self._against(*self._fitted)

    def transform(self, collection: GraphCollection) -> Rows:
        return self._against(*self._counts(collection))

    def dimensions(self) -> int:
        return int(require_fitted(self._fitted)[0].shape[0])

    def state(self) -> dict[str, NDArray[Any]]:
        counts, vocabulary = require_fitted(self._fitted)
        return {
            "vocabulary": vocabulary,
            "counts": counts.data.astype(np.int32),
            "columns": counts.indices,
            "row_ptr": counts.indptr,
        }

    def load_state(self, state: Arrays) -> None:
        from scipy.sparse import csr_array  # here, because its import is slow

        parts = (state["counts"].astype(np.float64), state["columns"], state["row_ptr"])
        shape = (len(state["row_ptr"]) - 1, len(state["vocabulary"]))
        self._fitted = csr_array(parts, shape=shape), state["vocabulary"]

    def _counts(self, collection: GraphCollection) -> tuple[csr_array, Colours]:
        return count_colours(collection, wl_labels(collection, self.iterations, self.start))

    def _against(self, counts: csr_array, colours: Colours) -> Rows:
        fitted, vocabulary = require_fitted(self._fitted)
        kernel = products(known_colours(counts, colours, vocabulary), fitted)
        if self.normalise:
            # The norm of a graph counts all its colours, including those that no graph of the fit has.
            kernel = cosine(kernel, self_products(counts), self_products(fitted))
        return kernel.astype(np.float32)


METHODS.register("wl")(
    MethodEntry(
        WeisfeilerLehman, "Weisfeiler-Lehman Graph Kernels", 2011,
        "counts of Weisfeiler-Lehman colours", kind="gram",
    )
)  # fmt: skip
