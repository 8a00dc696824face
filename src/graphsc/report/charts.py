"""Accuracy per method: its mean, its deviation over seeds, and every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import COLOURS, INK, QUIET, WIDTH, colour, marker, new_figure, plain, tidy

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


# Which settings of a search matter: the share of the differences that each explains.


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


# Gains over a control, condition by condition, a mark for each data set.


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


# The confusion matrix as a picture: true classes down, predicted classes across.


_MOST_NUMBERS = 12  # classes up to which numbers fit into their squares


def confusion_figure(matrix: NDArray[np.int64], classes: Sequence[str]) -> Figure:
    """Draw counts, each square as dark as its share of the graphs of its true class."""
    if matrix.shape != (len(classes), len(classes)) or not len(classes):
        raise DataError(f"a confusion matrix of shape {matrix.shape} for {len(classes)} classes")
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    figure = new_figure(min(WIDTH, 1.6 + 0.55 * len(classes)))
    axis = figure.subplots()
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    if len(classes) <= _MOST_NUMBERS:
        for (row, column), count in np.ndenumerate(matrix):
            light = shares[row, column] > 0.55
            axis.text(column, row, f"{count:,}", ha="center", va="center", color="white" if light else INK)
    names = [plain(name if len(name) <= 14 else name[:13] + "…") for name in classes]
    turned = max(map(len, names)) * len(names) > 40
    axis.set_xticks(range(len(names)), names, fontsize=9, rotation=90 if turned else 0)
    axis.set_yticks(range(len(names)), names, fontsize=9)
    axis.tick_params(length=0)
    axis.set_xlabel("predicted", fontsize=10)
    axis.set_ylabel("true", fontsize=10)
    for spine in axis.spines.values():
        spine.set_color("#CCCCCC")
    return figure


# Heat maps of differences: blue above, orange below, and the number in every cell.


_CELL = 0.52  # inches
# Endpoints of equal lightness would be one grey; the sign is also written in every cell.
_COLOURS = ("#B35806", "#F1A340", "#FEE0B6", "#F7F7F7", "#D1E5F0", "#67A9CF", "#2166AC")


def heat_panels(
    panels: Mapping[str, NDArray[np.float64]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    row_label: str,
    column_label: str,
    value_label: str,
    blank: NDArray[np.bool_] | None = None,
) -> Figure:
    """Draw rows x columns for each title on one scale that is even around zero.

    nan is a cell that has not run and is hatched; `blank` (rows x columns) are cells that cannot be and stay
    white.
    """
    if not panels:
        raise DataError("there is no panel to draw")
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
    from matplotlib.patches import Rectangle

    none = np.zeros((len(rows), len(columns)), dtype=bool) if blank is None else blank
    values = np.concatenate([table[~none] for table in panels.values()])
    reach = max(1.0, float(np.nanmax(np.abs(values)))) if np.isfinite(values).any() else 1.0
    scale = TwoSlopeNorm(0.0, -reach, reach)
    shades = LinearSegmentedColormap.from_list("below and above", _COLOURS)
    wide = min(2, len(panels))
    high = -(-len(panels) // wide)
    figure = new_figure(
        (_CELL * len(rows) + 1.05) * high, max(4.8, (_CELL * len(columns) + 0.9) * wide + 0.9)
    )
    axes = figure.subplots(high, wide, squeeze=False).ravel()
    for number, (title, table) in enumerate(panels.items()):
        axis = axes[number]
        axis.imshow(np.where(none, np.nan, table), cmap=shades, norm=scale, aspect="equal")
        for i in range(len(rows)):
            for k in range(len(columns)):
                if none[i, k]:
                    continue
                if np.isnan(table[i, k]):
                    axis.add_patch(
                        Rectangle(
                            (k - 0.5, i - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#CCCCCC", lw=0
                        )
                    )
                    continue
                red, green, blue, _ = shades(scale(table[i, k]))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                axis.text(
                    k, i, _signed(table[i, k]), ha="center", va="center", fontsize=8.5,
                    color="white" if dark else INK,
                )  # fmt: skip
        axis.set_title(plain(title), fontsize=10.5, loc="left")
        axis.set_xticks(range(len(columns)), columns, fontsize=9)
        axis.set_yticks(range(len(rows)), rows, fontsize=9)
        axis.set_xlabel(column_label, fontsize=10)
        axis.set_ylabel(row_label if number % wide == 0 else "", fontsize=10)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    from matplotlib.cm import ScalarMappable

    bar = figure.colorbar(ScalarMappable(scale, shades), ax=list(axes), shrink=0.85, pad=0.02, aspect=25)
    bar.set_label(value_label, fontsize=10)
    bar.ax.tick_params(labelsize=9, color=QUIET)
    bar.outline.set_visible(False)
    return figure


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text.replace("-", "\N{MINUS SIGN}")
