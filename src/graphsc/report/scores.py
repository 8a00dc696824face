"""How good predictions are, as pictures: ROC curves, predicted against measured, scores by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.evaluation.tasks import Task, roc_auc
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import INK, QUIET, colour, dashes, marker

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def roc_points(task: Task) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """False and true positive rates as the threshold falls; equal scores fall together."""
    positive = task.labels > 0.5
    order = np.argsort(-task.scores, kind="stable")
    last = np.append(task.scores[order][1:] != task.scores[order][:-1], True)
    hits, misses = np.cumsum(positive[order])[last], np.cumsum(~positive[order])[last]
    return np.append(0.0, misses / max(misses[-1], 1)), np.append(0.0, hits / max(hits[-1], 1))


def roc_figure(tasks: Mapping[str, Task]) -> Figure:
    """Draw one ROC curve a name, with the area under it; those with one class only are left out."""
    drawn = {name: task for name, task in tasks.items() if not np.isnan(roc_auc(task))}
    if not drawn:
        raise DataError("no task has both classes, so there is no ROC curve")
    figure = new_figure(3.6 + 0.22 * ((len(drawn) + 1) // 2))
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color=QUIET, linewidth=1.0, linestyle="--")
    for number, (name, task) in enumerate(drawn.items()):
        label = f"{plain(name)}: {roc_auc(task):.3f}"
        axis.plot(*roc_points(task), color=colour(number), dashes=dashes(number), linewidth=1.8, label=label)
    tidy(axis, "both")
    axis.set_xlabel("false positive rate", fontsize=10)
    axis.set_ylabel("true positive rate", fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure


def parity_figure(task: Task, name: str) -> Figure:
    """Draw each molecule's predicted number against its measured one; on the line both are equal."""
    if not len(task.labels):
        raise DataError(f"no molecule has a measured {name}")
    figure = new_figure(3.6)
    axis = figure.subplots()
    ends = [
        float(min(task.labels.min(), task.scores.min())),
        float(max(task.labels.max(), task.scores.max())),
    ]
    axis.plot(ends, ends, color=QUIET, linewidth=1.0, linestyle="--")
    axis.scatter(task.labels, task.scores, s=14, color=colour(0), alpha=0.6, linewidths=0)
    tidy(axis, "both")
    axis.set_xlabel(f"{plain(name)}, measured", fontsize=10)
    axis.set_ylabel("predicted", fontsize=10, color=INK)
    return figure


def score_curves(epochs: Sequence[int], scores: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw a score per epoch: the mean over seeds, with a band of one deviation. scores: seeds x epochs."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(3.1)
    axis = figure.subplots()
    for number, (name, given) in enumerate(scores.items()):
        table = np.atleast_2d(np.asarray(given, dtype=np.float64))
        mean, deviation = table.mean(axis=0), table.std(axis=0)
        if len(table) > 1:
            axis.fill_between(
                epochs, mean - deviation, mean + deviation, color=colour(number), alpha=0.18, linewidth=0
            )
        axis.plot(
            epochs, mean, color=colour(number), dashes=dashes(number), linewidth=1.8, label=plain(name),
            marker=marker(number), markersize=4, markevery=max(1, len(epochs) // 30),
        )  # fmt: skip
    tidy(axis)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))  # there is no epoch 1.2
    axis.set_xlabel("epoch", fontsize=10)
    axis.set_ylabel(label, fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure
