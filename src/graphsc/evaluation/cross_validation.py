"""Nested cross-validation of vectors or Gram matrices: how well classes are predicted from embeddings.

Each outer fold is predicted by a classifier whose one parameter was chosen by cross-validation inside the
training set, optionally with labels for a share of the training set only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.evaluation.classifiers import GridClassifier, make_classifier
from graphsc.evaluation.protocol import Protocol

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """Predictions of a nested cross-validation and the parameters chosen; every accuracy follows from it.

    Args:
        predictions: n, the class predicted when the graph was in the test fold.
        fold: n, the fold in which each graph was tested.
        labels: n, the true classes.
        chosen: the value of the grid chosen in each fold.
        inner: folds x grid, the mean inner accuracy of each value.
    """

    predictions: NDArray[np.int64]
    fold: NDArray[np.int64]
    labels: NDArray[np.int64]
    chosen: tuple[float, ...]
    inner: NDArray[np.float64]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """The accuracy of each fold, between 0 and 1."""
        correct = np.bincount(self.fold, self.predictions == self.labels)
        return correct / np.bincount(self.fold)

    @property
    def accuracy(self) -> float:
        """The mean accuracy over folds."""
        return float(self.accuracies.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation over folds (ddof 0)."""
        return float(self.accuracies.std())


class Split(NamedTuple):
    """One fold: predicted classes of the test rows, the value chosen, and mean inner accuracies (grid)."""

    predictions: NDArray[np.int64]
    chosen: float
    inner: NDArray[np.float64]


@contextmanager
def _quiet_single_thread() -> Iterator[None]:
    """One BLAS thread, and no warnings of solvers that stop early (on purpose, or evaluated as they are).

    The linear systems are small and many: synchronising threads costs more than it gains, and `jobs` uses
    more cores. Entered once around all jobs, because limits and filters belong to the process.
    """
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


@_quiet_single_thread()
def evaluate(
    values: ArrayLike,
    labels: ArrayLike,
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    gram: bool = False,
    fold: ArrayLike | None = None,
    jobs: int = 1,
) -> Evaluation:
    """Evaluate vectors or a Gram matrix by nested cross-validation.

    Args:
        values: n x d vectors, or an n x n Gram matrix if `gram`.
        labels: n integers, or anything that `class_codes` accepts; predictions are then codes.
        protocol: the rules; `Protocol()` by default.
        seed: of the folds, and of the choice of labelled graphs.
        gram: whether `values` is a Gram matrix.
        fold: n, the test fold of each graph, from 0; drawn from `seed` by default.
        jobs: the number of folds evaluated in parallel, in threads.
    """
    nested = NestedCrossValidation.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    return nested.evaluate(outer, _labelled_rows(nested, outer, nested.protocol.label_share, seed), jobs)


