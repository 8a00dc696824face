"""How well classes can be read off vectors: nested cross-validation, also with few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from graphsc.core.random import numpy_generator
from graphsc.evaluation.nested import Evaluation, Nested, Rows, Split
from graphsc.evaluation.protocol import Protocol


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
