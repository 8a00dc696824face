"""A study in one file: a line an operation, safe from writers that die in the middle of one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError
from graphsc.core.registry import require

try:
    import fcntl
except ImportError:  # pragma: no cover - no such locks on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from optuna.storages import JournalStorage


class WriterLock:
    """Held while a line is written, and freed by the system when the writer dies.

    Optuna's own locks are files that a killed writer leaves behind, and a line that it left half written
    would spoil the next one for good; whoever comes next cuts it off.
    """

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self._handle: int | None = None

    def acquire(self) -> bool:
        self.release()  # what a signal has kept from being released
        handle = os.open(self.journal.with_name(self.journal.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            cut_torn_line(self.journal)
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle
        return True

    def release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)  # closing releases the lock
            self._handle = None


def cut_torn_line(journal: Path) -> None:
    """Remove what stands behind the last end of a line; only its writer's death leaves it there."""
    with open(journal, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        size = end
        while size:
            start = max(0, size - 65536)
            file.seek(start)
            last = file.read(size - start).rfind(b"\n")
            if last >= 0:
                size = start + last + 1
                break
            size = start
        if size != end:
            file.truncate(size)


def open_journal(path: Path) -> JournalStorage:
    """The studies of a journal file, which is made where it is missing."""
    journal = require("optuna.storages.journal")
    storages = require("optuna.storages")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        backend = journal.JournalFileBackend(str(path), lock_obj=WriterLock(path))
        opened: JournalStorage = storages.JournalStorage(backend)
    except OSError as error:
        raise ConfigError(f"cannot open the journal: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError("this file is not a journal of studies", where=str(path)) from error
    return opened
