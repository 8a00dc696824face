"""One owner at a time: a lock on a file that the system frees when the process ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on Windows; a folder there is its user's to guard
    fcntl = None  # type: ignore[assignment]


class InUseError(Exception):
    """Another process holds the lock; `owner` is its id, or "unknown"."""

    def __init__(self, owner: str) -> None:
        super().__init__(f"in use by process {owner}")
        self.owner = owner


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, made where it is missing; OSError where it cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise InUseError(owner) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)  # closing releases the lock
