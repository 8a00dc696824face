"""Where studies are kept: a journal file on one machine, a database for many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError, GraphscError, NotFoundError
from graphsc.core.registry import require
from graphsc.experiments.journal import open_journal
from graphsc.experiments.owners import HeartbeatOwners, LockOwners, Owners

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage

KINDS = "FILE.journal, journal:///PATH, sqlite:///PATH, postgresql://USER@HOST/DATABASE"
PATIENCE = 10  # seconds for a server to answer


class StorageError(GraphscError):
    """The storage cannot be reached, or does not do what it is asked."""


@dataclass(frozen=True)
class Storage:
    """An opened storage: its name without a password, Optuna's side of it, and who owns what on it."""

    name: str
    optuna: BaseStorage
    owners: Owners

    @property
    def studies(self) -> list[str]:
        """The names of the studies there are."""
        with in_words(self.name):
            return sorted(study.study_name for study in self.optuna.get_all_studies())


def open_storage(url: str, *, create: bool = False) -> Storage:
    """Open a storage by its address; with `create`, a file that is missing is made."""
    optuna = require("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    scheme, sign, rest = url.partition("://")
    if not sign and url.endswith(".journal"):
        scheme, rest = "journal", url
    if scheme == "journal" and rest:
        path = Path(rest)
        _check_file(path, create)
        journal = open_journal(path)
        return Storage(str(path), journal, LockOwners(journal, path.with_name(path.name + ".cells")))
    base = scheme.partition("+")[0]
    if base not in ("sqlite", "postgresql") or not rest:
        # Not the whole of it: it may hold a password.
        raise ConfigError(f"unknown kind of storage {scheme!r}", hint=f"use {KINDS}")
    database, name = _open_database(url, base, create)
    return Storage(name, database, HeartbeatOwners(database))


def _check_file(path: Path, create: bool) -> None:
    if not create and not path.exists():
        raise NotFoundError(
            "there is no such storage", where=str(path),
            hint="make a study with graphsc results run --storage or graphsc sweep --storage",
        )  # fmt: skip


def _open_database(url: str, base: str, create: bool) -> tuple[RDBStorage, str]:
    import sqlalchemy as sql  # which Optuna brings

    try:
        address = sql.engine.make_url(url)
    except (sql.exc.ArgumentError, ValueError) as error:
        raise ConfigError("this is not the address of a database", hint=f"use {KINDS}") from error
    name = address.render_as_string(hide_password=True)
    if base == "sqlite":
        if not address.database or address.database == ":memory:":
            raise ConfigError("a database in memory has no other workers", where=name, hint=f"use {KINDS}")
        _check_file(Path(address.database), create)
        options: dict[str, object] = {"connect_args": {"timeout": 60}}
    else:
        require("psycopg")
        address = address.set(drivername="postgresql+psycopg")
        # One time zone for all machines: a heartbeat is a time without a zone.
        connect = {"connect_timeout": PATIENCE, "options": "-c timezone=utc"}
        options = {"connect_args": connect, "pool_pre_ping": True}
    make = require("optuna.storages").RDBStorage
    full = address.render_as_string(hide_password=False)
    with in_words(name):
        try:
            return make(full, engine_kwargs=options), name
        except (sql.exc.ProgrammingError, sql.exc.IntegrityError, sql.exc.OperationalError) as error:
            if "already exists" not in str(error) and "duplicate key" not in str(error):
                raise
            # Two workers have made the tables of a new database at once.
            return make(full, engine_kwargs=options), name


@contextmanager
def in_words(name: str) -> Iterator[None]:
    """Turn what a database complains of into one sentence."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (require("optuna").exceptions.StorageInternalError, SQLAlchemyError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        problem = (
            str(cause).strip().splitlines()[0].rstrip(".") if str(cause).strip() else type(cause).__name__
        )
        raise StorageError(
            f"the storage does not answer: {problem}",
            where=name,
            hint="check that the server runs and that its address is right",
        ) from error
    except RuntimeError as error:  # tables of another version of Optuna
        raise StorageError(f"the storage cannot be used: {error}", where=name) from error