@_quiet_single_thread()
def inner_accuracies(
    values: ArrayLike,
    labels: ArrayLike,
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    gram: bool = False,
    fold: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Only the `inner` of `evaluate` (folds x grid), for choosing settings: no test fold is predicted."""
    nested = NestedCrossValidation.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    training_sets = _labelled_rows(nested, outer, nested.protocol.label_share, seed)
    return np.stack([nested.inner(train) for train in training_sets])


@_quiet_single_thread()
def evaluate_split(
    values: ArrayLike,
    labels: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    protocol: Protocol | None = None,
    *,
    gram: bool = False,
    seed: int = 0,
    number: int = 0,
) -> Split:
    """Evaluate vectors on one split: choose the parameter in the rows `train`, predict the rows `test`.

    For encoders that differ between folds because each was trained without its test graphs. `seed` and the
    fold's `number` determine the labelled rows if the protocol has a label share; the rest is as in
    `evaluate`.
    """
    nested = NestedCrossValidation.of(values, labels, protocol, gram)
    share = nested.protocol.label_share
    labelled = _labelled_share(np.asarray(train, np.int64), nested.codes, share, seed, number)
    split = nested.split(labelled, np.asarray(test, np.int64))
    return split._replace(predictions=nested.classes[split.predictions])


@_quiet_single_thread()
def few_labels(
    values: ArrayLike,
    labels: ArrayLike,
    protocol: Protocol | None = None,
    *,
    shares: Sequence[float] = (0.01, 0.05, 0.1, 0.5, 1.0),
    seed: int = 0,
    gram: bool = False,
    fold: ArrayLike | None = None,
    jobs: int = 1,
) -> dict[float, Evaluation]:
    """Evaluate vectors when only a share of each training set has labels; one evaluation per share.

    The test folds are those of `evaluate` with the same seed, and a share of 1 gives the same result. Each
    class keeps its share of the training set, rounded, but at least two graphs; the graphs of a smaller share
    are a subset of those of a larger one. The smallest class limits the number of inner folds. The other
    arguments are those of `evaluate`.
    """
    for share in shares:
        replace(protocol or Protocol(), label_share=share)  # raises where the share is invalid
    nested = NestedCrossValidation.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    return {
        share: nested.evaluate(outer, _labelled_rows(nested, outer, share, seed), jobs) for share in shares
    }


@dataclass(frozen=True)
class NestedCrossValidation:
    """Classes numbered without gaps (`codes`), the label of each code (`classes`), and their classifier."""

    classifier: GridClassifier
    protocol: Protocol
    codes: NDArray[np.int64]
    classes: NDArray[np.int64]

    @classmethod
    def of(
        cls, values: ArrayLike, labels: ArrayLike, protocol: Protocol | None, gram: bool
    ) -> NestedCrossValidation:
        """Check values and labels; `protocol` defaults to `Protocol()`."""
        protocol = protocol or Protocol()
        matrix, classes, codes = _check_inputs(values, labels, gram)
        return cls(make_classifier(matrix, codes, protocol, gram=gram), protocol, codes, classes)

    def outer(self, seed: int, fold: ArrayLike | None) -> NDArray[np.int64]:
        """The test fold of each row: `fold` after a check, or drawn from the seed."""
        if fold is None:
            return stratified_folds(self.codes, self.protocol.folds, seed)
        return _check_folds(fold, self.codes)

    def inner(self, train: Rows) -> NDArray[np.float64]:
        """The mean inner accuracy of each value of the grid."""
        codes = self.codes[train]
        counts = np.bincount(codes)
        folds = max(2, min(self.protocol.inner_folds, int(counts[counts > 0].min())))
        shuffled = self.protocol.inner_order == "shuffled"
        splitter = StratifiedKFold(folds, shuffle=shuffled, random_state=0 if shuffled else None)
        accuracies = []
        for fitted, validated in splitter.split(train, codes):
            predictions = self.classifier.predict(train[fitted], train[validated], self.protocol.grid)
            accuracies.append((predictions == codes[validated]).mean(axis=1))
        means: NDArray[np.float64] = np.mean(accuracies, axis=0)
        return means

    def split(self, train: Rows, test: Rows) -> Split:
        """Choose the parameter by inner folds of `train`, then predict `test`."""
        inner = self.inner(train)
        best = self.protocol.grid[int(inner.argmax())]  # the first of equally good values
        return Split(self.classifier.predict(train, test, [best])[0], best, inner)

    def evaluate(self, outer: NDArray[np.int64], training_sets: Sequence[Rows], jobs: int = 1) -> Evaluation:
        """Evaluate every fold, `jobs` at a time, with the labelled training rows of each."""

        def evaluate_fold(number: int) -> Split:
            return self.split(training_sets[number], np.flatnonzero(outer == number))

        numbers = range(len(training_sets))
        if jobs == 1:
            splits = [evaluate_fold(number) for number in numbers]
        else:
            # Threads suffice: compiled loops and BLAS, which take the time, release the interpreter lock.
            with ThreadPoolExecutor(jobs) as pool:
                splits = list(pool.map(evaluate_fold, numbers))
        predictions = np.empty(len(outer), dtype=np.int64)
        for number, split in enumerate(splits):
            predictions[outer == number] = split.predictions
        return Evaluation(
            self.classes[predictions],
            outer,
            self.classes[self.codes],
            tuple(split.chosen for split in splits),
            np.stack([split.inner for split in splits]),
        )


def _labelled_rows(
    nested: NestedCrossValidation, outer: NDArray[np.int64], share: float, seed: int
) -> list[Rows]:
    """The labelled rows of the training set of each fold."""
    return [
        _labelled_share(np.flatnonzero(outer != number), nested.codes, share, seed, number)
        for number in range(int(outer.max()) + 1)
    ]


def _labelled_share(train: Rows, codes: NDArray[np.int64], share: float, seed: int, number: int) -> Rows:
    """A random share of each class of a training set, in ascending order; unchanged for a share of 1."""
    if share == 1:
        return train
    rows = []
    for code in np.unique(codes[train]):
        members = train[codes[train] == code]
        order = numpy_generator(seed, f"few labels of class {code}", number).permutation(len(members))
        rows.append(members[order[: max(2, round(share * len(members)))]])
    return np.sort(np.concatenate(rows))


def class_codes(labels: ArrayLike) -> tuple[NDArray[np.int64], list[str]]:
    """Number the classes in sorted order: the code of each graph (n), and the name of each code.

    `labels` are n numbers or strings, also as n x 1; a missing label (NaN or None) is an error.
    """
    column = np.asarray(labels)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise DataError(
            f"labels have the shape {column.shape}", hint="choose one task, so that each graph has one label"
        )
    # NaN is the only value that differs from itself.
    missing = np.array([value is None or value != value for value in column.tolist()], dtype=bool)
    if missing.any():
        raise DataError(
            f"{missing.sum()} of {len(column)} graphs have no label",
            where=f"first graph {missing.argmax()}",
            hint="leave these graphs out, or choose a task in which each graph has a label",
        )
    values, codes = np.unique(column, return_inverse=True)
    return codes.astype(np.int64), [_class_name(value) for value in values.tolist()]


def stratified_folds(
    labels: NDArray[np.int64], folds: int = 10, seed: int = 0, *, names: Sequence[str] | None = None
) -> NDArray[np.int64]:
    """The test fold of each graph (n), by `StratifiedKFold(folds, shuffle=True, random_state=seed)`.

    `labels` are n codes, as returned by `class_codes`, and `names` their names in error messages. A class
    with fewer graphs than folds is an error.
    """
    if folds < 2:
        raise ConfigError(f"folds is {folds}", hint="use 2 or more")
    codes, code_names = class_codes(labels)
    counts = check_classes(codes)
    rarest = int(counts.argmin())
    if counts[rarest] < folds:
        name = names[int(np.unique(labels)[rarest])] if names is not None else code_names[rarest]
        count = int(counts[rarest])
        raise DataError(
            f"class {name} has {count} graph{'s' * (count > 1)}, {folds} folds asked",
            hint=f"use --folds {count}" if count > 1 else "leave this class out, or merge it with another",
        )
    fold = np.empty(len(codes), dtype=np.int64)
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for number, (_, test) in enumerate(splitter.split(codes, codes)):
        fold[test] = number
    return fold


def size_folds(labels: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The test fold of each graph (n): 0 for the larger half of its class, 1 for the smaller.

    `labels` are n codes, `sizes` n numbers of nodes. The smaller half has one graph more if the number is
    odd; graphs of equal size are divided in their order.
    """
    codes, _ = class_codes(labels)
    counts = check_classes(codes)
    if counts.min() < 2:
        raise DataError("a class has one graph, two halves asked", hint="leave this class out")
    order = np.lexsort((np.arange(len(codes)), sizes, codes))
    place = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = place < (np.repeat(counts, counts) + 1) // 2
    return fold


def check_classes(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of graphs of each class; raises `DataError` unless there are at least two classes."""
    counts = np.bincount(codes)
    if len(codes) == 0:
        raise DataError("there are no labels to predict", hint="give at least two graphs of two classes")
    if (counts > 0).sum() < 2:
        raise DataError(
            f"all {len(codes)} graphs are of one class",
            hint="a probe tells classes apart; give graphs of at least two, or choose another task",
        )
    return counts


def _class_name(value: object) -> str:
    """1.0 as 1, because class labels are stored as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_inputs(
    values: ArrayLike, labels: ArrayLike, gram: bool
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The values in double precision, the label of each code, and the codes without gaps."""
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    raw_labels = np.asarray(labels)
    codes, names = class_codes(raw_labels)
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
    classes = np.unique(raw_labels) if raw_labels.dtype.kind in "iu" else np.arange(len(names))
    return matrix, classes.astype(np.int64), codes


def _check_folds(fold: ArrayLike, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    outer = np.asarray(fold)
    if outer.shape != codes.shape or outer.dtype.kind not in "iu" or outer.min() < 0:
        raise DataError("fold is not one number from 0 for each graph", hint="give n whole numbers")
    sizes = np.bincount(outer)
    if len(sizes) < 2 or (sizes == 0).any():
        raise DataError(
            f"the folds have {sizes.tolist()} graphs", hint="give two or more, none of them empty"
        )
    return outer.astype(np.int64)
