"""The critical-difference diagram: average ranks, and bars over methods that do not differ significantly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import indistinct_groups
from graphsc.report.figure import GREY, INK, WIDTH, escape_tex, new_figure, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Lengths are inches, which are also the units of the only axis: texts can be placed without overlap.
_ROW = 0.27  # between names
_BAR = 0.13  # between bars
_ABOVE = 0.85  # space above the rank axis
_MIN_AXIS = 2.3
_NAME_SIZE, _RANK_SIZE = 9.5, 8.5  # points
_GAP = 0.08
_MAX_LETTERS = 18  # of a name; longer ones are cut


def critical_difference_diagram(ranks: Mapping[str, float], difference: float) -> Figure:
    """Draw methods at their average ranks, the best at the left; a bar joins those within `difference`.

    After Demsar (2006), Figure 1.

    Args:
        ranks: Average rank by method; methods without a rank (nan) are left out.
        difference: The critical difference.
    """
    known = sorted((rank, name) for name, rank in ranks.items() if not np.isnan(rank))
    if len(known) < 2:
        raise DataError(f"cannot compare {len(known)} ranked methods", hint="rank two or more")
    values, names = [rank for rank, _ in known], [escape_tex(_shorten(name)) for _, name in known]
    groups = indistinct_groups(values, difference)
    half = -(-len(known) // 2)
    margin = text_width("00.00", _RANK_SIZE) + 3 * _GAP
    left = margin + max(text_width(name, _NAME_SIZE) for name in names[:half])
    right = margin + max(text_width(name, _NAME_SIZE) for name in names[half:])
    width = max(WIDTH, left + _MIN_AXIS + right)
    depth = 0.22 + _BAR * len(groups)
    height = _ABOVE + depth + _ROW * half + 0.1

    figure = new_figure(height, width)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set(xlim=(0.0, width), ylim=(_ABOVE - height, _ABOVE))
    axis.axis("off")
    low, high = _axis_limits(values, difference)

    def x_of(rank: float) -> float:
        return left + (rank - low) / (high - low) * (width - left - right)

    _draw_rank_axis(axis, {rank: x_of(rank) for rank in range(low, high + 1)})
    _draw_difference(axis, x_of(low), x_of(low + difference), x_of(high), difference)
    for level, group in enumerate(groups):
        y = -0.16 - _BAR * level
        ends = [x_of(values[group[0]]) - 0.05, x_of(values[group[-1]]) + 0.05]
        axis.plot(ends, [y, y], color=INK, linewidth=4, solid_capstyle="butt", gid="group")
    for position, (rank, name) in enumerate(zip(values, names, strict=True)):
        # Methods further out are in higher rows, so that no two lines cross.
        row = position if position < half else len(known) - 1 - position
        y = -depth - _ROW * (row + 0.5)
        edge, side = (left, -1) if position < half else (width - right, 1)
        _draw_method(axis, name, rank, x_of(rank), edge, y, side)
    return figure


def _axis_limits(values: list[float], difference: float) -> tuple[int, int]:
    """Whole ranks around all methods and, unless that exceeds all ranks, the critical difference."""
    low = int(np.floor(values[0]))
    wanted = max(values[-1], low + difference, low + 1)
    return low, max(int(np.ceil(values[-1])), min(int(np.ceil(wanted)), len(values)), low + 1)


def _draw_rank_axis(axis: Axes, x_by_rank: dict[int, float]) -> None:
    axis.plot([min(x_by_rank.values()), max(x_by_rank.values())], [0.0, 0.0], color=INK, linewidth=1.4)
    step = -(-(len(x_by_rank) - 1) // 9)  # there is room for ten numbers
    for number, (rank, x) in enumerate(x_by_rank.items()):
        labelled = number % step == 0
        axis.plot([x, x], [0.0, 0.08 if labelled else 0.05], color=INK, linewidth=1.0)
        if labelled:
            axis.text(x, 0.12, str(rank), ha="center", va="bottom", fontsize=10)


def _draw_difference(axis: Axes, start: float, end: float, end_of_axis: float, difference: float) -> None:
    text = f"CD = {difference:.2f}"
    if end > end_of_axis:
        end, text = end_of_axis, f"{text}, wider than this scale"
    axis.plot([start, end], [0.45, 0.45], color=INK, linewidth=1.4, marker="|", markersize=7)
    axis.text(start, 0.54, text, ha="left", va="bottom", fontsize=10)


def _draw_method(axis: Axes, name: str, rank: float, x: float, edge: float, y: float, side: int) -> None:
    axis.plot([x, x, edge + side * _GAP], [0.0, y, y], color=GREY, linewidth=0.9)
    axis.plot([x], [0.0], "o", color=INK, markersize=3.5)
    align = "right" if side < 0 else "left"
    rank_x = edge + side * 1.5 * _GAP
    number = f"{rank:.2f}"
    axis.text(rank_x, y, number, ha=align, va="center", fontsize=_RANK_SIZE, color=GREY)
    name_x = rank_x + side * (text_width(number, _RANK_SIZE) + _GAP)
    axis.text(name_x, y, name, ha=align, va="center", fontsize=_NAME_SIZE)


def _shorten(name: str) -> str:
    return name if len(name) <= _MAX_LETTERS else name[: _MAX_LETTERS - 1] + "…"
