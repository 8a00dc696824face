"""How well classes can be read off vectors: nested cross-validation, also with few labels."""

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
from graphsc.evaluation.classifiers import Grid, make_classifier
from graphsc.evaluation.protocol import Protocol

# Folds in which every class has its share, and class labels as codes.


def class_codes(labels: ArrayLike) -> tuple[NDArray[np.int64], list[str]]:
    """Number the classes in sorted order: the code of each graph (n), and the name of each code.

    labels: n numbers or strings, also as n x 1. A missing label (NaN, None) is refused: a probe cannot
    be right or wrong about it.
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
    return codes.astype(np.int64), [_name(value) for value in values.tolist()]


def stratified_folds(
    labels: NDArray[np.int64], folds: int = 10, seed: int = 0, *, names: Sequence[str] | None = None
) -> NDArray[np.int64]:
    """The fold each graph is tested in (n), drawn from `seed` so that each class is spread evenly.

    labels: n codes, as `class_codes` gives them; `names` are the classes' names in errors. The folds are
    those of scikit-learn's `StratifiedKFold(folds, shuffle=True, random_state=seed)`.
    """
    if folds < 2:
        raise ConfigError(f"folds is {folds}", hint="use 2 or more")
    codes, spelled = class_codes(labels)
    counts = check_classes(codes)
    rarest = int(counts.argmin())
    if counts[rarest] < folds:
        name = names[int(np.unique(labels)[rarest])] if names is not None else spelled[rarest]
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
    """Two folds (n): 0 for the larger half of each class, 1 for the smaller, which has one more if odd.

    labels: n codes, sizes: n numbers of nodes. Graphs of one size are divided in their order.
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
    """How many graphs each class has; fewer than two classes are refused."""
    counts = np.bincount(codes)
    if len(codes) == 0:
        raise DataError("there are no labels to predict", hint="give at least two graphs of two classes")
    if (counts > 0).sum() < 2:
        raise DataError(
            f"all {len(codes)} graphs are of one class",
            hint="a probe tells classes apart; give graphs of at least two, or choose another task",
        )
    return counts


def _name(value: object) -> str:
    """1.0 as 1, because class labels are stored as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


# Nested cross-validation: outer folds are predicted by classifiers chosen inside their training parts.


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


@contextmanager
def _undisturbed() -> Iterator[None]:
    """One BLAS thread, and no warnings of solvers broken off (on purpose, or judged as they stand).

    The systems are small and many: threads that wait for the next one cost more than they bring, and `jobs`
    is there to use more cores. Around all jobs, because limits and filters belong to the process.
    """
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield


@_undisturbed()
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
    """Judge vectors by a protocol: each fold is predicted by a classifier that has never seen it.

    values: n x d vectors, or an n x n Gram matrix with `gram`. labels: n whole numbers, or anything
    `class_codes` takes, and then predictions are codes. Folds are drawn from `seed`, or given as `fold`
    (n, from 0). `jobs` folds are worked on at once, in threads.
    """
    nested = Nested.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    return nested.evaluate(outer, _labelled(nested, outer, nested.protocol.label_share, seed), jobs)


@_undisturbed()
def inner_accuracies(
    values: ArrayLike,
    labels: ArrayLike,
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    gram: bool = False,
    fold: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """The `inner` of `evaluate` (folds x grid) alone: no test fold is predicted, so none can be looked at."""
    nested = Nested.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    parts = _labelled(nested, outer, nested.protocol.label_share, seed)
    return np.stack([nested.inner(part) for part in parts])


@_undisturbed()
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
    """Judge vectors on one split: train on the rows `train`, choose inside them, predict the rows `test`.

    For encoders that differ from fold to fold, as when each was trained without its test graphs. `seed` and
    the fold's `number` decide which rows have labels where the protocol leaves only a share of them.
    """
    nested = Nested.of(values, labels, protocol, gram)
    rows = np.asarray(train, np.int64)
    kept = _share_of(rows, nested.codes, nested.protocol.label_share, seed, number)
    split = nested.split(kept, np.asarray(test, np.int64))
    return split._replace(predictions=nested.known[split.predictions])


@_undisturbed()
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
    """Judge vectors when only a share of each training part has labels: one evaluation a share.

    Test folds are those of `evaluate` with the same seed, and a share of 1 gives the same result. Each class
    keeps its share of the training part, rounded, but two graphs at least; a smaller share's graphs are among
    a larger one's. The smallest class limits the number of inner folds.
    """
    for share in shares:
        replace(protocol or Protocol(), label_share=share)  # refuses what is no share
    nested = Nested.of(values, labels, protocol, gram)
    outer = nested.outer(seed, fold)
    return {share: nested.evaluate(outer, _labelled(nested, outer, share, seed), jobs) for share in shares}


def _labelled(nested: Nested, outer: NDArray[np.int64], share: float, seed: int) -> list[Rows]:
    """The rows with labels of each fold's training part."""
    return [
        _share_of(np.flatnonzero(outer != number), nested.codes, share, seed, number)
        for number in range(int(outer.max()) + 1)
    ]


def _share_of(train: Rows, codes: NDArray[np.int64], share: float, seed: int, number: int) -> Rows:
    """Some rows of each class of a training part, in ascending order; as given for a share of 1."""
    if share == 1:
        return train
    rows = []
    for code in np.unique(codes[train]):
        members = train[codes[train] == code]
        order = numpy_generator(seed, f"few labels of class {code}", number).permutation(len(members))
        rows.append(members[order[: max(2, round(share * len(members)))]])
    return np.sort(np.concatenate(rows))
