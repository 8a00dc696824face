"""Which settings of a search matter: the share of the differences that each explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def importance_bars(importance: Mapping[str, float]) -> Figure:
    """Draw a bar for each setting, the most important one first.

    importance: by setting, shares of the variance between trials; they need not add up to 1.
    """
    known = sorted(importance.items(), key=lambda entry: (-entry[1], entry[0]))
    if not known or not np.isfinite([share for _, share in known]).all():
        raise DataError("there is no importance to draw", hint="finish more trials")
    figure = new_figure(0.8 + 0.32 * len(known))
    axis = figure.subplots()
    shares = [100 * share for _, share in known]
    axis.barh(range(len(known)), shares, height=0.6, color=COLOURS[0])
    for row, share in enumerate(shares):
        axis.text(share, row, f" {share:.0f}", va="center", fontsize=9.5, color=INK)
    tidy(axis, grid="x")
    axis.set_yticks(range(len(known)), [plain(name) for name, _ in known], fontsize=10)
    axis.set_ylim(len(known) - 0.4, -0.6)
    axis.set_xlim(0, max(*shares, 1.0) * 1.12)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("share of the differences between trials (%)", fontsize=10)
    return figure
