"""Scores on several tasks at once, where a graph may lack the label of some.

A task is a pair of arrays of equal length: the labels that are there, and the scores given for them. A task
on which a figure means nothing (ROC-AUC with one class only) has NaN and is left out of means, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from graphsc.core.errors import DataError

Kind = Literal["classification", "regression"]


class Task(NamedTuple):
    """Labels (0 and 1, or numbers) and scores of one task, without what is missing."""

    labels: NDArray[np.floating]
    scores: NDArray[np.floating]


def tasks_of(labels: NDArray[np.floating], scores: NDArray[np.floating]) -> list[Task]:
    """The columns of two graphs x tasks tables, without the rows whose label is NaN."""
    return [
        Task(column[there], given[there])
        for column, given in zip(labels.T, scores.T, strict=True)
        for there in (~np.isnan(column),)
    ]


def roc_auc(task: Task) -> float:
    """The share of (positive, negative) pairs in which the positive scores higher, ties counting half."""
    positive = task.labels > 0.5
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return np.nan
    ranks = rankdata(task.scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def average_precision(task: Task) -> float:
    """Precision averaged over the positives as the threshold falls; equal scores fall together."""
    positive = task.labels > 0.5
    if not positive.any():
        return np.nan
    order = np.argsort(-task.scores, kind="stable")
    scores, hits = task.scores[order], np.cumsum(positive[order])
    last = np.append(scores[1:] != scores[:-1], True)  # of each run of equal scores
    found = hits[last]
    precision = found / (np.flatnonzero(last) + 1)
    return float((np.diff(found, prepend=0) * precision).sum() / found[-1])


def rmse(task: Task) -> float:
    """The root of the mean squared error, in the units of the labels."""
    return float(np.sqrt(np.square(task.labels - task.scores).mean())) if len(task.labels) else np.nan


def mae(task: Task) -> float:
    """The mean absolute error, in the units of the labels."""
    return float(np.abs(task.labels - task.scores).mean()) if len(task.labels) else np.nan


MEASURES = {
    "classification": {"roc_auc": roc_auc, "average_precision": average_precision},
    "regression": {"rmse": rmse, "mae": mae},
}


def measure(tasks: Sequence[Task], kind: Kind) -> dict[str, NDArray[np.float64]]:
    """Every measure of this kind by name, one value a task.

    Average precision is given where ROC-AUC is, so that both are means over the same tasks.
    """
    found = {
        name: np.array([each(task) for task in tasks], dtype=np.float64)
        for name, each in MEASURES[kind].items()
    }
    if kind == "classification":
        found["average_precision"][np.isnan(found["roc_auc"])] = np.nan
    return found


def mean_over_tasks(values: NDArray[np.float64]) -> float:
    """The plain mean over the tasks that have a value; NaN where none has."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else np.nan


def skipped(values: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """The tasks without a value, by name."""
    return [name for name, value in zip(names, values, strict=True) if np.isnan(value)]


# Which classes are told apart: the confusion matrix, and the scores of each class.


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
