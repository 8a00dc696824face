"""Line plots: training curves per epoch, and panels of lines over any x axis.

Training curves are drawn from the rows of a run's `metrics.csv`: one mapping of column to number per epoch,
with the epoch under `epoch`. A column may be missing from some rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import GREY, INK, WIDTH, colour, dashes, escape_tex, marker, new_figure, style_axis

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Rows = Sequence[Mapping[str, float]]

# Column, title, and how to read it.
HEALTH = (
    ("effective_rank", "effective rank", "dimensions in use"),
    ("uniformity", "uniformity", "lower: more evenly spread"),
    ("alignment", "alignment", "lower: positive pairs closer"),
    ("mean_cosine", "mean cosine", "1: collapsed"),
)
_LOSS_COLUMN = re.compile(r"(^|_)loss(_|$)")
_LOG_SCALE_RATIO = 50.0  # of the largest to the smallest loss, from which the scale is logarithmic
_MAX_EPOCH_MARKERS = 30  # per line
_MAX_PANEL_MARKERS = 15  # per line
_PANEL_WIDTH, _PANEL_HEIGHT = 3.6, 2.7  # inches
_LINE_OFFSET = 0.012  # share of a logarithmic axis between the points of neighbouring lines


def loss_curves(rows: Rows) -> Figure:
    """Draw the loss and its terms per epoch.

    The scale is logarithmic where all values are positive and differ by more than a factor of 50.
    """
    columns = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in columns if _LOSS_COLUMN.search(name)]
    if not names:
        raise DataError("the metrics have no loss column", hint="use the metrics of a trained method")
    series = {name: _column(rows, name) for name in names}
    if len(names) == 2 and np.array_equal(series[names[0]], series[names[1]]):
        del series[names[1]]  # a single term equals the whole loss
    values = np.concatenate([values for _, values in series.values()])
    figure = new_figure(2.9 + 0.22 * ((len(series) + 1) // 2))
    axis = figure.subplots()
    for number, (name, (epochs, heights)) in enumerate(series.items()):
        _plot_line(axis, epochs, heights, number, name.replace("_", " "))
    if len(values) and values.min() > 0.0 and values.max() / values.min() > _LOG_SCALE_RATIO:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
    _finish_epochs(axis, "loss" if axis.get_yscale() == "linear" else "loss (log scale)")
    if len(series) > 1:
        _add_legend(figure)
    return figure


def accuracy_curves(
    epochs: ArrayLike, accuracy: Mapping[str, ArrayLike], *, untrained: float | None = None
) -> Figure:
    """Draw the probe's accuracy per epoch: mean over seeds with a band of one standard deviation (ddof 1).

    Args:
        epochs: E epochs.
        accuracy: By method, seeds x E shares between 0 and 1; nan where a seed was not evaluated.
        untrained: Accuracy of the untrained encoder, drawn as a dashed line.
    """
    x = np.asarray(epochs, dtype=np.float64)
    figure = new_figure(3.1 + 0.22 * ((len(accuracy) + 2) // 2))
    axis = figure.subplots()
    for number, (name, values) in enumerate(accuracy.items()):
        table = 100 * np.atleast_2d(np.asarray(values, dtype=np.float64))
        if table.shape[1] != len(x):
            raise DataError(f"{name} has {table.shape[1]} accuracies per seed for {len(x)} epochs")
        _plot_seeds(axis, x, table, number, name)
    if untrained is not None:
        axis.axhline(100 * untrained, color=GREY, linewidth=1.3, linestyle="--", label="untrained")
    _finish_epochs(axis, "accuracy (%)")
    _add_legend(figure)
    return figure


def score_curves(epochs: Sequence[int], scores: Mapping[str, ArrayLike], label: str) -> Figure:
    """Draw scores per epoch: the mean over seeds with a band of one standard deviation (ddof 1).

    Args:
        epochs: E epochs.
        scores: By name, seeds x E.
        label: Of the y axis.
    """
    figure = new_figure(3.1)
    axis = figure.subplots()
    for number, (name, values) in enumerate(scores.items()):
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
        _plot_seeds(axis, np.asarray(epochs, dtype=np.float64), table, number, name)
    _finish_epochs(axis, label)
    _add_legend(figure)
    return figure


def learning_curve(
    counts: Sequence[int], scores: Mapping[str, Sequence[tuple[float, float, float]]], label: str
) -> Figure:
    """Draw scores by the number of training labels, each with its interval.

    Args:
        counts: Training labels of each run.
        scores: By name, value, lower and upper end for each run; NaN where there is none.
        label: Of the y axis.
    """
    figure = new_figure(3.2)
    axis = figure.subplots()
    x = np.asarray(counts, dtype=np.float64)
    for number, (name, values) in enumerate(scores.items()):
        value, low, high = np.asarray(values, dtype=np.float64).T
        # Side by side, so that the intervals of two names do not cover each other.
        place = x * 1.03 ** (number - (len(scores) - 1) / 2)
        axis.vlines(place, low, high, color=colour(number), linewidth=1.2, alpha=0.7)
        _plot_line(axis, place, value, number, name)
        axis.plot(place, value, marker=marker(number), linestyle="", markersize=5, color=colour(number))
    axis.set_xscale("log")
    axis.set_xticks(x, [f"{count:,}" for count in counts])
    axis.set_xticks([], minor=True)
    style_axis(axis)
    axis.set_xlabel("training molecules with labels", fontsize=10)
    axis.set_ylabel(label, fontsize=10, color=INK)
    _add_legend(figure)
    return figure


def health_curves(rows: Rows) -> Figure:
    """Draw effective rank, uniformity, alignment and mean cosine per epoch, as far as the rows have them."""
    columns = [entry for entry in HEALTH if any(entry[0] in row for row in rows)]
    if not columns:
        raise DataError("the metrics have no health columns", hint="use the metrics of a trained method")
    figure = new_figure(0.4 + 1.35 * len(columns))
    axes = figure.subplots(len(columns), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, title, meaning) in zip(axes, columns, strict=True):
        epochs, heights = _column(rows, name)
        _plot_line(axis, epochs, heights, 0, title)
        _finish_epochs(axis, "")
        axis.set_xlabel("epoch" if axis is axes[-1] else "", fontsize=10)
        if name == "effective_rank" and (dimensions := max(row.get("dimensions", 0.0) for row in rows)):
            axis.set_ylim(0, dimensions * 1.04)
            meaning = f"{meaning}, of {dimensions:.0f}"
        axis.set_title(title, fontsize=10.5, loc="left")
        axis.set_title(meaning, fontsize=9, loc="right", color=GREY)
    return figure


def _column(rows: Rows, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Epochs and values of a column, of the rows that have it."""
    pairs = [(row.get("epoch", number), row[name]) for number, row in enumerate(rows, start=1) if name in row]
    epochs, values = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return epochs, values


