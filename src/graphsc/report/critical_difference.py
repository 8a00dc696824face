"""The critical-difference diagram: average ranks on a line, bars over methods that cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import indistinct_groups
from graphsc.report.figure import INK, QUIET, WIDTH, new_figure, plain, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths are inches: the only axis has the figure's own units, so that no text can meet another.
_ROW = 0.27  # from name to name
_BAR = 0.13  # from bar to bar
_ABOVE = 0.85  # over the ruler
_RULER = 2.3  # the ruler's least length
_NAME, _RANK = 9.5, 8.5  # points
_GAP = 0.08
_LETTERS = 18  # of a name; what is longer is cut


def critical_difference_diagram(ranks: Mapping[str, float], difference: float) -> Figure:
    """Draw methods at their average ranks, best at the left; a bar joins those within `difference`.

    ranks: by method; those without a rank (nan) are left out. After Demsar (2006), Figure 1.
    """
    known = sorted((rank, name) for name, rank in ranks.items() if not np.isnan(rank))
    if len(known) < 2:
        raise DataError(f"a diagram of {len(known)} ranked methods says nothing", hint="rank two or more")
    values, names = [rank for rank, _ in known], [plain(_short(name)) for _, name in known]
    groups = indistinct_groups(values, difference)
    half = -(-len(known) // 2)
    margin = text_width("00.00", _RANK) + 3 * _GAP
    left = margin + max(text_width(name, _NAME) for name in names[:half])
    right = margin + max(text_width(name, _NAME) for name in names[half:])
    width = max(WIDTH, left + _RULER + right)
    depth = 0.22 + _BAR * len(groups)
    height = _ABOVE + depth + _ROW * half + 0.1

    figure = new_figure(height, width)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set(xlim=(0.0, width), ylim=(_ABOVE - height, _ABOVE))
    axis.axis("off")
    low, high = _scale(values, difference)

    def place(rank: float) -> float:
        return left + (rank - low) / (high - low) * (width - left - right)

    _draw_ruler(axis, {rank: place(rank) for rank in range(low, high + 1)})
    _draw_difference(axis, place(low), place(low + difference), place(high), difference)
    for level, group in enumerate(groups):
        y = -0.16 - _BAR * level
        ends = [place(values[group[0]]) - 0.05, place(values[group[-1]]) + 0.05]
        axis.plot(ends, [y, y], color=INK, linewidth=4, solid_capstyle="butt", gid="group")
    for position, (rank, name) in enumerate(zip(values, names, strict=True)):
        # The outermost methods get the highest row, so that no two lines cross.
        row = position if position < half else len(known) - 1 - position
        y = -depth - _ROW * (row + 0.5)
        edge, away = (left, -1) if position < half else (width - right, 1)
        _draw_method(axis, name, rank, place(rank), edge, y, away)
    return figure


def _scale(values: list[float], difference: float) -> tuple[int, int]:
    """Whole ranks around all methods, with room for the critical difference where there are as many ranks."""
    low = int(np.floor(values[0]))
    wanted = max(values[-1], low + difference, low + 1)
    return low, max(int(np.ceil(values[-1])), min(int(np.ceil(wanted)), len(values)), low + 1)


def _draw_ruler(axis: Axes, places: dict[int, float]) -> None:
    axis.plot([min(places.values()), max(places.values())], [0.0, 0.0], color=INK, linewidth=1.4)
    step = -(-(len(places) - 1) // 9)  # ten numbers fit beside each other
    for number, (rank, x) in enumerate(places.items()):
        labelled = number % step == 0
        axis.plot([x, x], [0.0, 0.08 if labelled else 0.05], color=INK, linewidth=1.0)
        if labelled:
            axis.text(x, 0.12, str(rank), ha="center", va="bottom", fontsize=10)


def _draw_difference(axis: Axes, start: float, end: float, most: float, difference: float) -> None:
    text = f"CD = {difference:.2f}"
    if end > most:
        end, text = most, f"{text}, wider than this scale"
    axis.plot([start, end], [0.45, 0.45], color=INK, linewidth=1.4, marker="|", markersize=7)
    axis.text(start, 0.54, text, ha="left", va="bottom", fontsize=10)


def _draw_method(axis: Axes, name: str, rank: float, x: float, edge: float, y: float, away: int) -> None:
    axis.plot([x, x, edge + away * _GAP], [0.0, y, y], color="#666666", linewidth=0.9)
    axis.plot([x], [0.0], "o", color=INK, markersize=3.5)
    align = "right" if away < 0 else "left"
    beside = edge + away * 1.5 * _GAP
    number = f"{rank:.2f}"
    axis.text(beside, y, number, ha=align, va="center", fontsize=_RANK, color=QUIET)
    beyond = beside + away * (text_width(number, _RANK) + _GAP)
    axis.text(beyond, y, name, ha=align, va="center", fontsize=_NAME)


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else name[: _LETTERS - 1] + "…"
