"""Resumable storage for a file that is computed in chunks.

Finished chunks wait in a hidden folder beside the target file until the target can be written from all of
them. For the target `molecules.safetensors` the folder `.molecules.safetensors.chunks` holds:

- `lock`: held by the one process that owns the folder;
- `identity.json`: the computation that the chunks belong to (source, settings, version);
- `chunk-000000.bin`: the bytes of a chunk, if it has any;
- `chunk-000000.json`: its facts, and a hash over identity, index, facts and bytes.

Every file is written atomically, the `.json` file of a chunk last. A kill at any moment therefore loses at
most the chunk being written. Chunks may be computed anywhere, in any order; only the owner writes them.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graphsc.core.errors import CannotWriteError, DamagedFileError
from graphsc.core.files import InUseError, cannot_write, file_lock, write_atomic

Facts = Mapping[str, object]  # JSON values

_NAME = re.compile(r"chunk-(\d{6,})\.(?:bin|json)")


class ChunkStore:
    """The finished chunks of one computation; opened by `open_chunks`."""

    def __init__(self, target: Path, identity: Facts) -> None:
        self.folder = target.with_name(f".{target.name}.chunks")
        self._identity = json.dumps(identity, sort_keys=True)
        self._finished: set[int] = set()

    def __contains__(self, index: int) -> bool:
        return index in self._finished

    def __len__(self) -> int:
        return len(self._finished)

    def missing(self, total: int) -> list[int]:
        """Indices below `total` of the chunks that have yet to be computed."""
        return [index for index in range(total) if index not in self._finished]

    def path(self, index: int) -> Path:
        """The file with the bytes of a chunk, for readers that map it into memory."""
        return self.folder / f"chunk-{index:06d}.bin"

    def write(self, index: int, content: bytes, facts: Facts | None = None) -> None:
        """Store a finished chunk.

        Args:
            index: Position of the chunk in the target, from 0.
            content: Bytes of the chunk; may be empty.
            facts: JSON values, to be read without the bytes.
        """
        text = json.dumps(facts or {}, sort_keys=True)
        if content:
            write_atomic(self.path(index), content)
        record = {"facts": text, "sha256": self._hash(index, text, content)}
        write_atomic(self.path(index).with_suffix(".json"), json.dumps(record))
        self._finished.add(index)

    def facts(self, index: int) -> dict[str, object]:
        """The facts of a finished chunk; its bytes are not read."""
        facts: dict[str, object] = json.loads(self._record(index)[0])
        return facts

    def read(self, index: int) -> bytes:
        """The verified bytes of a finished chunk.

        Raises:
            DamagedFileError: The files of the chunk are missing or do not match their hash.
        """
        text, expected = self._record(index)
        try:
            content = self.path(index).read_bytes() if self.path(index).exists() else b""
        except OSError as error:
            raise self._damaged(index) from error
        if self._hash(index, text, content) != expected:
            raise self._damaged(index)
        return content

    def remove(self) -> None:
        """Delete the folder with all chunks."""
        self._finished.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _recover(self) -> None:
        """Find the whole chunks of an interrupted call, and delete all other files."""
        identity = self.folder / "identity.json"
        same = identity.exists() and identity.read_bytes() == self._identity.encode()
        indices = {
            path: int(match[1]) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name))
        }
        if same:
            self._finished = {index for index in set(indices.values()) if self._is_whole(index)}
        for path in self.folder.iterdir():
            keep = path.name == "lock" or (same and path == identity) or indices.get(path) in self._finished
            if not keep:
                path.unlink()
        if not same:
            write_atomic(identity, self._identity)  # after the chunks of the other identity are gone

    def _is_whole(self, index: int) -> bool:
        try:
            self.read(index)
        except DamagedFileError:
            return False
        return True

    def _record(self, index: int) -> tuple[str, str]:
        """Facts, as text, and hash."""
        try:
            record = json.loads(self.path(index).with_suffix(".json").read_bytes())
            return str(record["facts"]), str(record["sha256"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._damaged(index) from error

    def _hash(self, index: int, facts: str, content: bytes) -> str:
        """A hash that a chunk of another computation or position does not match."""
        digest = hashlib.sha256(json.dumps([self._identity, index, facts]).encode())
        digest.update(content)
        return digest.hexdigest()

    def _damaged(self, index: int) -> DamagedFileError:
        hint = "run the same command again to recompute it"
        return DamagedFileError("a stored chunk is damaged", where=str(self.path(index)), hint=hint)


class MemoryChunks(ChunkStore):
    """Chunks without files, for a target of a single chunk: a kill would lose it anyway."""

    def __init__(self, target: Path, identity: Facts) -> None:
        super().__init__(target, identity)
        self._chunks: dict[int, tuple[bytes, Facts]] = {}

    def write(self, index: int, content: bytes, facts: Facts | None = None) -> None:
        self._chunks[index] = content, facts or {}
        self._finished.add(index)

    def facts(self, index: int) -> dict[str, object]:
        return dict(self._chunks[index][1])

    def read(self, index: int) -> bytes:
        return self._chunks[index][0]


@contextmanager
def open_chunks(target: Path, identity: Facts) -> Iterator[ChunkStore]:
    """Own the chunks of `target` inside a `with` block.

    Whole chunks of an interrupted call with the same identity are found again. Damaged chunks and those of
    another identity are deleted. The folder is removed if the block ends without an exception, which is
    after the target has been renamed into place, and kept otherwise.

    Args:
        target: The file that will be written from the chunks.
        identity: JSON values that determine every byte of every chunk: content hash of the source,
            settings, versions.

    Raises:
        CannotWriteError: Another process owns the chunks, or the disk is full or read-only.
    """
    store = ChunkStore(target, identity)
    try:
        with file_lock(store.folder / "lock"):
            store._recover()
            yield store
            store.remove()
    except InUseError as error:
        message = f"this file is being written by process {error.owner}"
        raise CannotWriteError(message, where=str(target)) from error
    except OSError as error:
        raise cannot_write(target, error) from error
