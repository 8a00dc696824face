"""Heat maps of differences: blue above, orange below, and the number in every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.report.figure import new_figure, plain
from graphsc.report.style import INK, QUIET

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
