"""A study: the cells of a table or a search on one storage, each run once by whichever worker takes it.

A cell is an Optuna trial whose user attributes say what to run (`cell`, its key; `trial` or `transfer`, as
JSON) and, when it is done, what came out (`result`, as JSON): a table can be built from the storage alone, on
any machine.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from graphsc.core.errors import NotFoundError
from graphsc.core.registry import nearest, require
from graphsc.experiments.cells import AnyResult, AnyTrial, kind_for, kind_of
from graphsc.experiments.owners import BEAT, GRACE, Claim, HeartbeatOwners
from graphsc.experiments.storage import Storage, in_words

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

State = Literal["waiting", "running", "done", "pruned", "failed"]
_STATES: dict[str, State] = {
    "WAITING": "waiting", "RUNNING": "running", "COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed",
}  # fmt: skip
_TIMES = "times"  # attribute of the study: how often its workers give signs of life


@dataclass(frozen=True)
class Cell:
    """One thing to run, as the storage has it."""

    number: int
    key: str
    state: State
    attributes: Mapping[str, object]
    value: float | None = None

    @property
    def open(self) -> bool:
        """Whether it still has to come to an end."""
        return self.state in ("waiting", "running")

    @property
    def reason(self) -> str:
        """Why it failed."""
        return str(self.attributes.get("reason", "no reason was given"))


class Study:
    """A study by name. All workers that open it see the same cells."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        *,
        create: bool = False,
        beat: float = BEAT,
        grace: float = GRACE,
    ) -> None:
        library = require("optuna")
        self.storage = storage
        self.name = name
        with in_words(storage.name):
            if create:
                self.optuna: optuna.Study = library.create_study(
                    study_name=name, storage=storage.optuna, direction="maximize", load_if_exists=True
                )
            elif name in storage.studies:
                self.optuna = library.load_study(study_name=name, storage=storage.optuna)
            else:
                raise NotFoundError(
                    f"there is no study {name!r}", where=storage.name, hint=nearest(name, storage.studies)
                )
            times = self.optuna.user_attrs.get(_TIMES)
            if times is None:
                # Kept with the study, because all workers must mean the same by "dead".
                times = [beat, grace]
                self.optuna.set_user_attr(_TIMES, times)
            self._id = storage.optuna.get_study_id_from_name(name)
        self.owners = storage.owners
        if isinstance(self.owners, HeartbeatOwners):
            self.owners = HeartbeatOwners(self.owners.storage, *times)
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"

    def cells(self) -> list[Cell]:
        """Every cell once, in the order of numbers.

        Two machines may have queued the same key at the same time: the first one that has not failed is the
        cell, so that every worker picks the same.
        """
        with in_words(self.storage.name):
            trials = self.optuna.get_trials(deepcopy=False)
        found: dict[str, Cell] = {}
        for trial in trials:
            key = trial.user_attrs.get("cell")
            if key is not None and (key not in found or found[key].state == "failed"):
                found[key] = _cell(trial, key)
        return sorted(found.values(), key=lambda cell: cell.number)

    def enqueue(
        self, trials: Iterable[AnyTrial], results: Path | None = None, *, retry_failed: bool = False
    ) -> int:
        """Queue the cells that are not here yet; those that `results` has a result of are done at once."""
        here = {cell.key for cell in self.cells() if not (retry_failed and cell.state == "failed")}
        added = 0
        for trial in trials:
            key = trial.key()
            if key in here:
                continue
            here.add(key)
            added += 1
            kind = kind_for(trial)
            attributes: dict[str, object] = {"cell": key, kind.name: trial.to_json()}
            kept = None if results is None else kind.store(results).get(trial)
            if kept is None:
                self.queue({}, attributes)
            else:
                self._add_done(kept.value, {**attributes, "result": kept.to_json()})
        return added

    def queue(self, fixed: Mapping[str, object], attributes: Mapping[str, object]) -> None:
        """Add one waiting cell, whose parameters `fixed` are not to be drawn."""
        with in_words(self.storage.name):
            self.optuna.enqueue_trial(dict(fixed), user_attrs=dict(attributes))

    def _add_done(self, value: float, attributes: dict[str, object]) -> None:
        made = require("optuna").trial.create_trial(value=value, user_attrs=attributes)
        with in_words(self.storage.name):
            self.optuna.add_trial(made)

    def take(self, avoid: Collection[int] = ()) -> Held | None:
        """A cell for this worker: the first one that waits, or else one whose owner is gone."""
        cells = [cell for cell in self.cells() if cell.open and cell.number not in avoid]
        cells.sort(key=lambda cell: (cell.state == "running", cell.number))
        for cell in cells:
            with in_words(self.storage.name):
                trial_id = self.storage.optuna.get_trial_id_from_study_id_trial_number(self._id, cell.number)
                claim = self.owners.take(trial_id)
                if claim is None:
                    continue
                trial = self.storage.optuna.get_trial(trial_id)
                before = trial.user_attrs.get("owner")
                self.storage.optuna.set_trial_user_attr(trial_id, "owner", self.worker)
            return Held(self, _cell(trial, cell.key), trial_id, claim, str(before))
        return None

    def results(self) -> dict[str, AnyResult]:
        """Every result there is, by the key of its cell."""
        return {
            cell.key: kind.read_result(cell.attributes["result"], f"{self.storage.name}, cell {cell.number}")
            for cell in self.cells()
            if cell.state == "done" and "result" in cell.attributes and (kind := kind_of(cell.attributes))
        }

    def fetch(self, folder: Path) -> int:
        """Write the results that the folder has not, wherever they were made; gives how many."""
        found = 0
        results = self.results()
        for cell in self.cells():
            kind = kind_of(cell.attributes)
            stored = None if kind is None else cell.attributes[kind.name]
            if kind is not None and cell.key in results and isinstance(stored, Mapping):
                trial, store = kind.read(stored), kind.store(folder)
                if trial.key() == cell.key and not store.path(trial).exists():
                    store.put(trial, results[cell.key])
                    found += 1
        return found


