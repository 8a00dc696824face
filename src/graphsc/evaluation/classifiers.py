"""The classifiers of a protocol behind one call: predict a test part for every value of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from graphsc.core.errors import ConfigError
from graphsc.evaluation.kernel_svm import Gram, KernelSvm, Rbf, StandardisedRbf, standardise
from graphsc.evaluation.protocol import Protocol

Rows = NDArray[np.int64]


class Grid(Interface):
    """A classifier over values and codes it was given once; only rows are named afterwards."""

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        """The codes predicted for `test` after training on `train`: len(grid) x len(test)."""
        ...


class Vectors:
    """Linear SVM, logistic regression or nearest neighbours, on vectors as they are or standardised."""

    def __init__(self, values: NDArray[np.float64], codes: NDArray[np.int64], protocol: Protocol) -> None:
        self.values = values
        self.codes = codes
        self.protocol = protocol

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        one, other = self.values[train], self.values[test]
        codes = self.codes[train]
        if (codes == codes[0]).all():
            return np.full((len(grid), len(test)), codes[0])
        if self.protocol.scale == "standardised":
            one, other = standardise(one, other)
        return np.stack([self._model(value, len(train)).fit(one, codes).predict(other) for value in grid])

    def _model(self, value: float, rows: int) -> LinearSVC | LogisticRegression | KNeighborsClassifier:
        if self.protocol.classifier == "linear-svm":
            return LinearSVC(C=value, dual=False)
        if self.protocol.classifier == "logistic":
            return LogisticRegression(C=value, solver="newton-cholesky")
        return KNeighborsClassifier(min(int(value), rows))


def make_classifier(
    values: NDArray[np.float64], codes: NDArray[np.int64], protocol: Protocol, *, gram: bool
) -> Grid:
    """The protocol's classifier over n x d vectors, or over an n x n Gram matrix."""
    if gram:
        if protocol.classifier != "svm" or protocol.scale != "raw":
            raise ConfigError(
                f"a Gram matrix cannot be judged by {protocol.classifier} on {protocol.scale} values",
                hint="use classifier svm and scale raw",
            )
        return KernelSvm(Gram(values), codes)
    if protocol.classifier == "svm":
        return KernelSvm(Rbf(values) if protocol.scale == "raw" else StandardisedRbf(values), codes)
    return Vectors(values, codes, protocol)
