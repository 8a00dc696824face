"""Atomic writes, JSON and CSV files with hashes, file locks and stop signals.

A file is written under a temporary name in its own folder, flushed to disk and renamed, so that readers
see the old file or the new one, never a part of either. The temporary name contains the writer's process
id, which tells files left behind by a killed process from those of a running one.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import re
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from graphsc.core.errors import CannotWriteError, DamagedFileError, GraphscError, NotFoundError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; files there are not locked
    fcntl = None  # type: ignore[assignment]

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPORARY = re.compile(r"^\.(?P<name>.+?)(?:\.\d+)?\.(?P<pid>\d+)\.tmp$")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that appears under `path` only if the block ends without an error.

    Missing folders are created, and temporary files that dead processes left of this file are removed.
    """
    target = Path(path)
    _make_folder(target.parent)
    _check_replaceable(target)
    remove_stray_files(target.parent, target.name)
    temporary = _temporary_path(target)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        with suppress(OSError):  # e.g. the disk has become read-only
            temporary.unlink(missing_ok=True)
        # An OSError of a full disk carries no file name; others could come from the caller's block.
        if isinstance(error, OSError) and (error.errno in _DISK_FULL or error.filename == str(temporary)):
            raise cannot_write(target, error) from error
        raise
    _sync_folder(target.parent)


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Replace the file at `path` by `content`; see `atomic_write`."""
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_if_changed(path: str | os.PathLike[str], content: bytes | str) -> None:
    """`write_atomic`, unless the file has this content already."""
    raw = content.encode() if isinstance(content, str) else content
    try:
        same = Path(path).stat().st_size == len(raw) and Path(path).read_bytes() == raw
    except OSError:
        same = False
    if not same:
        write_atomic(path, raw)


def file_name(text: str) -> str:
    """A text as the name of a file on any system: `motifs:60` is `motifs-60`."""
    return re.sub(r'[<>:"/\\|?*\x00-\x1f]', "-", text).rstrip(". ") or "-"


def check_writable(path: Path) -> None:
    """Check before long work that a file can be written at `path`; raises `CannotWriteError` if not."""
    if path.is_dir():
        raise cannot_write(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
    _make_folder(path.parent)
    _check_replaceable(path)
    temporary = _temporary_path(path)
    try:
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise cannot_write(path, error) from error


def _check_replaceable(path: Path) -> None:
    """Refuse devices and pipes: a rename by a superuser would replace `/dev/null` by a file."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise CannotWriteError(
            "cannot write: this is no regular file", where=str(path), hint="choose another place"
        )


def cannot_write(path: Path, error: OSError) -> CannotWriteError:
    """The error to raise where `path` cannot be written, with the reason and a hint."""
    full = error.errno in _DISK_FULL
    return CannotWriteError(
        f"cannot write: {error.strerror}",
        where=str(path),
        hint="free some space and run the same command again" if full else "choose another place",
    )


def remove_stray_files(folder: str | os.PathLike[str], name: str | None = None) -> list[Path]:
    """Delete the temporary files (of the file `name`, or all) of dead processes; returns their paths."""
    removed = []
    for path in Path(folder).glob(".*.tmp"):
        match = _TEMPORARY.match(path.name)
        if match and name in (None, match["name"]) and not process_alive(int(match["pid"])):
            path.unlink(missing_ok=True)
            removed.append(path)
    return removed


def process_alive(pid: int) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _temporary_path(target: Path) -> Path:
    # With the thread's id, because two threads may write the same file.
    return target.with_name(f".{target.name}.{threading.get_ident()}.{os.getpid()}.tmp")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def _sync_folder(folder: Path) -> None:
    """Make a rename inside `folder` survive a power cut; does nothing where folders cannot be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(
    path: str | os.PathLike[str], content: Mapping[str, object], *, indent: int | None = None
) -> None:
    """Write a JSON file with a hash of its content, atomically; a file with the same content stays."""
    text = json.dumps({**content, "sha256": _json_hash(content)}, indent=indent) + "\n"
    write_if_changed(path, text)


def read_json(path: str | os.PathLike[str], what: str, *, hint: str | None = None) -> dict[str, object]:
    """Read a file written by `write_json`, or by an older version without a hash.

    Args:
        path: The file.
        what: Its kind, for error messages.
        hint: What to do if it is damaged.

    Raises:
        NotFoundError: The file cannot be opened.
        DamagedFileError: It is no JSON, or its content does not match its hash.
    """
    try:
        content: object = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise NotFoundError(f"cannot open {what}: {error.strerror}", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{what} file is damaged", where=str(path), hint=hint) from error
    if not isinstance(content, dict):
        raise DamagedFileError(f"{what} file is damaged", where=str(path), hint=hint)
    expected = content.pop("sha256", None)
    if expected is not None and expected != _json_hash(content):
        raise DamagedFileError(f"{what} file is damaged", where=str(path), hint=hint)
    return content


def json_line(content: Mapping[str, object]) -> str:
    """A line of a JSON lines file, with a hash of its content."""
    return json.dumps({**content, "sha256": _json_hash(content)}) + "\n"


def parse_json_line(line: bytes) -> dict[str, object] | None:
    """The content of a line of `json_line`, or None if it is damaged or not whole."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not line.endswith(b"\n") or not isinstance(content, dict):
        return None
    return content if content.pop("sha256", None) == _json_hash(content) else None


