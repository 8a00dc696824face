"""What happens from epoch to epoch: the parts of the loss, the probe's accuracy, the health of the vectors.

Rows are those of a run's `metrics.csv`: numbers by name, one row an epoch, under `epoch`. A name may be
missing from some rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import Task, roc_auc
from graphsc.report.figure import INK, QUIET, colour, dashes, marker, new_figure, plain, tidy

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Rows = Sequence[Mapping[str, float]]

# Column, title, and which way is good.
HEALTH = (
    ("effective_rank", "effective rank", "directions in use"),
    ("uniformity", "uniformity", "lower is more even"),
    ("alignment", "alignment", "lower is nearer"),
    ("mean_cosine", "mean cosine", "1 is collapsed"),
)
_LOSS = re.compile(r"(^|_)loss(_|$)")
_POINTS = 30  # epochs up to which each one is marked
_DECADES = 50.0  # between the largest and the smallest part, from which the scale is logarithmic


def loss_curves(rows: Rows) -> Figure:
    """Draw the loss and its parts per epoch, each with its own colour, dashes and shape.

    The scale is logarithmic where the parts are all positive and of very different sizes.
    """
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if _LOSS.search(name)]
    if not names:
        raise DataError("the metrics have no loss", hint="draw the metrics of a trained method")
    series = {name: _series(rows, name) for name in names}
    if len(names) == 2 and np.array_equal(series[names[0]], series[names[1]]):
        del series[names[1]]  # the only part is the whole
    values = np.concatenate([values for _, values in series.values()])
    figure = new_figure(2.9 + 0.22 * ((len(series) + 1) // 2))
    axis = figure.subplots()
    for number, (name, (epochs, heights)) in enumerate(series.items()):
        _line(axis, epochs, heights, number, name.replace("_", " "))
    if len(values) and values.min() > 0.0 and values.max() / values.min() > _DECADES:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
    _finish(axis, "loss" if axis.get_yscale() == "linear" else "loss (log scale)")
    if len(series) > 1:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure


def accuracy_curves(
    epochs: ArrayLike, accuracy: Mapping[str, ArrayLike], *, untrained: float | None = None
) -> Figure:
    """Draw the probe's accuracy per epoch: the mean over seeds, with a band of one deviation (ddof 0).

    epochs: E. accuracy: by method, seeds x E, shares between 0 and 1; nan where a seed was not probed.
    untrained: the accuracy of the untrained encoder, drawn as a dashed line.
    """
    places = np.asarray(epochs, dtype=np.float64)
    figure = new_figure(3.1 + 0.22 * ((len(accuracy) + 2) // 2))
    axis = figure.subplots()
    for number, (name, given) in enumerate(accuracy.items()):
        table = np.atleast_2d(np.asarray(given, dtype=np.float64))
        if table.shape[1] != len(places):
            raise DataError(f"{name} has {table.shape[1]} accuracies a seed for {len(places)} epochs")
        seen = ~np.isnan(table).all(axis=0)
        mean, deviation = np.nanmean(table[:, seen], axis=0), np.nanstd(table[:, seen], axis=0)
        low, high = 100 * (mean - deviation), 100 * (mean + deviation)
        if len(table) > 1:
            axis.fill_between(places[seen], low, high, color=colour(number), alpha=0.18, linewidth=0)
        _line(axis, places[seen], 100 * mean, number, name)
    if untrained is not None:
        axis.axhline(100 * untrained, color=QUIET, linewidth=1.3, linestyle="--", label="untrained")
    _finish(axis, "accuracy (%)")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)
    return figure


def health_curves(rows: Rows) -> Figure:
    """Draw effective rank, uniformity, alignment and mean cosine per epoch, one under the other.

    Only those that are in the rows are drawn. The rank's scale begins at 0 and ends at the dimensions.
    """
    found = [entry for entry in HEALTH if any(entry[0] in row for row in rows)]
    if not found:
        raise DataError("the metrics have no health figures", hint="draw the metrics of a trained method")
    figure = new_figure(0.4 + 1.35 * len(found))
    axes = figure.subplots(len(found), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, title, meaning) in zip(axes, found, strict=True):
        epochs, heights = _series(rows, name)
        _line(axis, epochs, heights, 0, title)
        _finish(axis, "")
        axis.set_xlabel("epoch" if axis is axes[-1] else "", fontsize=10)
        if name == "effective_rank" and (dimensions := max(row.get("dimensions", 0.0) for row in rows)):
            axis.set_ylim(0, dimensions * 1.04)
            meaning = f"{meaning}, of {dimensions:.0f}"
        axis.set_title(title, fontsize=10.5, loc="left")
        axis.set_title(meaning, fontsize=9, loc="right", color=QUIET)
    return figure


def _series(rows: Rows, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = [(row.get("epoch", number), row[name]) for number, row in enumerate(rows, start=1) if name in row]
    epochs, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return epochs, values


def _line(axis: Axes, x: NDArray[np.float64], y: NDArray[np.float64], number: int, label: str) -> None:
    axis.plot(
        x, y, color=colour(number), dashes=dashes(number), linewidth=1.8, label=plain(label),
        marker=marker(number), markersize=4, markevery=max(1, -(-len(x) // _POINTS)),
    )  # fmt: skip


def _finish(axis: Axes, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    tidy(axis)
    axis.set_xlabel("epoch", fontsize=10)
    axis.set_ylabel(label, fontsize=10, color=INK)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]))


# Lines over one axis, a panel a data set: sweeps, curves and sensitivity side by side.


_WIDTH, _HEIGHT = 3.6, 2.7  # inches of a panel
_MOST_MARKERS = 15  # markers on a line at most
_ASIDE = 0.012  # of a logarithmic axis, from one line to the next


@dataclass(frozen=True)
class Line:
    """x: P places. y: seeds x P, nan where a seed has nothing. `mark` is a place to be pointed out."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    mark: float | None = None


