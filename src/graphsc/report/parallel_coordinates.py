"""Parallel coordinates: each trial of a search as a line through its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import COLOURS, GREY, INK, WIDTH, escape_tex, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_AXIS_DISTANCE = 1.1  # inches
_TICKS = 5
_SPREAD = 0.025  # share of an axis over which trials with the same value are spread
_MAX_LETTERS = 14  # of a tick label; longer ones are cut
_LOG_SCALE_RATIO = 20.0  # of the largest to the smallest number, from which a scale is logarithmic


def parallel_coordinates(
    settings: Mapping[str, Sequence[object]], values: ArrayLike, *, title: str = "inner accuracy (%)"
) -> Figure:
    """Draw one line per trial over the settings and the value, which is the last axis.

    Better trials are darker, thicker and on top, so that the figure is readable without colour; the best is
    blue. Trials that share a setting are spread a little around it, so that none covers another.

    Args:
        settings: By name, the values of the n trials.
        values: n, higher is better.
        title: Of the last axis.
    """
    scores = np.asarray(values, dtype=np.float64)
    if not len(scores) or not settings or not np.isfinite(scores).all():
        raise DataError("there is no trial to draw", hint="finish more trials")
    figure = new_figure(3.4, max(WIDTH, 1.2 + _AXIS_DISTANCE * len(settings)))
    axis = figure.subplots()
    columns = [_setting_heights(list(column)) for column in settings.values()] + [_number_heights(scores)]
    lines = np.stack([heights for heights, _ in columns], axis=1)  # trials x axes
    # Of equally good trials the first counts as the best.
    order = sorted(range(len(scores)), key=lambda trial: (scores[trial], -trial))
    for rank, trial in enumerate(order, start=1):
        share = rank / len(order)
        best = rank == len(order)
        shade = COLOURS[0] if best else str(0.85 - 0.6 * share)  # light grey to dark grey
        axis.plot(lines[trial], color=shade, linewidth=2.6 if best else 0.6 + 0.8 * share, gid="trial")
    for position, (_, ticks) in enumerate(columns):
        _draw_axis(axis, position, ticks)
    names = [escape_tex(name.replace(", ", ",\n").replace(".", ".\n")) for name in settings]
    axis.set_xticks(range(len(columns)), [*names, title.replace(" ", "\n", 1)], fontsize=9)
    axis.set_xlim(-0.35, len(columns) - 0.45)
    axis.set_ylim(-0.06, 1.06)
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(axis="x", length=0)
    return figure


def _setting_heights(column: list[object]) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Heights between 0 and 1 per trial, and tick labels by height; evenly spaced for few distinct values."""
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column)
    distinct = set(column)
    if numeric and len(distinct) > _TICKS + 2:
        return _number_heights(np.array(column, dtype=np.float64))
    order = sorted(distinct, key=lambda value: (float(value) if numeric else 0.0, str(value)))  # type: ignore[arg-type]
    height_of = {str(value): k / max(1, len(order) - 1) for k, value in enumerate(order)}
    spread = np.linspace(-_SPREAD, _SPREAD, len(column)) if len(column) > 1 else np.zeros(1)
    return (
        np.array([height_of[str(value)] for value in column]) + spread,
        {height: _shorten(value) for value, height in zip(order, height_of.values(), strict=True)},
    )


def _number_heights(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], dict[float, str]]:
    """The same for numbers, on a linear scale, or on a logarithmic one if their sizes differ much."""
    if values.min() == values.max():
        return np.full(len(values), 0.5), {0.5: _shorten(float(values[0]))}
    log = values.min() > 0 and values.max() / values.min() > _LOG_SCALE_RATIO
    scaled = np.log(values) if log else values
    low, high = scaled.min(), scaled.max()
    at = np.linspace(low, high, _TICKS)
    labels = np.exp(at) if log else at
    ticks = {
        float((x - low) / (high - low)): _shorten(float(label)) for x, label in zip(at, labels, strict=True)
    }
    return (scaled - low) / (high - low), ticks


def _draw_axis(axis: Axes, position: int, ticks: dict[float, str]) -> None:
    axis.plot([position, position], [0, 1], color=GREY, linewidth=1.0, zorder=3)
    for height, label in ticks.items():
        axis.text(
            position - 0.05, height, escape_tex(label), ha="right", va="center", fontsize=8, color=INK,
            zorder=4, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )  # fmt: skip


def _shorten(value: object) -> str:
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 1]}…"
