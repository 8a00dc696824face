"""Gains over a control, condition by condition, a mark for each data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import QUIET, colour, marker

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def gain_plot(gains: Mapping[str, Mapping[str, tuple[float, float]]], *, control: str) -> Figure:
    """Draw a group of marks for each condition: points above the control, with a bar of one standard error.

    gains: by condition and name, the mean and its error (nan where it is not known). The dashed line is the
    control; what lies above it has gained.
    """
    names = list(dict.fromkeys(name for row in gains.values() for name in row))
    if not names:
        raise DataError("there are no gains to draw")
    figure = new_figure(3.4, width=max(4.8, 1.3 * len(gains)))
    axis = figure.subplots()
    offsets = (np.arange(len(names)) - (len(names) - 1) / 2) * 0.7 / max(len(names), 4)
    for index, name in enumerate(names):
        places = [place for place, row in enumerate(gains.values()) if name in row]
        values = np.array([row[name] for row in gains.values() if name in row])
        axis.errorbar(
            np.array(places) + offsets[index], values[:, 0], yerr=np.nan_to_num(values[:, 1]),
            color=colour(index), marker=marker(index), markersize=6, linewidth=0, elinewidth=1.4, capsize=2.5,
            label=plain(name),
        )  # fmt: skip
    axis.axhline(0, color=QUIET, linewidth=1.3, linestyle="--", zorder=0)
    tidy(axis)
    axis.set_xticks(range(len(gains)), [plain(name).replace(" ", "\n", 1) for name in gains], fontsize=10)
    axis.set_xlim(-0.6, len(gains) - 0.4)
    axis.tick_params(axis="x", length=0)
    axis.set_ylabel(f"points above {plain(control)}", fontsize=10)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9.5)
    return figure
