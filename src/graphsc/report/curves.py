"""What happens from epoch to epoch: the parts of the loss, the probe's accuracy, the health of the vectors.

Rows are those of a run's `metrics.csv`: numbers by name, one row an epoch, under `epoch`. A name may be
missing from some rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import INK, QUIET, colour, dashes, marker

if TYPE_CHECKING:
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
