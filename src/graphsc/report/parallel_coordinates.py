"""Every trial of a search as a line through its settings: parallel coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import COLOURS, INK, QUIET, WIDTH, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_STEP = 1.1  # inches from axis to axis
_TICKS = 5
_SPREAD = 0.025  # of an axis, around a value that several trials share
_LETTERS = 14  # of a label; what is longer is cut
_DECADES = 20.0  # between the largest and the smallest number, from which a scale is logarithmic


def parallel_coordinates(
    settings: Mapping[str, Sequence[object]], values: ArrayLike, *, title: str = "inner accuracy (%)"
) -> Figure:
    """Draw a line for each of n trials over the settings and the value, which is the last axis.

    settings: by name, what each of the n trials had. values: n. Better trials are darker and thicker and lie
    on top, so that the picture reads without colour; the best one is blue. Trials that share a value are
    spread a little around it, so that none hides another.
    """
    heights = np.asarray(values, dtype=np.float64)
    if not len(heights) or not settings or not np.isfinite(heights).all():
        raise DataError("there is no trial to draw", hint="finish more trials")
    width = max(WIDTH, 1.2 + _STEP * len(settings))
    figure = new_figure(3.4, width)
    axis = figure.subplots()
    columns = [_place(list(column)) for column in settings.values()] + [_scale(heights)]
    lines = np.stack([places for places, _ in columns], axis=1)  # trials x axes
    order = sorted(
        range(len(heights)), key=lambda trial: (heights[trial], -trial)
    )  # the first of equals is best
    for place, trial in enumerate(order, start=1):
        share = place / len(order)
        best = place == len(order)
        shade = COLOURS[0] if best else str(0.85 - 0.6 * share)  # light grey to dark grey
        axis.plot(lines[trial], color=shade, linewidth=2.6 if best else 0.6 + 0.8 * share, gid="trial")
    for position, (_, ticks) in enumerate(columns):
        _axis(axis, position, ticks)
    names = [plain(name.replace(", ", ",\n").replace(".", ".\n")) for name in settings]
    axis.set_xticks(range(len(columns)), [*names, title.replace(" ", "\n", 1)], fontsize=9)
    axis.set_xlim(-0.35, len(columns) - 0.45)
    axis.set_ylim(-0.06, 1.06)
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(axis="x", length=0)
    return figure


def _place(column: list[object]) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Heights between 0 and 1, and the labels to stand beside them."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column)
    distinct = set(column)
    if not numbers or len(distinct) <= _TICKS + 2:
        order = sorted(distinct, key=lambda value: (float(value) if numbers else 0.0, str(value)))  # type: ignore[arg-type]
        place = {str(value): k / max(1, len(order) - 1) for k, value in enumerate(order)}
        spread = np.linspace(-_SPREAD, _SPREAD, len(column)) if len(column) > 1 else np.zeros(1)
        return (
            np.array([place[str(value)] for value in column]) + spread,
            {height: _short(value) for value, height in zip(order, place.values(), strict=True)},
        )
    return _scale(np.array(column, dtype=np.float64))


def _scale(given: NDArray[np.float64]) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Numbers by their size, or by its logarithm where they are of very different sizes."""
    if given.min() == given.max():
        return np.full(len(given), 0.5), {0.5: _short(float(given[0]))}
    scaled = np.log(given) if given.min() > 0 and given.max() / given.min() > _DECADES else given
    low, high = scaled.min(), scaled.max()
    at = np.linspace(low, high, _TICKS)
    marks = np.exp(at) if scaled is not given else at
    ticks = {float((x - low) / (high - low)): _short(float(mark)) for x, mark in zip(at, marks, strict=True)}
    return (scaled - low) / (high - low), ticks


def _axis(axis: Axes, position: int, ticks: dict[float, str]) -> None:
    axis.plot([position, position], [0, 1], color=QUIET, linewidth=1.0, zorder=3)
    for height, label in ticks.items():
        axis.text(
            position - 0.05, height, plain(label), ha="right", va="center", fontsize=8, color=INK, zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )  # fmt: skip


def _short(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"