def _json_hash(content: Mapping[str, object]) -> str:
    # As it will be read back: keys become strings, tuples lists.
    plain = json.loads(json.dumps(content))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


CHECK = "check"  # the last column of a table with checks


def write_rows(path: str | os.PathLike[str], names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a CSV file, atomically, whose last column is a check of each row.

    The check is a hash of the names and cells of the row, its number and the number of rows, so that a row
    that is changed, moved or missing is found.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, CHECK])
    for number, cells in enumerate(rows):
        writer.writerow([*cells, _row_hash(names, cells, number, len(rows))])
    write_atomic(path, text.getvalue())


def read_rows(path: str | os.PathLike[str], what: str, *, hint: str | None = None) -> list[dict[str, str]]:
    """Rows, as cells by name, of a file written by `write_rows`, or by an older version without checks.

    Raises:
        NotFoundError: The file cannot be opened.
        DamagedFileError: It has no row, or one does not match its check.
    """

    def damaged(problem: str) -> DamagedFileError:
        return DamagedFileError(f"{what} are damaged: {problem}", where=str(path), hint=hint)

    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file, strict=True) if line]
    except OSError as error:
        raise NotFoundError(f"cannot open {what}: {error.strerror}", where=str(path)) from error
    except (ValueError, csv.Error) as error:
        raise damaged("not a CSV file") from error
    if len(lines) < 2:
        raise damaged("no row is left")
    (*names, last), *table = lines
    if last != CHECK:
        names = [*names, last]
    rows = []
    for number, (*cells, check) in enumerate(table):
        if last != CHECK:
            cells = [*cells, check]
        elif check != _row_hash(names, cells, number, len(table)):
            raise damaged(f"row {number + 1} does not match its check")
        if len(cells) != len(names):
            raise damaged(f"row {number + 1} has {len(cells)} cells, not {len(names)}")
        rows.append(dict(zip(names, cells, strict=True)))
    return rows


def _row_hash(names: Sequence[str], cells: Sequence[str], number: int, total: int) -> str:
    content = json.dumps([list(names), list(cells), number, total])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


class InUseError(GraphscError):
    """Another process holds the lock; `owner` is its id, or "unknown"."""

    def __init__(self, owner: str, where: str | None = None) -> None:
        super().__init__(f"in use by process {owner}", where=where, hint="wait for it, or stop it")
        self.owner = owner

    def __reduce__(self) -> tuple[type[InUseError], tuple[str, str | None]]:
        return InUseError, (self.owner, self.where)  # errors travel between processes


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file at `path`, which is created if missing.

    The operating system releases the lock when the process ends, even if it is killed. A symbolic link is
    refused, because the owner's id would be written into the file that it points to.

    Raises:
        InUseError: another process holds the lock.
        CannotWriteError: the file cannot be created.
    """
    _make_folder(path.parent)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise CannotWriteError(
                "cannot write: the lock file is a symbolic link", where=str(path), hint="remove the link"
            ) from error
        raise cannot_write(path, error) from error
    try:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise InUseError(owner, str(path)) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)  # closing releases the lock


def lock_owner(path: Path) -> str | None:
    """The id of the process that holds the lock at `path`, without taking it; None if nobody does."""
    try:
        lock = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
    finally:
        os.close(lock)
    return None


class StoppedError(GraphscError):
    """The work was stopped by a signal and is saved; the same call resumes it."""

    def __init__(self, number: int, where: str) -> None:
        self.exit_code = 128 + number
        super().__init__(
            f"stopped by {signal.Signals(number).name}", where=where, hint="run the same command to resume"
        )

    def __reduce__(self) -> tuple[type[StoppedError], tuple[int, str | None]]:
        return StoppedError, (self.exit_code - 128, self.where)  # errors travel between processes


class StopRequest:
    """The number of the signal that asked this process to stop, if any."""

    def __init__(self) -> None:
        self.number: int | None = None

    def check(self, where: str) -> None:
        """Raise `StoppedError` if a stop was requested; `where` describes the progress so far."""
        if self.number is not None:
            raise StoppedError(self.number, where)


_active: StopRequest | None = None  # of the outermost block of the main thread


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Record SIGINT and SIGTERM instead of ending the process; a second SIGINT ends it at once.

    A block inside another one has the same request, so that no block misses a signal.
    """
    global _active
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may set handlers
        return
    if _active is not None:
        yield _active
        return

    def record(number: int, _: FrameType | None) -> None:
        request.number = number
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    previous = {number: signal.signal(number, record) for number in (signal.SIGINT, signal.SIGTERM)}
    _active = request
    try:
        yield request
    finally:
        _active = None
        for number, handler in previous.items():
            signal.signal(number, handler)
