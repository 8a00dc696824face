"""How well classes can be read off vectors: nested cross-validation, also with few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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
    protocol = protocol or Protocol()
    matrix, known, codes = _check(values, labels, gram)
    outer = _folds(codes, protocol, seed, fold)
    classifier = make_classifier(matrix, codes, protocol, gram=gram)
    splits = _run(classifier, codes, protocol, outer, None, jobs)
    return _evaluation(splits, outer, known, codes)


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
    protocol = protocol or Protocol()
    matrix, _, codes = _check(values, labels, gram)
    outer = _folds(codes, protocol, seed, fold)
    classifier = make_classifier(matrix, codes, protocol, gram=gram)
    numbers = range(int(outer.max()) + 1)
    return np.stack([_inner(classifier, codes, protocol, np.flatnonzero(outer != k)) for k in numbers])


@_undisturbed()
def evaluate_split(
    values: ArrayLike,
    labels: ArrayLike,
    train: ArrayLike,
    test: ArrayLike,
    protocol: Protocol | None = None,
    *,
    gram: bool = False,
) -> Split:
    """Judge vectors on one split: train on the rows `train`, choose inside them, predict the rows `test`.

    For encoders that differ from fold to fold, as when each was trained without its test graphs.
    """
    protocol = protocol or Protocol()
    matrix, known, codes = _check(values, labels, gram)
    classifier = make_classifier(matrix, codes, protocol, gram=gram)
    split = _split(classifier, codes, protocol, np.asarray(train, np.int64), np.asarray(test, np.int64))
    return split._replace(predictions=known[split.predictions])


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
    protocol = protocol or Protocol()
    for share in shares:
        if not 0 < share <= 1:
            raise ConfigError(f"a share of {share} of the labels", hint="use shares above 0 and up to 1")
    matrix, known, codes = _check(values, labels, gram)
    outer = _folds(codes, protocol, seed, fold)
    classifier = make_classifier(matrix, codes, protocol, gram=gram)
    found = {}
    for share in shares:
        kept = [
            _share_of(np.flatnonzero(outer != number), codes, share, seed, number)
            for number in range(outer.max() + 1)
        ]
        splits = _run(classifier, codes, protocol, outer, kept, jobs)
        found[share] = _evaluation(splits, outer, known, codes)
    return found


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


def _folds(
    codes: NDArray[np.int64], protocol: Protocol, seed: int, fold: ArrayLike | None
) -> NDArray[np.int64]:
    if fold is None:
        return stratified_folds(codes, protocol.folds, seed)
    outer = np.asarray(fold)
    if outer.shape != codes.shape or outer.dtype.kind not in "iu" or outer.min() < 0:
        raise DataError("fold does not say for each graph a number from 0", hint="give n whole numbers")
    sizes = np.bincount(outer)
    if len(sizes) < 2 or (sizes == 0).any():
        raise DataError(
            f"the folds have {sizes.tolist()} graphs", hint="give two or more, none of them empty"
        )
    return outer.astype(np.int64)


def _run(
    classifier: Grid,
    codes: NDArray[np.int64],
    protocol: Protocol,
    outer: NDArray[np.int64],
    kept: list[Rows] | None,
    jobs: int,
) -> list[Split]:
    """Every fold, `jobs` at a time; `kept` are the training rows with labels, where not all have one."""

    def one(number: int) -> Split:
        train = np.flatnonzero(outer != number) if kept is None else kept[number]
        return _split(classifier, codes, protocol, train, np.flatnonzero(outer == number))

    numbers = range(int(outer.max()) + 1)
    if jobs == 1:
        return [one(number) for number in numbers]
    # Threads, because the time goes into libsvm and BLAS, which let others run.
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, numbers))


def _split(classifier: Grid, codes: NDArray[np.int64], protocol: Protocol, train: Rows, test: Rows) -> Split:
    """Choose by inner folds; then predict the test."""
    inner = _inner(classifier, codes, protocol, train)
    # The first of equally good values.
    best = protocol.grid[int(inner.argmax())]
    return Split(classifier.predict(train, test, [best])[0], best, inner)


def _inner(
    classifier: Grid, codes: NDArray[np.int64], protocol: Protocol, train: Rows
) -> NDArray[np.float64]:
    """Mean accuracy of each value on inner folds, made in the order of the rows as in `GridSearchCV`."""
    counts = np.bincount(codes[train])
    folds = max(2, min(protocol.inner_folds, int(counts[counts > 0].min())))
    accuracies = [
        (classifier.predict(train[one], train[other], protocol.grid) == codes[train[other]]).mean(axis=1)
        for one, other in StratifiedKFold(folds).split(train, codes[train])
    ]
    found: NDArray[np.float64] = np.mean(accuracies, axis=0)
    return found


def _share_of(train: Rows, codes: NDArray[np.int64], share: float, seed: int, number: int) -> Rows:
    """Some rows of each class of a training part, in ascending order."""
    rows = []
    for code in np.unique(codes[train]):
        members = train[codes[train] == code]
        order = numpy_generator(seed, f"few labels of class {code}", number).permutation(len(members))
        rows.append(members[order[: max(2, round(share * len(members)))]])
    return np.sort(np.concatenate(rows))


def _evaluation(
    splits: list[Split], outer: NDArray[np.int64], known: NDArray[np.int64], codes: NDArray[np.int64]
) -> Evaluation:
    predictions = np.empty(len(outer), dtype=np.int64)
    for number, split in enumerate(splits):
        predictions[outer == number] = split.predictions
    return Evaluation(
        known[predictions],
        outer,
        known[codes],
        tuple(split.chosen for split in splits),
        np.stack([split.inner for split in splits]),
    )
