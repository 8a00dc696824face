"""Figures that one can read on a phone: their size, their letters, and how they become files or text."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH = 4.8  # inches; shown 360 pixels wide, letters of 10 points are still 8 points tall
DOTS = 200  # an inch, in a PNG


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure of this many inches that makes room for the labels of its subplots."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    matplotlib.use("Agg")
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))


def tidy(axis: Axes, grid: str = "y") -> None:
    """Take away the frame's upper and right side and lay light lines behind the data."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#888888")
    axis.tick_params(labelsize=10, color="#888888")
    axis.grid(axis=grid, color="#DDDDDD", linewidth=0.7)  # type: ignore[arg-type]
    axis.set_axisbelow(True)


def text_width(text: str, size: float) -> float:
    """Return how many inches a text of this size in points is wide."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text:
        return 0.0
    box = TextPath((0.0, 0.0), text, size=size, prop=FontProperties()).get_extents()
    return float(box.x1) / 72.0


def plain(text: str) -> str:
    """Keep a name's dollar signs from being read as the marks of a formula."""
    return text.replace("$", r"\$")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write the figure, as PNG or SVG by the ending of its name; folders are made."""
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ConfigError(
            f"a figure cannot be written as {target.name}", hint="let its name end in .png or .svg"
        )
    write_atomic(target, _bytes_of(figure, kind))


def svg_of(figure: Figure) -> str:
    """Return the figure as the text of an SVG file."""
    return _bytes_of(figure, "svg").decode()


def _bytes_of(figure: Figure, kind: str) -> bytes:
    from matplotlib import rc_context

    file = io.BytesIO()
    # Text stays text, so that a figure can be searched; a fixed salt gives the same file for the same figure.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphsc"}):
        # Without a date, because a figure says what was measured, not when it was drawn.
        figure.savefig(file, format=kind, dpi=DOTS, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()


# Colours and shapes that stay apart for every reader, on paper and on screen.


# Okabe and Ito's palette without its yellow, which vanishes on white: safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# A second cue beside colour, so that a map reads in greyscale.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
# The same cue for lines: on and off lengths in points.
DASHES = ((1, 0), (5, 2), (1.5, 1.5), (5, 2, 1.5, 2), (9, 3), (3, 1, 1, 1, 1, 1), (2, 4))
INK = "#222222"  # for what belongs to no group
QUIET = "#666666"  # for what stands behind: baselines, single seeds


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    return MARKERS[_shifted(index)]


def dashes(index: int) -> tuple[float, ...]:
    return DASHES[_shifted(index)]


def _shifted(index: int) -> int:
    """When colours begin again, shapes go on by one: 49 pairs before the first comes back."""
    return (index + index // len(COLOURS)) % len(COLOURS)
