"""A structural formula as SVG text, for pages without a script; the explorer draws the same by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

import numpy as np
from numpy.typing import NDArray

from graphsc.report import drawings as lines
from graphsc.report.drawings import Drawing

WIDTH, HEIGHT = 240, 180
LONGEST = 34.0  # of a bond: two atoms need not fill the picture
GAP = 0.16  # between the lines of a double bond, as a share of its length
INK = "#1b1f24"
SHADES = {
    "N": "#1f5fbf", "O": "#c5221f", "S": "#8a6500", "P": "#a85100", "F": "#1a7a3c", "Cl": "#1a7a3c",
    "Br": "#8c3b2a", "I": "#6a3d9a",
}  # fmt: skip
_TEXT = re.compile(r"^([A-Z][a-z]?|\*)(H[₀-₉]*)?(.*)$")
# Where the lines of a bond run: how many gaps aside, how much shorter at each end, and dashed or not.
_RUNS = {
    lines.PLAIN: ((0, 0, False),),
    lines.DOUBLE: ((0.5, 0, False), (-0.5, 0, False)),
    lines.DOUBLE_LEFT: ((0, 0, False), (-1, 0.14, False)),
    lines.DOUBLE_RIGHT: ((0, 0, False), (1, 0.14, False)),
    lines.TRIPLE: ((0, 0, False), (1, 0.1, False), (-1, 0.1, False)),
    lines.DASHED: ((0, 0, False), (1, 0.14, True)),
}


def formula_svg(drawing: Drawing) -> str:
    """The drawing on white, letters in front of lines, sized to one frame."""
    places, length = _fitted(drawing)
    stroke = max(0.8, min(1.6, 0.06 * length))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<g stroke="{INK}" stroke-width="{stroke:.1f}" stroke-linecap="round" fill="none">',
    ]
    for (one, other), kind in zip(drawing.edges.T.tolist(), drawing.kinds, strict=True):
        parts += _bond(places[one], places[other], kind)
    size = _size(length)
    parts.append(
        f'</g><g font-family="system-ui, sans-serif" font-weight="600" font-size="{size:.1f}" '
        f'stroke="#ffffff" stroke-width="{0.35 * size:.1f}" stroke-linejoin="round" paint-order="stroke">'
    )
    for node, text in enumerate(drawing.texts):
        if text:
            parts.append(_letters(text, places[node], _mean_beside(drawing, places, node), size))
    return "".join([*parts, "</g></svg>"])


def _fitted(drawing: Drawing) -> tuple[NDArray[np.float64], float]:
    """Places in the frame, and the mean length of a bond there."""
    places = np.asarray(drawing.places, np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    ends = places[np.asarray(drawing.edges, np.int64)]
    mean = float(np.linalg.norm(ends[0] - ends[1], axis=1).mean()) if drawing.edges.size else 0.0
    frame, scale, size = np.array([WIDTH, HEIGHT]), 0.0, 0.0
    for _ in range(2):  # how much room the letters need is known once there is a scale
        room = frame - 2 * (8 + size * np.array([2.0, 0.6]))  # words like H₂N+ reach out sideways
        scale = min(float((room / np.maximum(high - low, 1e-9)).min()), LONGEST / mean if mean else LONGEST)
        size = _size(mean * scale)
    return (places - (low + high) / 2) * scale + frame / 2, mean * scale or LONGEST


def _size(length: float) -> float:
    """Of letters, where a bond is so long."""
    return max(6.0, min(14.0, 0.5 * length))


def _bond(start: NDArray[np.float64], end: NDArray[np.float64], kind: int) -> Iterator[str]:
    along = end - start
    aside = GAP * np.array([-along[1], along[0]])
    for gaps, shorter, dashed in _RUNS[kind]:
        (x, y), (u, v) = start + gaps * aside + shorter * along, end + gaps * aside - shorter * along
        dashes = ' stroke-dasharray="2 3"' if dashed else ""
        yield f'<path d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"{dashes}/>'


def _mean_beside(drawing: Drawing, places: NDArray[np.float64], node: int) -> float | None:
    """Where the neighbours of a node lie from left to right; None where it has none."""
    one, other = np.asarray(drawing.edges)
    beside = [*places[other[one == node], 0], *places[one[other == node], 0]]
    return float(np.mean(beside)) if beside else None


def _letters(text: str, place: NDArray[np.float64], beside: float | None, size: float) -> str:
    """The symbol on its place; hydrogens behind it, or before it where the bonds are on the right."""
    match = _TEXT.match(text)
    symbol, hydrogens, rest = match.groups(default="") if match else (text, "", "")
    x, y = place
    half = 0.5 * size * sum(0.72 if letter.isupper() else 0.5 for letter in symbol)
    if hydrogens and beside is not None and beside > x + 1:
        anchor, start, shown = "end", x + half, hydrogens + symbol
        if rest:  # a charge stays behind the symbol
            shown += rest
            start += 0.5 * size * len(rest)
    elif hydrogens or rest:
        anchor, start, shown = "start", x - half, text
    else:
        anchor, start, shown = "middle", x, text
    colour = SHADES.get(symbol, INK)
    return (
        f'<text x="{start:.1f}" y="{y + 0.35 * size:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(shown)}</text>"
    )
