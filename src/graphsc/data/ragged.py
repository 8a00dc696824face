"""Arithmetic on ragged arrays: many rows of differing length laid end to end."""

from __future__ import annotations

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
