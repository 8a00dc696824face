"""Who owns a cell: a lock that dies with its process, or a heartbeat in the database."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.files import InUseError, file_lock
from graphsc.core.registry import require

if TYPE_CHECKING:
    from optuna.storages import BaseStorage, RDBStorage

BEAT = 15.0  # seconds from one sign of life to the next
GRACE = 60.0  # seconds without one after which an owner counts as dead


@dataclass
class Claim:
    """A cell in our hands, until it is let go."""

    taken_over: bool  # another worker had it and is gone
    let_go: Callable[[], None] = field(default=lambda: None)


class Owners(ABC):
    """How workers on one storage agree on who has which cell."""

    @abstractmethod
    def take(self, trial_id: int) -> Claim | None:
        """Make a waiting cell ours, or a running one whose owner is gone; None where neither can be."""


class LockOwners(Owners):
    """On one machine: a lock file a cell, beside the journal. Whoever holds it owns the cell.

    The lock comes before the change of state, so that a running cell with a free lock has a dead owner.
    """

    def __init__(self, storage: BaseStorage, folder: Path) -> None:
        self.storage = storage
        self.folder = folder

    def take(self, trial_id: int) -> Claim | None:
        states = require("optuna.trial").TrialState
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.folder / str(trial_id)))
            except InUseError:
                return None
            state = self.storage.get_trial(trial_id).state  # as it is now that nobody else can change it
            if state.is_finished():
                return None
            if state == states.WAITING:
                self.storage.set_trial_state_values(trial_id, states.RUNNING)
            return Claim(state == states.RUNNING, stack.pop_all().close)
        raise AssertionError  # pragma: no cover - `hold` swallows nothing


class HeartbeatOwners(Owners):
    """On many machines: a time stamp a cell, renewed by its owner; an old one is anybody's to replace.

    The database's clock is the only one asked. Replacing is one conditional update, so that of two workers
    that find the same dead owner one gets the cell; failing the cell and queueing a copy, as Optuna's
    callback does, would lose it if that worker died between the two.
    """

    def __init__(self, storage: RDBStorage, beat: float = BEAT, grace: float = GRACE) -> None:
        self.storage = storage
        self.beat = beat
        self.grace = grace

    def take(self, trial_id: int) -> Claim | None:
        states = require("optuna.trial").TrialState
        state = self.storage.get_trial(trial_id).state
        if state.is_finished():
            return None
        if state == states.WAITING:
            # Before the claim: a worker that dies right after it has left a sign of life to grow old.
            self.storage.record_heartbeat(trial_id)
            if not self._start(trial_id):
                return None
        elif not self._replace(trial_id):
            return None
        stop = threading.Event()
        thread = threading.Thread(target=self._beat_on, args=(trial_id, stop), daemon=True)
        thread.start()

        def let_go() -> None:
            stop.set()
            thread.join()

        return Claim(state == states.RUNNING, let_go)

    def _start(self, trial_id: int) -> bool:
        optuna = require("optuna")
        try:
            return self.storage.set_trial_state_values(trial_id, optuna.trial.TrialState.RUNNING)
        except optuna.exceptions.UpdateFinishedTrialError:
            return False

    def _replace(self, trial_id: int) -> bool:
        """Renew the time stamp if, and only if, it is too old."""
        import sqlalchemy as sql  # which Optuna brings

        table = sql.table("trial_heartbeats", sql.column("trial_id"), sql.column("heartbeat", sql.DateTime))
        with self.storage.engine.begin() as connection:
            now = connection.execute(sql.select(sql.func.now())).scalar_one().replace(tzinfo=None)
            old = now - timedelta(seconds=self.grace)
            found = connection.execute(
                sql.update(table)
                .where(table.c.trial_id == trial_id, table.c.heartbeat < old)
                .values(heartbeat=now)
            )
            return bool(found.rowcount == 1)

    def _beat_on(self, trial_id: int, stop: threading.Event) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        optuna = require("optuna")
        while not stop.wait(self.beat):
            try:
                self.storage.record_heartbeat(trial_id)
            except (optuna.exceptions.OptunaError, SQLAlchemyError):
                continue  # the server may come back before the grace is over
