"""Metrics of several tasks with missing labels, and scores per class.

A metric that is undefined for a task (ROC-AUC with one class only) is NaN, and the task is left out of means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError

Kind = Literal["classification", "regression"]


class Task(NamedTuple):
    """Labels (0 and 1, or numbers) and scores of one task, without missing labels; arrays of equal length."""

    labels: NDArray[np.floating]
    scores: NDArray[np.floating]


def tasks_of(labels: NDArray[np.floating], scores: NDArray[np.floating]) -> list[Task]:
    """Split two graphs x tasks tables into tasks, each without the rows whose label is NaN."""
    tasks = []
    for task_labels, task_scores in zip(labels.T, scores.T, strict=True):
        present = ~np.isnan(task_labels)
        tasks.append(Task(task_labels[present], task_scores[present]))
    return tasks


def roc_auc(task: Task) -> float:
    """The share of (positive, negative) pairs in which the positive scores higher, ties counting half.

    Equal to scikit-learn's `roc_auc_score` and several times faster, which counts for hundreds of tasks
    after every epoch.
    """
    positive = task.labels > 0.5
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return np.nan
    ranks = _mean_ranks(task.scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def _mean_ranks(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The rank of each value from 1; equal values share their mean rank. `scipy.stats` is slow to import."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[place]
    return ranks


def average_precision(task: Task) -> float:
    """Precision averaged over the positives as the threshold falls past each distinct score.

    Equal to scikit-learn's `average_precision_score`, and faster for the same reason as `roc_auc`.
    """
    positive = task.labels > 0.5
    if not positive.any():
        return np.nan
    order = np.argsort(-task.scores, kind="stable")
    scores, hits = task.scores[order], np.cumsum(positive[order])
    last = np.append(scores[1:] != scores[:-1], True)  # of each run of equal scores
    recalled = hits[last]
    precision = recalled / (np.flatnonzero(last) + 1)
    return float((np.diff(recalled, prepend=0) * precision).sum() / recalled[-1])


def rmse(task: Task) -> float:
    """The root of the mean squared error, in the units of the labels."""
    return float(np.sqrt(np.square(task.labels - task.scores).mean())) if len(task.labels) else np.nan


def mae(task: Task) -> float:
    """The mean absolute error, in the units of the labels."""
    return float(np.abs(task.labels - task.scores).mean()) if len(task.labels) else np.nan


def r2(task: Task) -> float:
    """The share of the labels' variance that is explained; 0 for their mean, negative for worse than it."""
    if len(task.labels) < 2:
        return np.nan
    labels, scores = np.asarray(task.labels, np.float64), np.asarray(task.scores, np.float64)
    total = np.square(labels - labels.mean()).sum()
    return float(1 - np.square(labels - scores).sum() / total) if total > 0 else np.nan


def spearman(task: Task) -> float:
    """Spearman's correlation of the ranks of labels and scores; NaN where all labels or scores are equal."""
    if len(task.labels) < 2:
        return np.nan
    one, other = (ranks - ranks.mean() for ranks in map(_mean_ranks, task))
    norm = np.sqrt(np.square(one).sum() * np.square(other).sum())
    return float((one * other).sum() / norm) if norm > 0 else np.nan


MEASURES = {
    "classification": {"roc_auc": roc_auc, "average_precision": average_precision},
    "regression": {"rmse": rmse, "mae": mae, "r2": r2, "spearman": spearman},
}
ERRORS = ("rmse", "mae")  # metrics of which less is better


def measure(tasks: Sequence[Task], kind: Kind) -> dict[str, NDArray[np.float64]]:
    """Compute every metric of this kind: an array with one value per task, by metric name.

    Average precision is NaN wherever ROC-AUC is, so that both are means over the same tasks.
    """
    values = {
        name: np.array([metric(task) for task in tasks], dtype=np.float64)
        for name, metric in MEASURES[kind].items()
    }
    if kind == "classification":
        values["average_precision"][np.isnan(values["roc_auc"])] = np.nan
    return values


def mean_over_tasks(values: NDArray[np.float64]) -> float:
    """The mean over the tasks that have a value; NaN if none has."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else np.nan


def skipped(values: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """The names of the tasks without a value."""
    return [name for name, value in zip(names, values, strict=True) if np.isnan(value)]


@dataclass(frozen=True)
class ClassScores:
    """Scores of each class, and its number of graphs."""

    precision: NDArray[np.float64]  # NaN for a class that is never predicted
    recall: NDArray[np.float64]  # NaN for a class without graphs
    f1: NDArray[np.float64]  # NaN for a class that is neither present nor predicted
    graphs: NDArray[np.int64]


def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, classes: int) -> NDArray[np.int64]:
    """The number of graphs by true class (rows) and predicted class (columns): classes x classes."""
    from sklearn import metrics  # not at the top: slow to import, and only reports need it

    true, predicted = np.asarray(labels, np.int64), np.asarray(predictions, np.int64)
    if true.shape != predicted.shape or true.ndim != 1:
        raise DataError(f"labels of shape {true.shape} and predictions of shape {predicted.shape}")
    if not len(true):
        return np.zeros((classes, classes), np.int64)
    if not 0 <= min(true.min(), predicted.min()) <= max(true.max(), predicted.max()) < classes:
        raise DataError(f"a class is not in 0 .. {classes - 1}")
    matrix: NDArray[np.int64] = metrics.confusion_matrix(true, predicted, labels=np.arange(classes))
    return matrix


def class_scores(confusion: NDArray[np.int64]) -> ClassScores:
    """Precision, recall and F1 of each class, from a confusion matrix (which may be a sum over seeds)."""
    from sklearn.metrics import precision_recall_fscore_support

    graphs = confusion.sum(axis=1)
    if not graphs.any():
        undefined = np.full(len(confusion), np.nan)
        return ClassScores(undefined, undefined, undefined, graphs)
    true, predicted = np.indices(confusion.shape).reshape(2, -1)
    precision, recall, f1, _ = precision_recall_fscore_support(
        true,
        predicted,
        labels=np.arange(len(confusion)),
        sample_weight=confusion.ravel(),
        zero_division=np.nan,
    )
    return ClassScores(precision, recall, f1, graphs)
