"""Folds in which every class has its share, and class labels as codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedKFold

from graphsc.core.errors import ConfigError, DataError


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
