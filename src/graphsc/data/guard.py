"""Verifies the blocks of a large memory-mapped file when they are first touched."""

from __future__ import annotations

import hashlib
import math
import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError

if TYPE_CHECKING:
    from graphsc.data.collection import GraphCollection

BLOCK = 16 * 2**20  # bytes


@dataclass(frozen=True)
class Span:
    """Where one array lies in the data section."""

    start: int
    stop: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class BlockGuard:
    """Knows which 16 MB blocks of a file have been seen to match their hash."""

    def __init__(
        self, buffer: mmap.mmap, start: int, hashes: list[str], spans: dict[str, Span], where: str
    ) -> None:
        self._buffer = buffer
        self._start = start
        self._hashes = hashes
        self._spans = spans
        self._where = where
        self._verified = np.zeros(len(hashes), dtype=bool)

    def touch_graphs(self, collection: GraphCollection, rows: NDArray[np.int64]) -> None:
        """Verify the blocks that hold the nodes and edges of these graphs."""
        if self._verified.all():
            return
        for name, ptr in (
            ("node_codes", collection.node_ptr),
            ("node_floats", collection.node_ptr),
            ("edge_codes", collection.edge_ptr),
            ("edge_floats", collection.edge_ptr),
        ):
            span = self._spans[name]
            self._touch_rows(span.start, span.shape[1] * span.dtype.itemsize, ptr, rows)
        span = self._spans["edge_index"]
        for half in (span.start, span.start + (span.stop - span.start) // 2):
            self._touch_rows(half, span.dtype.itemsize, collection.edge_ptr, rows)

    def _touch_rows(self, start: int, width: int, ptr: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        rows = rows[ptr[rows] < ptr[rows + 1]]  # what has no bytes lies in no block
        if width == 0 or not len(rows):
            return
        first = (start + ptr[rows] * width) // BLOCK
        last = (start + ptr[rows + 1] * width - 1) // BLOCK
        needed = np.zeros(len(self._hashes) + 1, dtype=np.int64)
        np.add.at(needed, first, 1)
        np.add.at(needed, last + 1, -1)
        for block in np.flatnonzero((np.cumsum(needed[:-1]) > 0) & ~self._verified):
            self._verify(int(block))

    def touch_bytes(self, start: int, stop: int) -> None:
        """Verify the blocks of a range of the data section."""
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            if not self._verified[block]:
                self._verify(block)

    def verify_all(self) -> None:
        """Verify every block, whatever was verified before."""
        for block in range(len(self._hashes)):
            self._verify(block)

    def _verify(self, block: int) -> None:
        begin = self._start + block * BLOCK
        # A view of the map would keep it from closing; hashing a slice copies 16 MB at most.
        if hashlib.sha256(self._buffer[begin : begin + BLOCK]).hexdigest() != self._hashes[block]:
            raise DamagedFileError(
                f"collection is damaged: block {block} does not match its hash",
                where=self._where,
                hint="convert it again from its source",
            )
        self._verified[block] = True
