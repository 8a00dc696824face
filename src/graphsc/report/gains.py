"""Gains over a control, condition by condition, a mark for each data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain, tidy
from graphsc.report.style import INK, colour, marker

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Gains = Mapping[str, Mapping[str, tuple[float, float]]]


def gain_plot(panels: Mapping[str, Gains]) -> Figure:
    """Draw a panel for each control: points above it by condition, with bars of one standard error.

    panels: by the control's name, by condition and by data set, the mean gain and its error (nan where it is
    not known). The line at zero is the control; what lies above it has gained.
    """
    rows = [row for gains in panels.values() for row in gains.values()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    conditions = list(dict.fromkeys(name for gains in panels.values() for name in gains))
    if not names:
        raise DataError("there are no gains to draw")
    figure = new_figure(0.7 + 2.3 * len(panels), width=max(4.8, 1.15 * len(conditions)))
    axes = figure.subplots(len(panels), sharex=True, sharey=True, squeeze=False)[:, 0]
    offsets = (np.arange(len(names)) - (len(names) - 1) / 2) * 0.7 / max(len(names), 4)
    for axis, (control, gains) in zip(axes, panels.items(), strict=True):
        tidy(axis)
        axis.axhline(0, color=INK, linewidth=1.3)
        for index, name in enumerate(names):
            places = [place for place, key in enumerate(conditions) if name in gains.get(key, {})]
            values = np.array([gains[conditions[place]][name] for place in places]).reshape(-1, 2)
            axis.errorbar(
                np.array(places) + offsets[index], values[:, 0], yerr=np.nan_to_num(values[:, 1]),
                color=colour(index), marker=marker(index), markersize=6, linewidth=0, elinewidth=1.4,
                capsize=2.5, label=plain(name) if axis is axes[0] else None,
            )  # fmt: skip
        axis.set_ylabel(f"points above\n{plain(control)}", fontsize=10)
    axes[-1].set_xticks(range(len(conditions)), [_two_lines(name) for name in conditions], fontsize=10)
    axes[-1].set_xlim(-0.6, len(conditions) - 0.4)
    for axis in axes:
        axis.tick_params(axis="x", length=0)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=9.5)
    return figure


def _two_lines(name: str) -> str:
    """Broken before the last word or two, so that neighbours do not touch."""
    words = plain(name).split()
    return " ".join(words[: -(len(words) // 2)]) + "\n" + " ".join(words[-(len(words) // 2) :])
