"""What all figures share: size, colours, axis style, and writing them as PNG or SVG."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.data.html import COLOURS as COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


WIDTH = 4.8  # inches; on a phone 360 pixels wide, 10 point text is still 8 points tall
DPI = 200  # of a PNG

# A second cue beside colour, so that figures are readable in greyscale.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
DASHES = ((1, 0), (5, 2), (1.5, 1.5), (5, 2, 1.5, 2), (9, 3), (3, 1, 1, 1, 1, 1), (2, 4))  # on, off in points
INK = "#222222"
GREY = "#666666"  # for reference lines and secondary text


def colour(index: int) -> str:
    """Colour of the group with this index; starts over after the last one."""
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    """Marker of the group with this index."""
    return MARKERS[_shifted(index)]


def dashes(index: int) -> tuple[float, ...]:
    """Dash pattern of the group with this index."""
    return DASHES[_shifted(index)]


def _shifted(index: int) -> int:
    """Shift by one each time the colours start over, so that 49 pairs of colour and shape are distinct."""
    return (index + index // len(COLOURS)) % len(COLOURS)


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure of this size in inches, with a layout that leaves room for labels."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    matplotlib.use("Agg")
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))


def style_axis(axis: Axes, grid: str = "y") -> None:
    """Remove the upper and right spines and draw light grid lines behind the data."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#888888")
    axis.tick_params(labelsize=10, color="#888888")
    axis.grid(axis=grid, color="#DDDDDD", linewidth=0.7)  # type: ignore[arg-type]
    axis.set_axisbelow(True)


def text_width(text: str, size: float) -> float:
    """Return the width in inches of a text of this size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    if not text:
        return 0.0
    box = TextPath((0.0, 0.0), text, size=size, prop=FontProperties()).get_extents()
    return float(box.x1) / 72.0


def escape_tex(text: str) -> str:
    """Escape dollar signs, which Matplotlib would read as TeX math."""
    return text.replace("$", r"\$")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write the figure as PNG or SVG, by the suffix of `path`; missing folders are created.

    Raises:
        ConfigError: For any other suffix.
    """
    target = Path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ConfigError(f"cannot write a figure as {target.name}", hint="use a name ending in .png or .svg")
    write_atomic(target, _encode(figure, kind))


def svg_of(figure: Figure) -> str:
    """Return the figure as SVG text without a ground, so that the page behind it shows."""
    return _encode(figure, "svg", transparent=True).decode()


def _encode(figure: Figure, kind: str, transparent: bool = False) -> bytes:
    from matplotlib import rc_context

    file = io.BytesIO()
    # Text stays text, so that it can be searched. A fixed salt and no date: equal figures give equal files.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "graphsc"}):
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(file, format=kind, dpi=DPI, metadata=metadata, transparent=transparent)
    return file.getvalue()
