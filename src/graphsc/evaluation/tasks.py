"""Scores on several tasks at once, where a graph may lack the label of some.

A task is a pair of arrays of equal length: the labels that are there, and the scores given for them. A task
on which a figure means nothing (ROC-AUC with one class only) has NaN and is left out of means, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

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
