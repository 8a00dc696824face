"""Files that are either the old one or the new one, never a part of either.

A file is written under a temporary name in its own folder, flushed to the disk, and renamed. The
temporary name carries the writer's process id, so that what a killed process left behind can be told
from what a living one is writing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from graphsc.core.errors import CannotWriteError, DamagedFileError, GraphscError, NotFoundError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a write has no file name to tell it by
_TEMPORARY = re.compile(r"^\.(?P<name>.+?)(?:\.\d+)?\.(?P<pid>\d+)\.tmp$")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under `path` only when the block ends without an error."""
    target = Path(path)
    make_folder(target.parent)
    remove_stray_files(target.parent, target.name)
    writer = f"{threading.get_ident()}.{os.getpid()}"  # two threads may write one file as well
    temporary = target.with_name(f".{target.name}.{writer}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        _forget(temporary)
        if isinstance(error, OSError) and (error.errno in _FULL or error.filename == str(temporary)):
            raise cannot_write(target, error) from error
        raise
    sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def check_writable(path: Path) -> None:
    """Refuse, before any work, a file whose folder cannot be written to or that is a folder itself."""
    if path.is_dir():
        raise cannot_write(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{threading.get_ident()}.{os.getpid()}.tmp")
    try:
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> CannotWriteError:
    """The one sentence for a disk that is full, read-only or not ours; the old file is still there."""
    full = error.errno in _FULL
    return CannotWriteError(
        f"cannot write: {error.strerror}",
        where=str(path),
        hint="free some space and run the same command again" if full else "choose another place",
    )


def _forget(temporary: Path) -> None:
    with suppress(OSError):  # on a disk that is read-only there is nothing to forget
        temporary.unlink(missing_ok=True)


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


def remove_stray_files(folder: str | os.PathLike[str], name: str | None = None) -> list[Path]:
    """Delete temporary files (of the file `name`) of processes no longer alive; return what was deleted."""
    removed = []
    for path in Path(folder).glob(".*.tmp"):
        match = _TEMPORARY.match(path.name)
        if match and name in (None, match["name"]) and not process_alive(int(match["pid"])):
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


def read_json(path: str | os.PathLike[str], what: str) -> object:
    """What a JSON file holds; `what` is its name in errors."""
    where = str(path)
    try:
        found: object = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise NotFoundError(f"cannot open {what}: {error.strerror}", where=where) from error
    except ValueError as error:
        raise DamagedFileError(f"{what} file is damaged", where=where) from error
    return found


# One owner at a time: a lock on a file that the system frees when the process ends, however it ends.


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


# Being asked to stop: finish what is at hand, save, then go.


class StoppedError(GraphscError):
    """Work was asked to stop and has saved what it did; the same call goes on from there."""

    def __init__(self, number: int, where: str) -> None:
        self.exit_code = 128 + number
        super().__init__(
            f"stopped by {signal.Signals(number).name}", where=where, hint="run the same command to go on"
        )


class StopRequest:
    """Which signal has asked us to stop, if any."""

    def __init__(self) -> None:
        self.number: int | None = None

    def check(self, where: str) -> None:
        """Stop here if that was asked for; `where` says how far the work has come."""
        if self.number is not None:
            raise StoppedError(self.number, where)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of dying of them; a second SIGINT ends at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may set handlers
        return

    def note(number: int, _: FrameType | None) -> None:
        request.number = number
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# Being asked to stop, under the name that training knows it by.


__all__ = ["StopRequest", "StoppedError", "stop_requests"]