class Held:
    """A cell in this worker's hands; it ends in exactly one of the four ways below."""

    def __init__(self, study: Study, cell: Cell, trial_id: int, claim: Claim, before: str) -> None:
        self.study = study
        self.cell = cell
        self.trial_id = trial_id
        self.before = before if claim.taken_over else None  # whose it was
        self._claim = claim

    def done(self, value: float, **attributes: object) -> bool:
        """Record the outcome, and then that there is one; False where another worker has done so before."""
        return self._end("COMPLETE", value, attributes)

    def pruned(self) -> bool:
        """It was not worth finishing."""
        return self._end("PRUNED", None, {})

    def failed(self, reason: str) -> bool:
        """It cannot be finished; the others go on."""
        return self._end("FAIL", None, {"reason": reason})

    def give_back(self) -> None:
        """Let it wait again for any worker."""
        states = require("optuna.trial").TrialState
        try:
            with in_words(self.study.storage.name):
                if self._ours():
                    self.study.storage.optuna.set_trial_state_values(self.trial_id, states.WAITING)
        finally:
            self._claim.let_go()

    def _ours(self) -> bool:
        trial = self.study.storage.optuna.get_trial(self.trial_id)
        return not trial.state.is_finished() and trial.user_attrs.get("owner") == self.study.worker

    def _end(self, state: str, value: float | None, attributes: Mapping[str, object]) -> bool:
        library = require("optuna")
        storage = self.study.storage
        try:
            with in_words(storage.name):
                if not self._ours():
                    return False
                for name, attribute in attributes.items():
                    storage.optuna.set_trial_user_attr(self.trial_id, name, attribute)
                self.study.optuna.tell(self.cell.number, value, state=library.trial.TrialState[state])
        except library.exceptions.UpdateFinishedTrialError:
            return False
        finally:
            self._claim.let_go()
        return True


def _cell(trial: FrozenTrial, key: str) -> Cell:
    value = trial.value if trial.state.name == "COMPLETE" else None
    return Cell(trial.number, key, _STATES[trial.state.name], trial.user_attrs, value)
