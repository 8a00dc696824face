"""Colours and shapes that stay apart for every reader, on paper and on screen."""

from __future__ import annotations

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
