"""Fitted methods: graph kernels and document embeddings, learned from a collection in one call.

`FittedMethod` is the contract. `VectorKernel` is the base of kernels that compare one vector per graph, and
`DocumentMethod` the base of methods that turn each graph into a document and embed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.data.collection import GraphCollection
from graphsc.kernels.doc2vec import Documents, DocumentVectors
from graphsc.kernels.gram import Matrix, unit_rows

Rows = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
Origin = Literal["inferred", "learned"]
T = TypeVar("T")


class FittedMethod:
    """A method without training steps.

    A subclass takes typed keywords, which are the configuration. The rows of a method registered as `fitted`
    are embeddings. Those of a method registered as `gram` are kernel values with the graphs of the fit, one
    column each, as scikit-learn expects of a precomputed kernel.
    """

    inductive: ClassVar[bool] = True  # False: only the graphs of the fit have rows

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        """Learn from the collection and return its rows; the seed determines every random draw."""
        raise NotImplementedError

    def transform(self, collection: GraphCollection) -> Rows:
        """Rows for any graphs, comparable with those of `fit`."""
        raise NotImplementedError

    def dimensions(self) -> int:
        """The length of a row; known once fitted."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `transform` needs, as numeric arrays."""
        raise NotImplementedError

    def load_state(self, state: Arrays) -> None:
        """Restore what `state` returned."""
        raise NotImplementedError


class VectorKernel(FittedMethod):
    """A cosine kernel: inner products of unit vectors with those of the graphs of the fit."""

    _fitted: Matrix | None = None  # unit vectors of the graphs of the fit

    def learn(self, collection: GraphCollection, seed: int) -> None:
        """Learn what `vectors` needs; nothing by default."""

    def vectors(self, collection: GraphCollection) -> Matrix:
        """One vector per graph, before normalisation."""
        raise NotImplementedError

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        self.learn(collection, seed)
        self._fitted = unit_rows(self.vectors(collection))
        return (self._fitted @ self._fitted.T).astype(np.float32)

    def transform(self, collection: GraphCollection) -> Rows:
        fitted = require_fitted(self._fitted)
        return (unit_rows(self.vectors(collection)) @ fitted.T).astype(np.float32)

    def dimensions(self) -> int:
        return len(require_fitted(self._fitted))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"fitted": require_fitted(self._fitted)}

    def load_state(self, state: Arrays) -> None:
        self._fitted = state["fitted"]


class DocumentMethod(FittedMethod):
    """One document per graph, embedded by a paragraph-vector model; subclasses define the documents.

    Args:
        paragraphs: the paragraph-vector model.
        rows: which rows `fit` returns. "inferred" rows are made as `transform` makes those of any graph, so
            that both can be used together. "learned" rows are trained along with the words, as in the
            literature; they are not comparable with the rows of unseen graphs.
        unit_rms: scale each row to a mean square of 1.
    """

    def __init__(self, paragraphs: DocumentVectors, rows: Origin, unit_rms: bool = False) -> None:
        self.paragraphs = paragraphs
        self.rows: Origin = rows
        self.unit_rms = unit_rms

    def documents(self, collection: GraphCollection, seed: int) -> Documents:
        """One document per graph; the seed is that of the fit."""
        raise NotImplementedError

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        documents = self.documents(collection, seed)
        learned = self.paragraphs.fit(documents, seed)
        return self._scaled(learned if self.rows == "learned" else self.paragraphs.infer(documents))

    def transform(self, collection: GraphCollection) -> Rows:
        if self.paragraphs.seed is None:
            raise ConfigError("this method has not been fitted", hint="call fit with some graphs first")
        return self._scaled(self.paragraphs.infer(self.documents(collection, self.paragraphs.seed)))

    def dimensions(self) -> int:
        return self.paragraphs.dimensions

    def state(self) -> dict[str, NDArray[Any]]:
        return self.paragraphs.state()

    def load_state(self, state: Arrays) -> None:
        self.paragraphs.load_state(state)

    def _scaled(self, rows: Rows) -> Rows:
        if not self.unit_rms:
            return rows
        size = np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
        return (rows / np.where(size == 0, 1, size)).astype(np.float32)


def require_fitted(fitted: T | None) -> T:
    """What a fit has left, or an error if there was none."""
    if fitted is None:
        raise ConfigError("this kernel has not been fitted", hint="fit it first")
    return fitted


def check_at_least(minimum: int | float, **settings: int | float) -> None:
    """Refuse a setting below its minimum, by name."""
    for name, value in settings.items():
        if value < minimum:
            raise ConfigError(f"{name} must be at least {minimum}, not {value}")
