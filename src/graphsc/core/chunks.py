"""Resumable storage for a file that is computed in chunks.

Finished chunks wait in a hidden folder beside the target file until the target can be written from all of
them. For the target `molecules.safetensors` the folder `.molecules.safetensors.chunks` holds:

- `lock`: held by the one process that owns the folder;
- `identity.json`: the computation that the chunks belong to (source, settings, version);
- `chunk-000000.bin`: the bytes of a chunk, absent if it has none;
- `chunk-000000.json`: its facts and a hash over identity, index, facts and bytes.

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
from graphsc.core.files import InUseError, cannot_write, hold, write_atomic

Facts = Mapping[str, object]  # JSON values

_RECORD = re.compile(r"chunk-(\d{6,})\.json")


class ChunkStore:
    """The finished chunks of one computation; made by `open_chunks`."""

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

    def write(self, index: int, content: bytes | None, facts: Facts | None = None) -> None:
        """Store a finished chunk.

        Args:
            index: Position of the chunk in the target, from 0.
            content: Bytes of the chunk; None if it only has facts.
            facts: JSON values that can be read without the bytes.
        """
        text = json.dumps(facts or {}, sort_keys=True)
        digest = self._digest(index, text)
        if content is not None:
            digest.update(content)
            write_atomic(self.path(index), content)
        record = {"facts": text, "sha256": digest.hexdigest(), "has_content": content is not None}
        write_atomic(self._record_path(index), json.dumps(record))
        self._finished.add(index)

    def facts(self, index: int) -> dict[str, object]:
        """The facts of a finished chunk, without verifying its bytes."""
        text, _, _ = self._record(index)
        facts: dict[str, object] = json.loads(text)
        return facts

    def read(self, index: int) -> bytes:
        """The verified bytes of a finished chunk; empty if it has none.

        Raises:
            DamagedFileError: The files of the chunk are missing or do not match their hash.
        """
        text, expected, has_content = self._record(index)
        try:
            content = self.path(index).read_bytes() if has_content else b""
        except OSError as error:
            raise self._damaged(index) from error
        digest = self._digest(index, text)
        digest.update(content)
        if digest.hexdigest() != expected:
            raise self._damaged(index)
        return content

    def remove(self) -> None:
        """Delete the folder with all chunks."""
        self._finished.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _recover(self) -> None:
        """Find the chunks of an interrupted call; delete all other files.

        Chunks of another identity go before the new identity is written. If that is interrupted, those
        that are left still belong to the identity in the file.
        """
        identity = self.folder / "identity.json"
        same = identity.exists() and identity.read_bytes() == self._identity.encode()
        for path in self.folder.iterdir() if same else ():
            match = _RECORD.fullmatch(path.name)
            if match and self._is_whole(int(match[1])):
                self._finished.add(int(match[1]))
        keep = {"lock"} | ({"identity.json"} if same else set())
        for index in self._finished:
            keep |= {self.path(index).name, self._record_path(index).name}
        for path in self.folder.iterdir():
            if path.name not in keep:
                path.unlink()
        if not same:
            write_atomic(identity, self._identity)

    def _is_whole(self, index: int) -> bool:
        try:
            text, expected, has_content = self._record(index)
            if not has_content:
                return self._digest(index, text).hexdigest() == expected
            with open(self.path(index), "rb") as file:
                return hashlib.file_digest(file, lambda: self._digest(index, text)).hexdigest() == expected
        except (OSError, DamagedFileError):
            return False

    def _record(self, index: int) -> tuple[str, str, bool]:
        """Facts as text, hash, and whether there are bytes."""
        try:
            record = json.loads(self._record_path(index).read_bytes())
            return str(record["facts"]), str(record["sha256"]), bool(record["has_content"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise self._damaged(index) from error

    def _record_path(self, index: int) -> Path:
        return self.folder / f"chunk-{index:06d}.json"

    def _digest(self, index: int, facts: str) -> hashlib._Hash:
        """A hash over everything but the bytes; a chunk of another folder or position does not match it."""
        return hashlib.sha256(json.dumps([self._identity, index, facts]).encode())

    def _damaged(self, index: int) -> DamagedFileError:
        hint = "run the same command again to recompute it"
        return DamagedFileError("a stored chunk is damaged", where=str(self.path(index)), hint=hint)


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
        with hold(store.folder / "lock"):
            store._recover()
            yield store
            store.remove()
    except InUseError as error:
        message = f"this file is being written by process {error.owner}"
        raise CannotWriteError(message, where=str(target)) from error
    except OSError as error:
        raise cannot_write(target, error) from error
