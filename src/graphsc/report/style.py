"""Colours and shapes that stay apart for every reader, on paper and on screen."""

from __future__ import annotations

# Okabe and Ito's palette without its yellow, which vanishes on white: safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# A second cue beside colour, so that a map reads in greyscale.
MARKERS = ("o", "^", "s", "D", "v", "P", "X")


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    return MARKERS[index % len(MARKERS)]
