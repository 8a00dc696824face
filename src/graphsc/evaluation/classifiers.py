"""The classifiers of a protocol, each predicting a test set for every value of its parameter grid."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol
from graphsc.evaluation.svm_path import solve_path

Rows = NDArray[np.int64]
Matrix = NDArray[np.float64]

SingleMatrix = NDArray[np.float32]

_BLOCK = 64  # rows of a kernel computed at once, so that they stay in the processor's cache


class GridClassifier(typing.Protocol):
    """A classifier over fixed values and class codes; training and test sets are given as row indices."""

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        """Train on `train` with each value of `grid`; returns the codes of `test`, len(grid) x len(test)."""
        ...


def make_classifier(
    values: NDArray[np.float64], codes: NDArray[np.int64], protocol: Protocol, *, gram: bool
) -> GridClassifier:
    """The classifier of a protocol over n x d vectors, or an n x n Gram matrix, and n class codes from 0."""
    if gram:
        if protocol.classifier != "svm" or protocol.scale != "raw":
            raise ConfigError(
                f"a Gram matrix cannot be evaluated by {protocol.classifier} on {protocol.scale} values",
                hint="use classifier svm and scale raw",
            )
        return KernelSvm(GramKernel(values), codes)
    if protocol.classifier == "svm":
        kernel = RbfKernel(values) if protocol.scale == "raw" else StandardisedRbfKernel(values)
        return KernelSvm(kernel, codes)
    return VectorClassifier(values, codes, protocol)


class VectorClassifier:
    """Linear SVM, logistic regression or nearest neighbours, on raw or standardised vectors."""

    def __init__(self, values: NDArray[np.float64], codes: NDArray[np.int64], protocol: Protocol) -> None:
        self.values = values
        self.codes = codes
        self.protocol = protocol

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        codes = self.codes[train]
        if (codes == codes[0]).all():
            return np.full((len(grid), len(test)), codes[0])
        fitted, tested = self.values[train], self.values[test]
        if self.protocol.scale == "standardised":
            fitted, tested = standardise(fitted, tested)
        models = (self._model(value, len(train)) for value in grid)
        return np.stack([model.fit(fitted, codes).predict(tested) for model in models])

    def _model(self, value: float, rows: int) -> LinearSVC | LogisticRegression | KNeighborsClassifier:
        if self.protocol.classifier == "linear-svm":
            return LinearSVC(C=value, dual=False)
        if self.protocol.classifier == "logistic":
            return LogisticRegression(C=value, solver="newton-cholesky")
        return KNeighborsClassifier(min(int(value), rows))


class Kernel(typing.Protocol):
    """A kernel between rows; it may depend on the training set, as the width of an RBF does."""

    def between(self, train: Rows, test: Rows) -> tuple[SingleMatrix, Matrix]:
        """The kernel of train x train, in single precision as inside libsvm, and of test x train."""
        ...


class KernelSvm:
    """One SVM for each pair of classes, and a vote; the kernel is computed once for all C and all pairs."""

    def __init__(self, kernel: Kernel, codes: NDArray[np.int64]) -> None:
        self.kernel = kernel
        self.codes = codes

    def predict(self, train: Rows, test: Rows, grid: Sequence[float]) -> NDArray[np.int64]:
        # Sorted by class, in which order libsvm takes the rows, too.
        train = train[self.codes[train].argsort(kind="stable")]
        train_kernel, test_kernel = self.kernel.between(train, test)
        codes = self.codes[train]
        classes, starts = np.unique(codes, return_index=True)
        slices = [slice(*bounds) for bounds in pairwise([*starts, len(train)])]
        votes = np.zeros((len(grid), len(test), len(classes)), dtype=np.int64)
        for first, second in combinations(range(len(classes)), 2):
            if len(classes) == 2:  # no copies
                pair_kernel, pair_test_kernel = train_kernel, test_kernel
            else:
                pair = np.r_[slices[first], slices[second]]
                pair_kernel, pair_test_kernel = train_kernel[np.ix_(pair, pair)], test_kernel[:, pair]
            pair_codes = np.concatenate([codes[slices[first]], codes[slices[second]]])
            svms = solve_path(pair_kernel, pair_codes == classes[second], grid)
            values = pair_test_kernel @ np.stack([svm.weights for svm in svms], axis=1)
            values += [svm.intercept for svm in svms]
            # A value of exactly zero is a vote for the second class, as in libsvm.
            votes[:, :, second] += values.T >= 0
            votes[:, :, first] += values.T < 0
        # The first of equally many votes, as in libsvm; also correct for a single class without votes.
        predictions: NDArray[np.int64] = classes[votes.argmax(axis=2)]
        return predictions


class RbfKernel:
    """exp(-gamma |x - x'|^2) with gamma = 1 / (d var) of the training set; distances are computed once."""

    def __init__(self, values: Matrix) -> None:
        self.values = values
        self.squares = squared_distances(values - values.mean(0), None)

    def between(self, train: Rows, test: Rows) -> tuple[SingleMatrix, Matrix]:
        gamma = gamma_of(self.values[train])
        train_kernel = np.empty((len(train), len(train)), dtype=np.float32)
        for start in range(0, len(train), _BLOCK):
            stop = start + _BLOCK
            block = train_kernel[start:stop, start:]
            block[:] = _rbf(self.squares[train[start:stop]].take(train[start:], axis=1), gamma)
            train_kernel[start:, start:stop] = block.T
        return train_kernel, _rbf(self.squares[test].take(train, axis=1), gamma)


class StandardisedRbfKernel:
    """The RBF kernel on columns standardised by the training set."""

    def __init__(self, values: Matrix) -> None:
        self.values = values

    def between(self, train: Rows, test: Rows) -> tuple[SingleMatrix, Matrix]:
        fitted, tested = standardise(self.values[train], self.values[test])
        gamma = gamma_of(fitted)
        train_kernel = _rbf(squared_distances(fitted, None), gamma).astype(np.float32)
        return train_kernel, _rbf(squared_distances(tested, fitted), gamma)


class GramKernel:
    """A precomputed kernel."""

    def __init__(self, gram: Matrix) -> None:
        self.gram = gram

    def between(self, train: Rows, test: Rows) -> tuple[SingleMatrix, Matrix]:
        train_kernel = np.empty((len(train), len(train)), dtype=np.float32)
        train_kernel[:] = self.gram[np.ix_(train, train)]
        return train_kernel, self.gram[np.ix_(test, train)]


def gamma_of(values: Matrix) -> float:
    """scikit-learn's gamma="scale"; 1 for constant vectors, whose kernel is 1 everywhere."""
    variance = float(values.var())
    return 1.0 / (values.shape[1] * variance) if variance != 0 else 1.0


def squared_distances(left: Matrix, right: Matrix | None) -> Matrix:
    """|x - x'|^2 between the rows of `left` (m) and `right` (n; None for `left` itself): m x n."""
    left_norms = np.einsum("ij,ij->i", left, left)
    right_norms = left_norms if right is None else np.einsum("ij,ij->i", right, right)
    squares = left @ (left if right is None else right).T
    squares *= -2.0
    squares += left_norms[:, None]
    squares += right_norms
    np.maximum(squares, 0.0, out=squares)
    if right is None:
        np.fill_diagonal(squares, 0.0)
    return squares


def standardise(train: Matrix, test: Matrix) -> tuple[Matrix, Matrix]:
    """Scale both by the column means and deviations of `train`; constant columns are only shifted."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def _rbf(squares: Matrix, gamma: float) -> Matrix:
    """In place, to save memory."""
    squares *= -gamma
    return np.exp(squares, out=squares)
