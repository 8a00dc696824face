"""Arithmetic on ragged arrays: many rows of differing length laid end to end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def pointer(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each row starts, and where the last one ends: [0, l0, l0 + l1, ...]."""
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def gather_index(
    ptr: NDArray[np.integer], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The flat positions of the chosen rows' elements, and the pointer of the result."""
    starts = ptr[rows].astype(np.int64)
    lengths = ptr[rows + 1].astype(np.int64) - starts
    new = pointer(lengths)
    flat = np.arange(new[-1], dtype=np.int64)
    flat += np.repeat(starts - new[:-1], lengths)
    return flat, new


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest unsigned integer type that holds `largest`."""
    return np.dtype(np.min_scalar_type(max(int(largest), 0)))


def chunks_of_edges(edge_ptr: NDArray[np.int64], most: int = 4_000_000) -> Iterator[slice]:
    """Runs of graphs with at most about `most` edges together, so that passes stay small."""
    start, last = 0, len(edge_ptr) - 1
    while start < last:
        stop = int(np.searchsorted(edge_ptr, edge_ptr[start] + most, side="right")) - 1
        stop = min(max(stop, start + 1), last)
        yield slice(start, stop)
        start = stop
