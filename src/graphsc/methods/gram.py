"""What kernels share as methods: a graph's row holds its similarities to the graphs of the fit."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.data.collection import GraphCollection
from graphsc.kernels.gram import Matrix, unit_rows
from graphsc.methods.fitted import Arrays, FittedMethod, Rows

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


def check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{name} must be {least} or more, not {value}")


def known(fitted: T | None) -> T:
    if fitted is None:
        raise ConfigError("this kernel knows no graphs yet", hint="fit it first")
    return fitted