def _over_seeds(
    table: NDArray[np.float64],
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Columns of seeds x P that any seed has, and their mean and standard deviation (ddof 1)."""
    known = np.asarray(np.isfinite(table).any(axis=0))
    shown = table[:, known]
    several = np.isfinite(shown).sum(axis=0) > 1  # the deviation of a single seed is drawn as 0
    deviation = np.zeros(shown.shape[1])
    deviation[several] = np.nanstd(shown[:, several], axis=0, ddof=1)
    return known, np.nanmean(shown, axis=0), deviation


def _plot_seeds(
    axis: Axes, x: NDArray[np.float64], table: NDArray[np.float64], number: int, label: str
) -> None:
    known, mean, deviation = _over_seeds(table)
    if len(table) > 1:
        axis.fill_between(
            x[known], mean - deviation, mean + deviation, color=colour(number), alpha=0.18, linewidth=0
        )
    _plot_line(axis, x[known], mean, number, label)


def _plot_line(axis: Axes, x: NDArray[np.float64], y: NDArray[np.float64], number: int, label: str) -> None:
    axis.plot(
        x, y, color=colour(number), dashes=dashes(number), linewidth=1.8, label=escape_tex(label),
        marker=marker(number), markersize=4, markevery=max(1, -(-len(x) // _MAX_EPOCH_MARKERS)),
    )  # fmt: skip


def _finish_epochs(axis: Axes, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    style_axis(axis)
    axis.set_xlabel("epoch", fontsize=10)
    axis.set_ylabel(label, fontsize=10, color=INK)
    axis.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 5, 10]))


def _add_legend(figure: Figure) -> None:
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9.5, handlelength=3.0)


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    Attributes:
        x: P positions.
        y: seeds x P values, nan where a seed has none.
        mark: An x position to highlight with a ring.
    """

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
    """Draw one panel per title. A line has the same colour, dashes and marker in all panels.

    Lines are means over seeds, with error bars or a `band` of one standard deviation (ddof 1). With `log` the
    x axis is logarithmic. `references` has by title the name and height of a dashed line. With `share` the
    panels of a row share their y axis. `x_labels` has one label per panel, in place of `x_label`.
    `mark_label` is the legend entry of highlighted positions.
    """
    if not panels:
        raise DataError("there are no panels to draw")
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    all_lines = [line for lines in panels.values() for line in lines.values()]
    marked = bool(mark_label) and any(line.mark is not None for line in all_lines)
    num_columns = min(columns, len(panels))
    num_rows = -(-len(panels) // num_columns)
    entries = len(names) + bool(references) + marked
    legend_rows = -(-entries // (2 * num_columns))
    legend_columns = -(-entries // legend_rows) if entries else 1  # rows of about equal length
    figure = new_figure(_PANEL_HEIGHT * num_rows + 0.24 * legend_rows, max(WIDTH, _PANEL_WIDTH * num_columns))
    axes = figure.subplots(num_rows, num_columns, squeeze=False, sharey="row" if share else "none").ravel()
    handles: dict[str, Artist] = {}
    for number, (title, lines) in enumerate(panels.items()):
        axis = axes[number]
        for name, line in lines.items():
            index = names.index(name)
            # Slightly beside each other, so that error bars at the same x do not cover each other.
            apart = log and not band
            shift = _offset_factor(lines) ** (index - (len(names) - 1) / 2) if apart else 1.0
            handles[name] = _plot_panel_line(axis, replace(line, x=line.x * shift), index, band)
        if references and title in references:
            name, height = references[title]
            handles[name] = axis.axhline(height, color=GREY, linewidth=1.3, linestyle="--", zorder=1)
            axis.autoscale_view(scalex=False)  # keeps the line off the edge, where it would not be seen
        style_axis(axis)
        if not any(np.isfinite(line.y).any() for line in lines.values()):
            axis.text(0.5, 0.5, "not run yet", transform=axis.transAxes, ha="center", color=GREY, fontsize=10)
            axis.set_xticks([])
            if not share:
                axis.set_yticks([])
        elif log:
            # A sweep has few values: label exactly those.
            ticks = sorted({x for line in lines.values() for x in line.x.tolist()})
            axis.set_xscale("log")
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_xticks([], minor=True)
        axis.set_title(escape_tex(title), fontsize=10.5, loc="left")
        axis.set_xlabel(x_labels[number] if x_labels else x_label, fontsize=10)
        axis.set_ylabel(y_label if number % num_columns == 0 else "", fontsize=10)
    if marked:
        (handles[mark_label],) = axes[0].plot(
            [], [], marker="o", markersize=9, markerfacecolor="none", markeredgecolor=GREY,
            markeredgewidth=1.6, linestyle="none",
        )  # fmt: skip
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    shown = list(dict.fromkeys(name for name in (*names, *handles) if name in handles))
    if shown:
        figure.legend(
            [handles[name] for name in shown], [escape_tex(name) for name in shown],
            loc="outside lower center", ncols=legend_columns, frameon=False, fontsize=9.5, handlelength=3.2,
        )  # fmt: skip
    return figure


def _offset_factor(lines: Mapping[str, Line]) -> float:
    """Factor between the x positions of neighbouring lines: the same share of any logarithmic axis."""
    positions = np.concatenate([line.x for line in lines.values()])
    return float((positions.max() / positions.min()) ** _LINE_OFFSET)


def _plot_panel_line(axis: Axes, line: Line, number: int, band: bool) -> Artist:
    known, mean, deviation = _over_seeds(line.y)
    x = line.x[known]
    if (np.isfinite(line.y).sum(axis=0) > 1).any():  # at least one position has several seeds
        if band:
            axis.fill_between(
                x, mean - deviation, mean + deviation, color=colour(number), alpha=0.15, linewidth=0
            )
        else:
            axis.errorbar(
                x, mean, yerr=deviation, fmt="none", ecolor=colour(number), elinewidth=1.2, capsize=3
            )
    (artist,) = axis.plot(
        x, mean, color=colour(number), dashes=dashes(number), linewidth=1.6, marker=marker(number),
        markersize=4.5, markevery=max(1, -(-len(x) // _MAX_PANEL_MARKERS)),
    )  # fmt: skip
    if line.mark is not None and line.mark in x:
        axis.plot(
            line.mark, mean[np.flatnonzero(x == line.mark)[0]], marker=marker(number), markersize=11,
            markerfacecolor="none", markeredgecolor=colour(number), markeredgewidth=1.6, linestyle="none",
            zorder=5,
        )  # fmt: skip
    return artist
