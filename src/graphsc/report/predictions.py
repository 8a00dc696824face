"""Plots of predictions: ROC and reliability curves, predicted against measured values, confusion matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import Task, mae, r2, rmse, roc_auc
from graphsc.report.figure import GREY, INK, WIDTH, colour, dashes, escape_tex, new_figure, style_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_MAX_COUNTED_CLASSES = 12  # with more classes the counts do not fit into their cells


def roc_figure(tasks: Mapping[str, Task]) -> Figure:
    """Draw one ROC curve per task, with its area in the legend; tasks with a single class are left out."""
    from sklearn.metrics import roc_curve

    areas = {name: area for name, task in tasks.items() if not np.isnan(area := roc_auc(task))}
    if not areas:
        raise DataError("no task has both classes, so there is no ROC curve")
    figure = new_figure(3.6 + 0.22 * ((len(areas) + 1) // 2))
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle="--")
    for number, (name, area) in enumerate(areas.items()):
        false_positives, true_positives, _ = roc_curve(tasks[name].labels > 0.5, tasks[name].scores)
        axis.plot(
            false_positives, true_positives, color=colour(number), dashes=dashes(number), linewidth=1.8,
            label=f"{escape_tex(name)}: {area:.3f}",
        )  # fmt: skip
    style_axis(axis, "both")
    axis.set_xlabel("false positive rate", fontsize=10)
    axis.set_ylabel("true positive rate", fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure


def parity_figure(task: Task, name: str) -> Figure:
    """Draw predicted against measured values with their errors, and the diagonal where both are equal."""
    if not len(task.labels):
        raise DataError(f"no molecule has a measured {name}")
    figure = new_figure(3.6)
    axis = figure.subplots()
    values = np.concatenate([task.labels, task.scores])
    ends = [values.min(), values.max()]
    axis.plot(ends, ends, color=GREY, linewidth=1.0, linestyle="--")
    axis.scatter(task.labels, task.scores, s=14, color=colour(0), alpha=0.6, linewidths=0)
    axis.set_aspect("equal", adjustable="datalim")
    words = f"RMSE {rmse(task):.3g}, MAE {mae(task):.3g}"
    if not np.isnan(explained := r2(task)):
        words += f", R² {explained:.2f}"
    axis.set_title(words, fontsize=10, color=INK, loc="left")
    style_axis(axis, "both")
    axis.set_xlabel(f"{escape_tex(name)}, measured", fontsize=10)
    axis.set_ylabel("predicted", fontsize=10, color=INK)
    return figure


def reliability_figure(curves: Mapping[str, Sequence[tuple[float, float, int]]]) -> Figure:
    """Draw how often molecules of a predicted probability are positive, one curve per name.

    Args:
        curves: Mean probability, share of positives and number of molecules of each bin.
    """
    if not any(curves.values()):
        raise DataError("no molecule has a label, so there is no reliability curve")
    figure = new_figure(3.8)
    axis = figure.subplots()
    axis.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle="--")
    most = max(count for bins in curves.values() for _, _, count in bins)
    for number, (name, bins) in enumerate(curves.items()):
        x, y, counts = (np.array(column, np.float64) for column in zip(*bins, strict=True))
        axis.plot(
            x, y, color=colour(number), dashes=dashes(number), linewidth=1.6, label=escape_tex(name), zorder=2
        )
        axis.scatter(x, y, s=12 + 70 * counts / most, color=colour(number), linewidths=0, zorder=3)
    style_axis(axis, "both")
    axis.set_xlim(-0.04, 1.04)
    axis.set_ylim(-0.04, 1.04)
    axis.set_xlabel("predicted probability", fontsize=10)
    axis.set_ylabel("share of positives", fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure


def confusion_figure(matrix: NDArray[np.int64], classes: Sequence[str]) -> Figure:
    """Draw a confusion matrix: counts, each cell shaded by its share of the true class.

    Args:
        matrix: classes x classes counts; rows are true classes, columns predicted ones.
        classes: Their names.
    """
    if matrix.shape != (len(classes), len(classes)) or not len(classes):
        raise DataError(f"a confusion matrix of shape {matrix.shape} does not fit {len(classes)} classes")
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    figure = new_figure(min(WIDTH, 1.6 + 0.55 * len(classes)))
    axis = figure.subplots()
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    if len(classes) <= _MAX_COUNTED_CLASSES:
        for (row, column), count in np.ndenumerate(matrix):
            text_colour = "white" if shares[row, column] > 0.55 else INK
            axis.text(column, row, f"{count:,}", ha="center", va="center", color=text_colour)
    names = [escape_tex(name if len(name) <= 14 else name[:13] + "…") for name in classes]
    rotation = 90 if max(map(len, names)) * len(names) > 40 else 0
    axis.set_xticks(range(len(names)), names, fontsize=9, rotation=rotation)
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.tick_params(length=0)
    axis.set_xlabel("predicted", fontsize=10)
    axis.set_ylabel("true", fontsize=10)
    for spine in axis.spines.values():
        spine.set_color("#CCCCCC")
    return figure
