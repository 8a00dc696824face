"""Ragged arrays: rows of different lengths stored end to end in one flat array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# A compressed source may be this many times as large unpacked; TU archives are at most 8 times as large.
MOST_TIMES = 50
ALWAYS_UNPACKED = 64 * 2**20  # bytes; a source up to here may be any number of times as large


def most_unpacked(compressed: int) -> int:
    """Bytes that a compressed source of this size may have unpacked, which bounds the memory for it."""
    return max(ALWAYS_UNPACKED, MOST_TIMES * compressed)


def pointer(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Row offsets `[0, l0, l0 + l1, ...]`, one more than there are rows."""
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return ptr


def gather_index(
    ptr: NDArray[np.integer], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Flat positions of all elements of the selected rows, and the pointer of the result."""
    starts = ptr[rows].astype(np.int64)
    lengths = ptr[rows + 1].astype(np.int64) - starts
    new_ptr = pointer(lengths)
    flat = np.arange(new_ptr[-1], dtype=np.int64)
    flat += np.repeat(starts - new_ptr[:-1], lengths)
    return flat, new_ptr


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned integer dtype that can represent `largest`."""
    return np.dtype(np.min_scalar_type(max(int(largest), 0)))


def chunks_of_edges(edge_ptr: NDArray[np.int64], most: int = 4_000_000) -> Iterator[slice]:
    """Split graphs into consecutive slices of at most `most` edges, but at least one graph, each.

    Passes over all edges go slice by slice, which bounds their temporary memory.
    """
    start, last = 0, len(edge_ptr) - 1
    while start < last:
        stop = int(np.searchsorted(edge_ptr, edge_ptr[start] + most, side="right")) - 1
        stop = min(max(stop, start + 1), last)
        yield slice(start, stop)
        start = stop


@dataclass(frozen=True, eq=False)
class Strings:
    """Many short strings as two flat arrays: string i is `bytes[ptr[i]:ptr[i + 1]]` in UTF-8."""

    bytes: NDArray[np.uint8]
    ptr: NDArray[np.int64]

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), pointer(lengths))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, index: int) -> str:
        if not -len(self) <= index < len(self):
            raise IndexError(f"string {index} of {len(self)}")
        index %= len(self)
        raw = self.bytes[self.ptr[index] : self.ptr[index + 1]].tobytes()
        return raw.decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings):
            return NotImplemented
        return np.array_equal(self.ptr, other.ptr) and np.array_equal(self.bytes, other.bytes)

    __hash__ = None  # type: ignore[assignment]

    def take(self, index: NDArray[np.int64]) -> Strings:
        """The strings at the given positions, in that order."""
        flat, ptr = gather_index(self.ptr, index)
        return Strings(self.bytes[flat], ptr)
