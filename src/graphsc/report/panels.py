"""Lines over one axis, a panel a data set: sweeps, curves and sensitivity side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import QUIET, colour, dashes, marker

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 3.6, 2.7  # inches of a panel
_POINTS = 15  # markers on a line at most
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
        markersize=4.5, markevery=max(1, -(-len(x) // _POINTS)),
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
