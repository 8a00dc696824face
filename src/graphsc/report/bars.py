"""Accuracy per method: its mean, its deviation over seeds, and every seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import COLOURS, INK, QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def accuracy_bars(accuracy: Mapping[str, ArrayLike], *, untrained: float | None = None) -> Figure:
    """Draw a row for each method, as given: a diamond for the mean, a bar of one deviation, dots for seeds.

    accuracy: by method, one share between 0 and 1 a seed (the mean over its folds). The deviation is over
    seeds, ddof 0. untrained: the mean of the untrained encoder, drawn as a dashed line through all rows.
    Error bars stand without solid bars below them: the scale does not begin at 0, and lengths would mislead.
    """
    seeds = {
        name: 100 * np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in accuracy.items()
    }
    if not seeds:
        raise DataError("there is no method to draw")
    for name, values in seeds.items():
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise DataError(f"the accuracies of {name} are not one number a seed")
    figure = new_figure(0.75 + 0.34 * len(seeds) + (0.25 if untrained is not None else 0.0))
    axis = figure.subplots()
    for row, values in enumerate(seeds.values()):
        # Seeds stand a little below their mean, so that neither hides the other.
        axis.scatter(
            values, np.full(len(values), row + 0.22), s=14, color=COLOURS[4], edgecolors=INK, linewidths=0.4,
            gid="seeds",
        )  # fmt: skip
        axis.errorbar(
            values.mean(), row - 0.08, xerr=values.std(), color=COLOURS[0], marker="D", markersize=5.5,
            linewidth=1.8, capsize=4, capthick=1.8,
        )  # fmt: skip
    if untrained is not None:
        axis.axvline(100 * untrained, color=QUIET, linewidth=1.3, linestyle="--", label="untrained", zorder=0)
        figure.legend(loc="outside lower right", frameon=False, fontsize=9.5, handlelength=3.0)
    tidy(axis, grid="x")
    axis.set_yticks(range(len(seeds)), [plain(name) for name in seeds], fontsize=10)
    axis.set_ylim(len(seeds) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.margins(x=0.06)
    axis.set_xlabel("accuracy (%)", fontsize=10)
    return figure
