"""What graph2vec and sub2vec share: a document for each graph, a vector for each document."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.data.collection import GraphCollection
from graphsc.kernels.documents import Documents
from graphsc.kernels.paragraphs import ParagraphVectors
from graphsc.methods.fitted import Arrays, FittedMethod, Rows

Origin = Literal["inferred", "learned"]


class DocumentMethod(FittedMethod):
    """Graphs as documents; what the documents are is the subclass's to say.

    The rows of `fit` are `inferred`, as `transform` makes them for any graph, so that the two can be used
    together; or `learned` along with the words, as in the literature, which is another set of vectors.
    """

    def __init__(self, paragraphs: ParagraphVectors, rows: Origin, unit_rms: bool = False) -> None:
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
