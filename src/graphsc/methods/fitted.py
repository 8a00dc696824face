"""What a fitted method is: kernels and document embeddings, learned from a collection in one go."""

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


class FittedMethod:
    """A method without training steps.

    Subclasses take typed keywords, which are the configuration. Registered as `fitted`, its rows are
    vectors; registered as `gram`, they are kernel values against the graphs it was fitted on, one column
    each, as scikit-learn's precomputed kernels have them.
    """

    inductive: ClassVar[bool] = True  # False: only the graphs it was fitted on have rows

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        """Learn from the collection and give its own rows; the seed decides every draw."""
        raise NotImplementedError

    def transform(self, collection: GraphCollection) -> Rows:
        """Rows for any graphs, comparable with those of `fit`."""
        raise NotImplementedError

    def dimensions(self) -> int:
        """The length of a row; known once fitted."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `transform` needs, as arrays of numbers."""
        raise NotImplementedError

    def load_state(self, state: Arrays) -> None:
        """Put back what `state` gave."""
        raise NotImplementedError


# What kernels share as methods: a graph's row holds its similarities to the graphs of the fit.


T = TypeVar("T")


class VectorKernel(FittedMethod):
    """A kernel of unit vectors: its rows are their products with those of the graphs of the fit."""

    _fitted: Matrix | None = None

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        self.learn(collection, seed)
        self._fitted = unit_rows(self.vectors(collection))
        return (self._fitted @ self._fitted.T).astype(np.float32)

    def transform(self, collection: GraphCollection) -> Rows:
        fitted = known(self._fitted)
        return (unit_rows(self.vectors(collection)) @ fitted.T).astype(np.float32)

    def dimensions(self) -> int:
        return len(known(self._fitted))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"fitted": known(self._fitted)}

    def load_state(self, state: Arrays) -> None:
        self._fitted = state["fitted"]

    def learn(self, collection: GraphCollection, seed: int) -> None:
        """Whatever `vectors` needs to know of the graphs of the fit; nothing by default."""

    def vectors(self, collection: GraphCollection) -> Matrix:
        raise NotImplementedError


def known(fitted: T | None) -> T:
    if fitted is None:
        raise ConfigError("this kernel knows no graphs yet", hint="fit it first")
    return fitted


# What graph2vec and sub2vec share: a document for each graph, a vector for each document.


Origin = Literal["inferred", "learned"]


class DocumentMethod(FittedMethod):
    """Graphs as documents; what the documents are is the subclass's to say.

    The rows of `fit` are `inferred`, as `transform` makes them for any graph, so that the two can be used
    together; or `learned` along with the words, as in the literature, which is another set of vectors.
    """

    def __init__(self, paragraphs: DocumentVectors, rows: Origin, unit_rms: bool = False) -> None:
        self.paragraphs = paragraphs
        self.rows: Origin = rows
        self.unit_rms = unit_rms

    def documents(self, collection: GraphCollection, seed: int) -> Documents:
        """One document a graph; the seed is that of the fit."""
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
        """Rows of which the mean square is 1, if asked for; zeros stay zeros."""
        if not self.unit_rms:
            return rows
        size = np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
        return (rows / np.where(size == 0, 1, size)).astype(np.float32)


def check_least(least: int | float, **settings: int | float) -> None:
    """Refuse a setting below its least value, by name."""
    for name, value in settings.items():
        if value < least:
            raise ConfigError(f"{name} must be at least {least}, not {value}")
