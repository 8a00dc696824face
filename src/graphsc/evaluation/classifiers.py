"""The classifiers of a protocol behind one call: predict a test part for every value of the grid."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from itertools import combinations
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol
from graphsc.evaluation.svm_path import solve

# SVMs by kernel: made once for a training part, it serves every C and every pair of classes.


Rows = NDArray[np.int64]
Matrix = NDArray[np.float64]

_BLOCK = 128


class Kernel(typing.Protocol):
    """The kernel a training part has, between its rows and of the rows to test."""

    def between(self, train: Rows, test: Rows) -> tuple[Matrix, Matrix]:
        """Kernel of train x train and of test x train."""
        ...


class Rbf:
    """exp(-gamma |x - x'|^2) with gamma = 1 / (d var) of the training part; distances are computed once."""

    def __init__(self, values: Matrix) -> None:
        self.values = values
        self.squares = squared_distances(values - values.mean(0), None)

    def between(self, train: Rows, test: Rows) -> tuple[Matrix, Matrix]:
        gamma = gamma_of(self.values[train])
        inner = np.empty((len(train), len(train)))
        # By blocks, which stay in the processor's cache; what is right of the diagonal is left of it too.
        for start in range(0, len(train), _BLOCK):
            stop = start + _BLOCK
            block = _rbf(self.squares[np.ix_(train[start:stop], train[start:])], gamma)
            inner[start:stop, start:] = block
            inner[start:, start:stop] = block.T
        return inner, _rbf(self.squares[np.ix_(test, train)], gamma)


class StandardisedRbf:
    """The same on columns scaled by the training part's mean and deviation."""

    def __init__(self, values: Matrix) -> None:
        self.values = values

    def between(self, train: Rows, test: Rows) -> tuple[Matrix, Matrix]:
        one, other = standardise(self.values[train], self.values[test])
        gamma = gamma_of(one)
        return _rbf(squared_distances(one, None), gamma), _rbf(squared_distances(other, one), gamma)


class Gram:
    """A kernel that is there already."""

    def __init__(self, gram: Matrix) -> None:
        self.gram = gram

    def between(self, train: Rows, test: Rows) -> tuple[Matrix, Matrix]:
        return self.gram[np.ix_(train, train)], self.gram[np.ix_(test, train)]


class KernelSvm:
    """One machine for each pair of classes, and the class that most of them vote for."""

    def __init__(self, kernel: Kernel, codes: NDArray[np.int64]) -> None:
        self.kernel = kernel
        self.codes = codes

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        """The classes predicted for `test` with each value of `grid`: len(grid) x len(test)."""
        inner, outer = self.kernel.between(train, test)
        codes = self.codes[train]
        classes = np.unique(codes)
        votes = np.zeros((len(grid), len(test), len(classes)), dtype=np.int64)
        for first, second in combinations(range(len(classes)), 2):
            pair = np.flatnonzero((codes == classes[first]) | (codes == classes[second]))
            whole = len(pair) == len(train)
            machines = solve(
                inner if whole else inner[np.ix_(pair, pair)], codes[pair] == classes[second], grid
            )
            weights = np.stack([machine.weights for machine in machines], axis=1)
            values = (outer if whole else outer[:, pair]) @ weights
            values += [machine.intercept for machine in machines]
            # A value of exactly zero goes to the second class, as in libsvm.
            votes[:, :, second] += values.T >= 0
            votes[:, :, first] += values.T < 0
        # The first of equally many votes, as in libsvm; with one class alone there is nothing to vote on.
        predictions: NDArray[np.int64] = classes[votes.argmax(axis=2)]
        return predictions


def gamma_of(values: Matrix) -> float:
    """scikit-learn's gamma="scale"; 1 for constant vectors, whose kernel is 1 everywhere."""
    variance = float(values.var())
    return 1.0 / (values.shape[1] * variance) if variance != 0 else 1.0


def squared_distances(one: Matrix, other: Matrix | None) -> Matrix:
    """|x - x'|^2 between the rows of `one` and of `other` (or of `one` again): m x n."""
    lengths = np.einsum("ij,ij->i", one, one)
    others = lengths if other is None else np.einsum("ij,ij->i", other, other)
    squares = one @ (one if other is None else other).T
    squares *= -2.0
    squares += lengths[:, None]
    squares += others
    np.maximum(squares, 0.0, out=squares)
    if other is None:
        np.fill_diagonal(squares, 0.0)
    return squares


def standardise(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    """Both scaled by the training part's column means and deviations; constant columns are only shifted."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def _rbf(squares: Matrix, gamma: float) -> Matrix:
    squares *= -gamma
    return np.exp(squares, out=squares)


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
