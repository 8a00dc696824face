"""Charts that compare methods and settings: accuracies, gains over a control, importances, heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import (
    COLOURS,
    GREY,
    INK,
    WIDTH,
    colour,
    escape_tex,
    marker,
    new_figure,
    style_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# By condition, then by data set: mean gain and its standard error, nan where that is unknown.
Gains = Mapping[str, Mapping[str, tuple[float, float]]]

_CELL = 0.52  # inches of a heat map's cell
# Orange below zero, blue above. In greyscale both ends look alike, so every cell also has its signed number.
_DIVERGING = ("#B35806", "#F1A340", "#FEE0B6", "#F7F7F7", "#D1E5F0", "#67A9CF", "#2166AC")


def interval_chart(scores: Mapping[str, tuple[float, float, float]], label: str) -> Figure:
    """Draw one row per name: a value with its interval, the first one in another colour.

    Args:
        scores: By name: value, lower and upper end; names without a value are left out.
        label: Of the x axis.
    """
    shown = {name: score for name, score in scores.items() if np.isfinite(score).all()}
    if not shown:
        raise DataError("there is no score to draw")
    figure = new_figure(0.75 + 0.3 * len(shown))
    axis = figure.subplots()
    for row, (name, (value, low, high)) in enumerate(shown.items()):
        first = name == next(iter(scores))
        ink = COLOURS[0] if first else GREY
        axis.plot([low, high], [row, row], color=ink, linewidth=3.0 if first else 2.0, solid_capstyle="butt")
        axis.plot([value], [row], marker="D" if first else "o", markersize=7, color=ink)
    axis.set_yticks(range(len(shown)), [escape_tex(name) for name in shown], fontsize=10)
    axis.set_ylim(len(shown) - 0.5, -0.5)
    style_axis(axis, "x")
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel(label, fontsize=10)
    return figure


def accuracy_bars(accuracy: Mapping[str, ArrayLike], *, untrained: float | None = None) -> Figure:
    """Draw one row per method: its mean with an error bar of one standard deviation, and a dot per seed.

    There are no solid bars below the error bars: the axis does not start at 0, so lengths would mislead.

    Args:
        accuracy: By method, one share between 0 and 1 per seed (the mean over its folds). The deviation is
            over seeds, ddof 1; a single seed has none.
        untrained: Mean of the untrained encoder, drawn as a dashed line.
    """
    seeds = {
        name: 100 * np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in accuracy.items()
    }
    if not seeds:
        raise DataError("there is no method to draw")
    for name, values in seeds.items():
        if values.ndim != 1 or not values.size or not np.isfinite(values).all():
            raise DataError(f"the accuracies of {name} are not one number per seed")
    figure = new_figure(0.75 + 0.34 * len(seeds) + (0.25 if untrained is not None else 0.0))
    axis = figure.subplots()
    for row, values in enumerate(seeds.values()):
        # Seeds are drawn slightly below their mean, so that neither covers the other.
        axis.scatter(
            values, np.full(len(values), row + 0.22), s=14, color=COLOURS[4], edgecolors=INK, linewidths=0.4,
            gid="seeds",
        )  # fmt: skip
        deviation = values.std(ddof=1) if len(values) > 1 else 0.0
        axis.errorbar(
            values.mean(), row - 0.08, xerr=deviation, color=COLOURS[0], marker="D", markersize=5.5,
            linewidth=1.8, capsize=4, capthick=1.8,
        )  # fmt: skip
    if untrained is not None:
        axis.axvline(100 * untrained, color=GREY, linewidth=1.3, linestyle="--", label="untrained", zorder=0)
        figure.legend(loc="outside lower right", frameon=False, fontsize=9.5, handlelength=3.0)
    _label_rows(axis, list(seeds))
    axis.margins(x=0.06)
    axis.set_xlabel("accuracy (%)", fontsize=10)
    return figure


def importance_bars(importance: Mapping[str, float]) -> Figure:
    """Draw one bar per setting of a search, the most important first.

    Args:
        importance: By setting, its share of the variance between trials; shares need not add up to 1.
    """
    ordered = sorted(importance.items(), key=lambda entry: (-entry[1], entry[0]))
    shares = [100 * share for _, share in ordered]
    if not shares or not np.isfinite(shares).all():
        raise DataError("there are no importances to draw", hint="finish more trials")
    figure = new_figure(0.8 + 0.32 * len(shares))
    axis = figure.subplots()
    axis.barh(range(len(shares)), shares, height=0.6, color=COLOURS[0])
    for row, share in enumerate(shares):
        axis.text(share, row, f" {share:.0f}", va="center", fontsize=9.5, color=INK)
    _label_rows(axis, [name for name, _ in ordered])
    axis.set_xlim(0, max(*shares, 1.0) * 1.12)
    axis.set_xlabel("share of the variance between trials (%)", fontsize=10)
    return figure


def _label_rows(axis: Axes, names: Sequence[str]) -> None:
    """One named row per entry, the first on top."""
    style_axis(axis, grid="x")
    axis.set_yticks(range(len(names)), [escape_tex(name) for name in names], fontsize=10)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def gain_plot(panels: Mapping[str, Gains]) -> Figure:
    """Draw one panel per control: gains in points by condition, with error bars of one standard error.

    Args:
        panels: By name of the control, which is the line at zero.
    """
    rows = [row for gains in panels.values() for row in gains.values()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    conditions = list(dict.fromkeys(name for gains in panels.values() for name in gains))
    if not names:
        raise DataError("there are no gains to draw")
    figure = new_figure(0.7 + 2.3 * len(panels), width=max(WIDTH, 1.15 * len(conditions)))
    axes = figure.subplots(len(panels), sharex=True, sharey=True, squeeze=False)[:, 0]
    offsets = (np.arange(len(names)) - (len(names) - 1) / 2) * 0.7 / max(len(names), 4)
    for axis, (control, gains) in zip(axes, panels.items(), strict=True):
        style_axis(axis)
        axis.axhline(0, color=INK, linewidth=1.3)
        for index, name in enumerate(names):
            positions = [i for i, condition in enumerate(conditions) if name in gains.get(condition, {})]
            values = np.array([gains[conditions[i]][name] for i in positions]).reshape(-1, 2)
            axis.errorbar(
                np.array(positions) + offsets[index], values[:, 0], yerr=np.nan_to_num(values[:, 1]),
                color=colour(index), marker=marker(index), markersize=6, linewidth=0, elinewidth=1.4,
                capsize=2.5, label=escape_tex(name) if axis is axes[0] else None,
            )  # fmt: skip
        axis.set_ylabel(f"points above\n{escape_tex(control)}", fontsize=10)
        axis.tick_params(axis="x", length=0)
    axes[-1].set_xticks(range(len(conditions)), [_two_lines(name) for name in conditions], fontsize=10)
    axes[-1].set_xlim(-0.6, len(conditions) - 0.4)
    # Long names of data sets need two inches each; the legend must not be wider than the figure.
    columns = max(1, int(figure.get_figwidth() // 2))
    figure.legend(loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5)
    return figure


def _two_lines(name: str) -> str:
    """Break a name in the middle, so that neighbouring tick labels do not touch."""
    words = escape_tex(name).split()
    return " ".join(words[: -(len(words) // 2)]) + "\n" + " ".join(words[-(len(words) // 2) :])


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
    """Draw one heat map of differences per title, all on one scale that is symmetric around zero.

    Values are rows x columns. A nan is a cell that has not run and is hatched; `blank` (rows x columns) marks
    cells that do not exist and stay white.
    """
    if not panels:
        raise DataError("there are no panels to draw")
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
    from matplotlib.patches import Rectangle

    hidden = np.zeros((len(rows), len(columns)), dtype=bool) if blank is None else blank
    values = np.concatenate([table[~hidden] for table in panels.values()])
    limit = max(1.0, float(np.nanmax(np.abs(values)))) if np.isfinite(values).any() else 1.0
    norm = TwoSlopeNorm(0.0, -limit, limit)
    colours = LinearSegmentedColormap.from_list("diverging", _DIVERGING)
    num_columns = min(2, len(panels))
    num_rows = -(-len(panels) // num_columns)
    figure = new_figure(
        (_CELL * len(rows) + 1.05) * num_rows, max(WIDTH, (_CELL * len(columns) + 0.9) * num_columns + 0.9)
    )
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for number, (title, table) in enumerate(panels.items()):
        axis = axes[number]
        axis.imshow(np.where(hidden, np.nan, table), cmap=colours, norm=norm, aspect="equal")
        for (i, k), value in np.ndenumerate(table):
            if hidden[i, k]:
                continue
            if np.isnan(value):
                corner = (k - 0.5, i - 0.5)
                axis.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor="#CCCCCC", lw=0))
                continue
            red, green, blue, _ = colours(norm(value))
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
            axis.text(
                k, i, _signed(value), ha="center", va="center", fontsize=8.5, color="white" if dark else INK
            )
        axis.set_title(escape_tex(title), fontsize=10.5, loc="left")
        axis.set_xticks(range(len(columns)), columns, fontsize=9)
        axis.set_yticks(range(len(rows)), rows, fontsize=9)
        axis.set_xlabel(column_label, fontsize=10)
        axis.set_ylabel(row_label if number % num_columns == 0 else "", fontsize=10)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=list(axes), shrink=0.85, pad=0.02, aspect=25)
    bar.set_label(value_label, fontsize=10)
    bar.ax.tick_params(labelsize=9, color=GREY)
    bar.outline.set_visible(False)
    return figure


def _signed(value: float) -> str:
    text = f"{value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text.replace("-", "\N{MINUS SIGN}")
