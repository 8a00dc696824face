"""What the generators of made-up graphs share: how many are asked for, and edges in both directions."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.ragged import pointer

MOST_GRAPHS = 100_000_000

Ints = NDArray[np.int64]


def asked_number(source: str, graphs: int | None, default: int) -> int:
    """The number of graphs in a source such as `motifs:1000`, or as an option."""
    if not isinstance(source, str):
        raise DataError(f"a {type(source).__name__} does not name a generator of graphs")
    word, colon, text = source.partition(":")
    if colon and not re.fullmatch("[0-9]{1,12}", text):
        raise DataError(f"{source!r} does not say how many graphs", hint=f"write {word}:1000, for example")
    number = int(text) if colon else None
    if number is not None and graphs is not None and number != graphs:
        raise DataError(f"{source!r} asks for {number} graphs, the option graphs for {graphs}")
    asked = number if graphs is None else graphs
    return default if asked is None else asked


def check_number(graphs: int) -> None:
    if not 1 <= graphs <= MOST_GRAPHS:
        raise ConfigError(f"number of graphs must be from 1 to {MOST_GRAPHS:,}, not {graphs:,}")


def both_ways(one: Ints, other: Ints, counts: Ints) -> Ints:
    """For edges laid end to end: one end of each graph's edges forth, then of the same edges back."""
    ptr = pointer(counts)
    graph = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(one)) + ptr[:-1][graph]
    ends = np.empty(2 * len(one), dtype=one.dtype)
    ends[place] = one
    ends[place + counts[graph]] = other
    return ends
