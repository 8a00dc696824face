"""Many short strings as two flat arrays: what ids are kept in, in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.data.ragged import gather_index, pointer


@dataclass(frozen=True, eq=False)
class Strings:
    """String i is `bytes[ptr[i]:ptr[i + 1]]`, in UTF-8."""

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
        """The strings at these positions, in this order."""
        flat, ptr = gather_index(self.ptr, index)
        return Strings(self.bytes[flat], ptr)
