"""Which classes are told apart: the confusion matrix, and the scores of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError


@dataclass(frozen=True)
class ClassScores:
    """Shares by class, nan where nothing can be said: no graph was given the class, or none has it."""

    precision: NDArray[np.float64]  # of those given the class, how many have it
    recall: NDArray[np.float64]  # of those that have it, how many were given it
    f1: NDArray[np.float64]  # their harmonic mean: 2 right / (given + have)
    graphs: NDArray[np.int64]  # that have it


def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Graphs by true class (rows) and predicted class (columns), classes x classes."""
    true, predicted = np.asarray(labels, np.int64), np.asarray(predictions, np.int64)
    if true.shape != predicted.shape or true.ndim != 1:
        raise DataError(f"labels of shape {true.shape} and predictions of shape {predicted.shape}")
    if len(true) and not 0 <= min(true.min(), predicted.min()) <= max(true.max(), predicted.max()) < classes:
        raise DataError(f"a class is not in 0 .. {classes - 1}")
    return np.bincount(classes * true + predicted, minlength=classes**2).reshape(classes, classes)


def class_scores(confusion: NDArray[np.int64]) -> ClassScores:
    """Precision, recall and F1 of each class, from the confusion matrix."""
    right = np.diag(confusion).astype(np.float64)
    given, have = confusion.sum(axis=0), confusion.sum(axis=1)
    return ClassScores(_share(right, given), _share(right, have), _share(2 * right, given + have), have)


def _share(part: NDArray[np.float64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    found = np.full(len(part), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found
