"""Files that are either the old one or the new one, never a part of either.

A file is written under a temporary name in its own folder, flushed to the disk, and renamed. The
temporary name carries the writer's process id, so that what a killed process left behind can be told
from what a living one is writing.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_TEMPORARY = re.compile(r"^\..+\.(\d+)\.tmp$")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under `path` only when the block ends without an error."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer = f"{threading.get_ident()}.{os.getpid()}"  # two threads may write one file as well
    temporary = target.with_name(f".{target.name}.{writer}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Replace the file at `path` by `content`, whole or not at all."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut (a no-op where folders cannot be opened)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_stray_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Delete the temporary files of processes that are no longer alive; return what was deleted."""
    removed = []
    for path in Path(folder).glob(".*.tmp"):
        match = _TEMPORARY.match(path.name)
        if match and not process_alive(int(match.group(1))):
            path.unlink(missing_ok=True)
            removed.append(path)
    return removed


def process_alive(pid: int) -> bool:
    """Whether a process of this id runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
