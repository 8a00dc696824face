"""An overview of GraphSC: the steps from a graph to its loss (after the paper's Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.report.figure import COLOURS, GREY, INK, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 10.5, 5.9  # inches, and the units of the only axis
_ROWS = {"anchor": 4.2, "positive": 2.7, "negative": 1.1}
_NODES = ((0.0, 0.36), (0.36, 0.12), (0.24, -0.3), (-0.24, -0.3), (-0.36, 0.12), (0.0, 0.0))
_EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5), (2, 5), (3, 5))
_DROPPED = {"anchor": (), "positive": (1,), "negative": (1, 3, 5)}
_SHADES = {"anchor": INK, "positive": COLOURS[0], "negative": COLOURS[1]}


def framework_figure() -> Figure:
    """Draw views, encoder, heads and the four loss terms, with the step numbers of the paper."""
    figure = new_figure(_HEIGHT, _WIDTH)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set(xlim=(0, _WIDTH), ylim=(0, _HEIGHT))
    axis.axis("off")
    headings = ((1.75, "1  views"), (3.35, "2  encoder"), (5.2, "heads"), (7.95, "3 to 6  terms of the loss"))
    for x, text in headings:
        axis.text(x, 5.62, text, ha="center", fontsize=11, color=GREY, weight="bold")
    _graph(axis, 0.6, _ROWS["anchor"], "anchor")
    axis.text(0.6, _ROWS["anchor"] - 0.58, "graph G", ha="center", va="center", fontsize=10)
    for name, words in (("positive", "weak view, rate $r_a$"), ("negative", "strong view, rate $r_b > r_a$")):
        _graph(axis, 1.75, _ROWS[name], name)
        axis.text(1.75, _ROWS[name] - 0.58, words, ha="center", va="center", fontsize=10)
        _arrow(axis, (0.65, _ROWS["anchor"] - 0.76), (1.22, _ROWS[name] + 0.12), _SHADES[name])
    _box(axis, 3.35, 2.7, 0.75, 3.9, "GNN f\n\nshared\nweights")
    bus, end = 6.25, 9.42
    for name, sign in (("anchor", ""), ("positive", "^+"), ("negative", "^-")):
        row, shade = _ROWS[name], _SHADES[name]
        _arrow(axis, (1.1 if name == "anchor" else 2.25, row), (2.95, row), shade)
        _arrow(axis, (3.75, row), (4.45, row), shade, f"$h{sign}$")
        _box(axis, 4.75, row, 0.5, 0.5, "$g_1$")
        _arrow(axis, (5.02, row), (5.36, row), shade)
        _vector(axis, 5.65, row, shade, masked=None)
        axis.text(5.65, row + 0.22, f"$y{sign}$", ha="center", va="bottom", fontsize=11, color=shade)
        axis.plot([5.94, bus], [row, row], color=shade, linewidth=1.4)
    axis.plot([bus, bus], [_ROWS["negative"], _ROWS["anchor"]], color=GREY, linewidth=1.4)
    axis.plot([3.95, 3.95, 5.0], [_ROWS["anchor"], 5.05, 5.05], color=GREY, linewidth=1.4)
    _box(axis, 5.27, 5.05, 0.5, 0.42, "$g_3$")
    _arrow(axis, (5.55, 5.05), (6.72, 5.05), GREY, "$z, z^+$")
    terms = (
        (5.05, "6  pull anchor and positive\ntogether:  $L_{ab}$", 0.0),
        (4.0, "3  self-contrast: triplet of\n$y, y^+, y^-$:  $L_{se}$", 0.0),
        (2.9, "4  factors of $y^+$ and of $y^-$ made\nindependent by HSIC:  $L_{fa}$", 0.0),
        (1.35, "5  masked self-contrast: one factor\nzero at a time, head $g_2$, triplet:  $L_{ma}$", 0.22),
    )
    for height, words, lift in terms:
        tall = 0.62 if lift == 0.0 else 1.3
        _box(axis, 8.0, height, 2.5, tall, "")
        axis.text(8.0, height + lift, words, ha="center", va="center", fontsize=9.5, linespacing=1.3)
        if height < 5.0:
            _arrow(axis, (bus, height), (6.72, height), GREY)
        axis.plot([9.28, end], [height, height], color=GREY, linewidth=1.4)
    axis.plot([end, end], [terms[-1][0], terms[0][0]], color=GREY, linewidth=1.4)
    _arrow(axis, (end, 2.95), (9.65, 2.95), GREY)
    for number in range(4):
        _vector(axis, 7.25 + 0.5 * number, 0.93, _SHADES["positive"], masked=number, size=0.1)
    axis.text(
        10.0, 2.95, "$L_{se}$\n$+\\;\\lambda_1 L_{ma}$\n$+\\;\\lambda_2 L_{fa}$\n$+\\;\\lambda_3 L_{ab}$",
        ha="center", va="center", fontsize=11.5,
    )  # fmt: skip
    return figure


def _graph(axis: Axes, x: float, y: float, name: str) -> None:
    """Six nodes; dropped nodes are hollow, their edges dotted."""
    dropped = _DROPPED[name]
    for u, v in _EDGES:
        lost = u in dropped or v in dropped
        axis.plot(
            [x + _NODES[u][0], x + _NODES[v][0]], [y + _NODES[u][1], y + _NODES[v][1]],
            color="#BBBBBB" if lost else _SHADES[name], linestyle=":" if lost else "-", linewidth=1.3,
            zorder=1,
        )  # fmt: skip
    for node, (right, up) in enumerate(_NODES):
        lost = node in dropped
        axis.plot(
            x + right, y + up, "o", markersize=9, markerfacecolor="white" if lost else _SHADES[name],
            markeredgecolor="#BBBBBB" if lost else _SHADES[name], zorder=2,
        )  # fmt: skip


def _vector(axis: Axes, x: float, y: float, shade: str, masked: int | None, size: float = 0.13) -> None:
    """A vector of four factors; a masked one is empty."""
    from matplotlib.patches import Rectangle

    for place in range(4):
        axis.add_patch(
            Rectangle(
                (x + (place - 2) * size, y - size), size, 2 * size, edgecolor=shade, linewidth=1.2,
                facecolor="white" if place == masked else shade, alpha=1.0 if place == masked else 0.55,
            )
        )  # fmt: skip


def _box(axis: Axes, x: float, y: float, width: float, height: float, text: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.02,rounding_size=0.06",
            facecolor="#F4F4F4", edgecolor=GREY, linewidth=1.2,
        )
    )  # fmt: skip
    axis.text(x, y, text, ha="center", va="center", fontsize=10, linespacing=1.25)


def _arrow(
    axis: Axes, start: tuple[float, float], end: tuple[float, float], shade: str, text: str = ""
) -> None:
    style = {"arrowstyle": "-|>", "color": shade, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", end, start, arrowprops=style)
    if text:
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.06)
        axis.text(*middle, text, ha="center", va="bottom", fontsize=11, color=shade)
