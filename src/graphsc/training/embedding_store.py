"""Rows of a long embedding on their way to a file: kept chunk by chunk, so that a kill loses one of them.

Beside the target lies a folder with one flat file of numbers and a note that holds the hash of every chunk in
it. The note is written after its chunk has reached the disk; whatever stands behind what it vouches for is
cut off at the next start. So every row is there exactly once, however often the work was stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import CannotWriteError, DamagedFileError
from graphsc.core.files import cannot_write, remove_stray_files, write_atomic
from graphsc.core.lock import InUseError, hold


class EmbeddingStore:
    """Chunks of rows, each of `chunk` rows but the last, of one embedding that `identity` names."""

    def __init__(self, target: Path, identity: dict[str, object], dimensions: int, chunk: int) -> None:
        self.folder = target.with_name(f".{target.name}.rows")
        self.identity = json.loads(json.dumps(identity))
        self.shape = (chunk, dimensions)
        self.hashes: list[str] = []
        self._rows, self._note = self.folder / "rows", self.folder / "done.json"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder and find out what is done; the folder goes once the work inside ends well."""
        with ExitStack() as stack:
            try:
                stack.enter_context(hold(self.folder / "lock"))
                remove_stray_files(self.folder)
                self._rows.touch()
                self._recover()
            except InUseError as error:
                raise CannotWriteError(
                    f"this file is being written by process {error.owner}", where=str(self.folder)
                ) from error
            except OSError as error:
                raise cannot_write(self.folder, error) from error
            yield
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def done(self) -> int:
        """How many chunks are kept."""
        return len(self.hashes)

    def append(self, rows: NDArray[np.float32]) -> None:
        """Keep the next chunk."""
        content = np.ascontiguousarray(rows, "<f4").tobytes()
        try:
            with open(self._rows, "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self._rows, error) from error
        self.hashes.append(hashlib.sha256(content).hexdigest())
        write_atomic(self._note, json.dumps({"identity": self.identity, "sha256": self.hashes}))

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """What is kept, in order, each chunk verified."""
        with open(self._rows, "rb") as file:
            for expected in self.hashes:
                content = file.read(self._bytes)
                if hashlib.sha256(content).hexdigest() != expected:
                    raise DamagedFileError(
                        "rows kept on the way are damaged", where=str(self._rows),
                        hint="run the same command to make them again",
                    )  # fmt: skip
                yield np.frombuffer(content, "<f4").reshape(-1, self.shape[1])

    @property
    def _bytes(self) -> int:
        return 4 * self.shape[0] * self.shape[1]

    def _recover(self) -> None:
        """Take what the note vouches for, up to the first chunk that is not what it says."""
        try:
            note = json.loads(self._note.read_bytes())
            if note["identity"] == self.identity:
                self.hashes = [str(one) for one in note["sha256"]]
        except (OSError, ValueError, TypeError, KeyError):
            self.hashes = []
        good, size = 0, 0
        try:
            for rows in self.chunks():
                good, size = good + 1, size + rows.nbytes
        except (DamagedFileError, ValueError):
            self.hashes = self.hashes[:good]
        os.truncate(self._rows, size)
