"""A worker: takes cells of a study until none is left, and may come and go, or die, at any time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from graphsc.core.errors import CannotWriteError, GraphscError, MissingExtraError, NotFoundError
from graphsc.core.files import InUseError, StoppedError, StopRequest, stop_requests
from graphsc.core.run_folder import RunFolderError
from graphsc.experiments.cells import AnyResult, AnyTrial, CellKind, kind_for, kind_of
from graphsc.experiments.run import run_trial
from graphsc.experiments.run_all import Outcome, in_a_line
from graphsc.experiments.search import run_search
from graphsc.experiments.single import one_thread, shared_collection
from graphsc.experiments.storage import StorageError
from graphsc.experiments.store import ResultStore
from graphsc.experiments.study import Held, Study
from graphsc.experiments.transfer_plan import TransferTrial
from graphsc.experiments.transfer_run import TransferStore, run_one, shared_molecules
from graphsc.experiments.transfer_weights import ready_weights
from graphsc.experiments.trial import Trial

POLL = 2.0  # seconds between looks at cells in other hands


class OtherMachineError(GraphscError):
    """The graphs or the code here are not those of the other workers."""


# What is wrong with this machine and not with the cell: another worker may do better.
OURS = (
    NotFoundError, MissingExtraError, OtherMachineError, RunFolderError, StorageError, CannotWriteError,
    OSError, MemoryError,
)  # fmt: skip


@dataclass(frozen=True)
class Worker:
    """What one worker works with."""

    study: Study
    runs: Path
    results: Path
    say: Callable[[str], None] = lambda _: None
    poll: float = POLL

    def work(self, most: int | None = None) -> int:
        """Run cells until all have come to an end, or `most` of them have here; gives how many have here.

        While others run the last cells it waits, in case one of them dies. A signal ends it: the training
        at hand is saved, its cell waits again, and `StoppedError` has the exit code.
        """
        ended = 0
        busy: dict[int, float] = {}  # cells whose run folder is in use, and until when they are left alone
        with stop_requests() as request:
            while most is None or ended < most:
                request.check("no cell was at hand")
                now = time.monotonic()
                held = self.study.take([number for number, until in busy.items() if until > now])
                if held is not None:
                    if self._run(held):
                        ended += 1
                    else:
                        busy[held.cell.number] = time.monotonic() + self.poll
                elif any(cell.open for cell in self.study.cells()):
                    _sleep(self.poll, request)
                else:
                    break
        return ended

    def _run(self, held: Held) -> bool:
        """Bring the cell to an end; False where its run folder is in use, and it waits again."""
        if held.before is not None:
            self.say(f"cell {held.cell.number} was with {held.before}, which is gone; going on with it")
        try:
            with _interruptible():
                end = self._attempt(held)
        except InUseError:
            held.give_back()
            return False
        except StoppedError:
            held.give_back()
            self.say(f"cell {held.cell.number} is given back")
            raise
        except OURS:
            held.give_back()
            raise
        except GraphscError as error:
            text = str(error)
            end = Ending(lambda: held.failed(text), f"{name_of(held)}: failed: {text}")
        except Exception as error:  # a bug in one method must not end the whole table
            text = f"internal error: {type(error).__name__}: {error}"
            end = Ending(lambda: held.failed(text), f"{name_of(held)}: failed: {text}")
        if end.record():
            cells = self.study.cells()
            self.say(f"[{sum(not cell.open for cell in cells)}/{len(cells)}] {end.line}")
        else:
            self.say(f"cell {held.cell.number} was ended by another worker meanwhile")
        return True

    def _attempt(self, held: Held) -> Ending:
        attributes = held.cell.attributes
        kind = kind_of(attributes)
        with one_thread():
            if kind is None:
                return self._search(held)
            if "result" in attributes:  # its last owner died after writing it down
                kept = kind.read_result(attributes["result"], f"cell {held.cell.number}")
                return Ending(lambda: held.done(kept.value), f"{name_of(held)}: was done already")
            trial = trial_of(held, kind)
            found, line = self._transfer(trial) if isinstance(trial, TransferTrial) else self._table(trial)
        return Ending(lambda: held.done(found.value, result=found.to_json()), line)

    def _table(self, trial: Trial) -> tuple[AnyResult, str]:
        collection = shared_collection(trial.data, trial.features)
        self._check_graphs(trial, collection.content_hash)
        result = run_trial(trial, collection=collection, runs=self.runs, store=ResultStore(self.results))
        return result, in_a_line(Outcome(trial, result))

    def _transfer(self, trial: TransferTrial) -> tuple[AnyResult, str]:
        molecules, _ = shared_molecules(trial.data, trial.split)
        self._check_graphs(trial, molecules.collection.content_hash)
        # Of two workers that lack the same weights, the second finds their folder in use and goes elsewhere.
        weights = ready_weights(trial.pretraining, self.runs / "pretrain", self.results)
        result = run_one(trial, TransferStore(self.results), self.runs / "transfer", weights)
        scores = ", ".join(f"{rule} {100 * result.score(rule):.2f}" for rule in result.rules)
        return result, f"{trial.method}, {trial.way}, on {trial.data_name}, seed {trial.seed}: {scores}"

    def _search(self, held: Held) -> Ending:
        started = time.monotonic()
        found = run_search(held, self.runs)
        what = f"trial {held.cell.number}, {found.words}, in {time.monotonic() - started:.0f} s"
        if found.pruned:
            return Ending(held.pruned, f"{what}: pruned")
        return Ending(
            lambda: held.done(found.value, inner=list(found.inner)),
            f"{what}: inner accuracy {100 * found.value:.2f} %",
        )

    def _check_graphs(self, trial: AnyTrial, content: str) -> None:
        """Results of one table must be of the same graphs, on whichever machine they were made."""
        kind = kind_for(trial)
        mine = {name: value for name, value in trial.to_json().items() if name in ("data", "features")}
        for cell in self.study.cells():
            asked, result = cell.attributes.get(kind.name), cell.attributes.get("result")
            if cell.state != "done" or not isinstance(asked, Mapping) or not isinstance(result, Mapping):
                continue
            if mine == {name: asked[name] for name in mine}:
                theirs = result["config"]["data"]["content_hash"]
                if theirs != content:
                    raise OtherMachineError(
                        f"{trial.data} on this machine is not the {trial.data} of the other workers",
                        where=f"cell {cell.number}",
                        hint="copy the data set from there",
                    )
                return


@dataclass(frozen=True)
class Ending:
    """How to record what became of a cell, and the line that says it."""

    record: Callable[[], bool]
    line: str


def trial_of(held: Held, kind: CellKind) -> AnyTrial:
    """The trial of a cell, if it means the same here as where it was queued."""
    stored = held.cell.attributes[kind.name]
    trial = kind.read(stored) if isinstance(stored, Mapping) else None
    if trial is None or trial.key() != held.cell.key:
        raise OtherMachineError(
            f"cell {held.cell.number} does not mean here what it meant where it was queued",
            hint="use the same version of graphsc everywhere",
        )
    return trial


def name_of(held: Held) -> str:
    """The cell in a line's first words."""
    kind = kind_of(held.cell.attributes)
    stored = None if kind is None else held.cell.attributes[kind.name]
    if isinstance(stored, Mapping):
        return f"{stored.get('method')} on {stored.get('data')}, seed {stored.get('seed')}"
    return f"cell {held.cell.number}"


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM end what is inside by `StoppedError`; a training notes them and saves first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise StoppedError(number, "the cell at hand was given back")

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sleep(seconds: float, request: StopRequest) -> None:
    until = time.monotonic() + seconds
    while request.number is None and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))
