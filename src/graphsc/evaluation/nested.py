"""Nested cross-validation: outer folds are predicted by classifiers chosen inside their training parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedKFold

from graphsc.core.errors import DataError
from graphsc.evaluation.classifiers import Grid, make_classifier
from graphsc.evaluation.protocol import Protocol
from graphsc.evaluation.splits import check_classes, class_codes, stratified_folds

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """What a probe predicted, and how it chose; every number printed can be made from this.

    Args:
        predictions: n, the class predicted when the graph was in the test fold.
        fold: n, the fold each graph was tested in.
        labels: n, the true classes.
        chosen: the value of the grid chosen in each fold.
        inner: folds x grid, the mean inner accuracy by which it was chosen.
    """

    predictions: NDArray[np.int64]
    fold: NDArray[np.int64]
    labels: NDArray[np.int64]
    chosen: tuple[float, ...]
    inner: NDArray[np.float64]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """The share of right answers in each fold."""
        right = np.bincount(self.fold, self.predictions == self.labels)
        return right / np.bincount(self.fold)

    @property
    def accuracy(self) -> float:
        """The mean over folds, between 0 and 1."""
        return float(self.accuracies.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation over folds (the sum of squares divided by their number)."""
        return float(self.accuracies.std())


class Split(NamedTuple):
    """One fold: codes predicted for its test rows, the value chosen, mean inner accuracies (grid)."""

    predictions: NDArray[np.int64]
    chosen: float
    inner: NDArray[np.float64]


@dataclass(frozen=True)
class Nested:
    """Values and classes under one protocol, ready to be split.

    `codes` are classes without gaps, `known` what each code stands for.
    """

    classifier: Grid
    protocol: Protocol
    codes: NDArray[np.int64]
    known: NDArray[np.int64]

    @classmethod
    def of(cls, values: ArrayLike, labels: ArrayLike, protocol: Protocol | None, gram: bool) -> Nested:
        """Check what is to be judged; `Protocol()` where none is given."""
        protocol = protocol or Protocol()
        matrix, known, codes = _check(values, labels, gram)
        return cls(make_classifier(matrix, codes, protocol, gram=gram), protocol, codes, known)

    def outer(self, seed: int, fold: ArrayLike | None) -> NDArray[np.int64]:
        """The fold of each row: drawn from the seed, or as given."""
        return (
            stratified_folds(self.codes, self.protocol.folds, seed)
            if fold is None
            else _checked_folds(fold, self.codes)
        )

    def inner(self, train: Rows) -> NDArray[np.float64]:
        """Mean accuracy of each value on inner folds."""
        codes = self.codes[train]
        counts = np.bincount(codes)
        folds = max(2, min(self.protocol.inner_folds, int(counts[counts > 0].min())))
        shuffled = self.protocol.inner_order == "shuffled"
        splitter = StratifiedKFold(folds, shuffle=shuffled, random_state=0 if shuffled else None)
        accuracies = [
            (self.classifier.predict(train[one], train[other], self.protocol.grid) == codes[other]).mean(
                axis=1
            )
            for one, other in splitter.split(train, codes)
        ]
        found: NDArray[np.float64] = np.mean(accuracies, axis=0)
        return found

    def split(self, train: Rows, test: Rows) -> Split:
        """Choose by inner folds; then predict the test."""
        inner = self.inner(train)
        # The first of equally good values.
        best = self.protocol.grid[int(inner.argmax())]
        return Split(self.classifier.predict(train, test, [best])[0], best, inner)

    def evaluate(self, outer: NDArray[np.int64], kept: list[Rows] | None = None, jobs: int = 1) -> Evaluation:
        """Every fold, `jobs` at a time; `kept` are the training rows with labels, where not all have one."""

        def one(number: int) -> Split:
            train = np.flatnonzero(outer != number) if kept is None else kept[number]
            return self.split(train, np.flatnonzero(outer == number))

        numbers = range(int(outer.max()) + 1)
        if jobs == 1:
            splits = [one(number) for number in numbers]
        else:
            # Threads, because the time goes into libsvm and BLAS, which let others run.
            with ThreadPoolExecutor(jobs) as pool:
                splits = list(pool.map(one, numbers))
        predictions = np.empty(len(outer), dtype=np.int64)
        for number, split in enumerate(splits):
            predictions[outer == number] = split.predictions
        return Evaluation(
            self.known[predictions],
            outer,
            self.known[self.codes],
            tuple(split.chosen for split in splits),
            np.stack([split.inner for split in splits]),
        )


def _check(
    values: ArrayLike, labels: ArrayLike, gram: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The values in double precision, what each code stands for, and codes without gaps."""
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    given = np.asarray(labels)
    codes, names = class_codes(given)
    check_classes(codes)
    if matrix.ndim != 2 or len(matrix) != len(codes):
        raise DataError(
            f"values have the shape {matrix.shape}, and there are {len(codes)} labels",
            hint="give one row and one label for each graph",
        )
    if gram and matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"a Gram matrix has the shape {matrix.shape}", hint="it needs as many columns as rows"
        )
    if matrix.shape[1] == 0:
        raise DataError("the vectors have no columns", hint="give vectors of at least one number")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        raise DataError(
            f"{(~finite).sum()} of {len(matrix)} vectors hold NaN or infinity",
            where=f"first graph {finite.argmin()}",
            hint="train with a lower learning rate, or leave these graphs out",
        )
    known = np.unique(given) if given.dtype.kind in "iu" else np.arange(len(names))
    return matrix, known.astype(np.int64), codes


def _checked_folds(fold: ArrayLike, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    outer = np.asarray(fold)
    if outer.shape != codes.shape or outer.dtype.kind not in "iu" or outer.min() < 0:
        raise DataError("fold does not say for each graph a number from 0", hint="give n whole numbers")
    sizes = np.bincount(outer)
    if len(sizes) < 2 or (sizes == 0).any():
        raise DataError(
            f"the folds have {sizes.tolist()} graphs", hint="give two or more, none of them empty"
        )
    return outer.astype(np.int64)