def line_panels(
    panels: Mapping[str, Mapping[str, Line]],
    *,
    x_label: str,
    y_label: str = "accuracy (%)",
    log: bool = False,
    band: bool = False,
    references: Mapping[str, tuple[str, float]] | None = None,
    columns: int = 2,
    x_labels: Sequence[str] | None = None,
    share: bool = False,
    mark_label: str = "",
) -> Figure:
    """Draw a panel for each title; a line has the same colour, dashes and shape in all of them.

    With `log` the x axis is logarithmic. The mean over seeds is drawn, with bars of one deviation (ddof 0),
    or a `band` where points are many. `references`: by panel, the name and height of a dashed line. `share`:
    one y axis for the panels of a row. `mark_label` says what the places that lines point out are.
    """
    if not panels:
        raise DataError("there is no panel to draw")
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    wide = min(columns, len(panels))
    high = -(-len(panels) // wide)
    marked = bool(mark_label) and any(
        line.mark is not None for lines in panels.values() for line in lines.values()
    )
    keys = len(names) + bool(references) + marked
    per_row = -(-keys // -(-keys // (2 * wide))) if keys else 1  # rows as even as can be
    figure = new_figure(_HEIGHT * high + 0.24 * -(-keys // max(1, per_row)), max(4.8, _WIDTH * wide))
    axes = figure.subplots(high, wide, squeeze=False, sharey="row" if share else "none").ravel()
    handles: dict[str, Artist] = {}
    for number, (title, lines) in enumerate(panels.items()):
        axis = axes[number]
        for name, line in lines.items():
            place = names.index(name)
            # A little beside each other, so that error bars at one value do not hide each other.
            aside = _step(lines) ** (place - (len(names) - 1) / 2) if log else 1.0
            handles[name] = _draw(axis, replace(line, x=line.x * aside), place, band)
        if references and title in references:
            name, height = references[title]
            handles[name] = axis.axhline(height, color=QUIET, linewidth=1.3, linestyle="--", zorder=1)
            axis.autoscale_view(scalex=False)  # a line at the edge of the picture is not seen
        tidy(axis)
        if not any(np.isfinite(line.y).any() for line in lines.values()):
            axis.text(
                0.5, 0.5, "not run yet", transform=axis.transAxes, ha="center", color=QUIET, fontsize=10
            )
            axis.set_xticks([])
            if not share:
                axis.set_yticks([])
        elif log:
            _decades(axis, [x for line in lines.values() for x in line.x.tolist()])
        axis.set_title(plain(title), fontsize=10.5, loc="left")
        axis.set_xlabel(x_labels[number] if x_labels else x_label, fontsize=10)
        axis.set_ylabel(y_label if number % wide == 0 else "", fontsize=10)
    if marked:
        handles[mark_label] = _ring(axes[0])
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    shown = [name for name in (*names, *handles) if name in handles]
    shown = list(dict.fromkeys(shown))
    if shown:
        figure.legend(
            [handles[name] for name in shown], [plain(name) for name in shown],
            loc="outside lower center", ncols=per_row, frameon=False, fontsize=9.5, handlelength=3.2,
        )  # fmt: skip
    return figure


def _step(lines: Mapping[str, Line]) -> float:
    """By which factor a line stands beside another: the same distance on paper, however long the axis."""
    places = np.concatenate([line.x for line in lines.values()])
    return float((places.max() / places.min()) ** _ASIDE)


def _draw(axis: Axes, line: Line, number: int, band: bool) -> Artist:
    seen = np.isfinite(line.y).any(axis=0)
    x = line.x[seen]
    values = line.y[:, seen]
    mean = np.nanmean(values, axis=0) if x.size else np.empty(0)
    spread = np.nanstd(values, axis=0) if x.size else np.empty(0)
    several = bool((np.isfinite(values).sum(axis=0) > 1).any()) if x.size else False
    if several and band:
        axis.fill_between(x, mean - spread, mean + spread, color=colour(number), alpha=0.15, linewidth=0)
    elif several:
        axis.errorbar(x, mean, yerr=spread, fmt="none", ecolor=colour(number), elinewidth=1.2, capsize=3)
    (drawn,) = axis.plot(
        x, mean, color=colour(number), dashes=dashes(number), linewidth=1.6, marker=marker(number),
        markersize=4.5, markevery=max(1, -(-len(x) // _MOST_MARKERS)),
    )  # fmt: skip
    if line.mark is not None and line.mark in x:
        height = mean[np.flatnonzero(x == line.mark)[0]]
        axis.plot(
            line.mark, height, marker=marker(number), markersize=11, markerfacecolor="none",
            markeredgecolor=colour(number), markeredgewidth=1.6, linestyle="none", zorder=5,
        )  # fmt: skip
    return drawn


def _ring(axis: Axes) -> Artist:
    """What marks a place, of no line in particular."""
    (drawn,) = axis.plot(
        [], [], marker="o", markersize=9, markerfacecolor="none", markeredgecolor=QUIET, markeredgewidth=1.6,
        linestyle="none",
    )  # fmt: skip
    return drawn


def _decades(axis: Axes, places: Sequence[float]) -> None:
    """Ticks where the values are: a sweep has few, and they are what was asked."""
    axis.set_xscale("log")
    ticks = sorted(set(places))
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)


# How good predictions are, as pictures: ROC curves, predicted against measured, scores by epoch.


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
