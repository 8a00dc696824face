"""Sweeps: a search over the settings of a method with Optuna.

What decides is the accuracy on inner folds, which hold training graphs only, on seeds kept for development.
No test fold is predicted. One process asks Optuna for settings and tells it the outcomes; evaluations run in
parallel. The study is kept in any storage that Optuna takes, so that the same command resumes it.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shlex
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.config import write_config
from graphsc.core.errors import (
    CannotWriteError,
    ConfigError,
    DamagedFileError,
    DataError,
    GraphscError,
    GraphscWarning,
)
from graphsc.core.files import InUseError, StoppedError, file_lock, write_atomic
from graphsc.core.parallel import run_parallel, use_cluster
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.core.registry import nearest, require
from graphsc.core.run_folder import RunFolder, differences
from graphsc.core.secrets import hide_secrets, shown_address, tells_secrets
from graphsc.core.tables import csv_text
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.cross_validation import inner_accuracies
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import split_settings
from graphsc.experiments.probe import folds_of, kept_embeddings, labels_of, train_trial
from graphsc.experiments.runner import one_thread, shared_collection
from graphsc.experiments.search_space import Space, make_space
from graphsc.experiments.trial import ProbeTrial, check_graphs, graphs_hash
from graphsc.report.charts import importance_bars
from graphsc.report.figure import save_figure
from graphsc.report.parallel_coordinates import parallel_coordinates
from graphsc.training.callbacks import Callback, Reporter
from graphsc.training.distributed import driver_device
from graphsc.training.train import stored_embeddings
from graphsc.training.trainer import Trainer, TrainSettings

if TYPE_CHECKING:
    import optuna
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.storages import BaseStorage
    from optuna.storages.journal import JournalFileSymlinkLock
    from optuna.trial import FrozenTrial, TrialState
    from optuna.trial import Trial as Drawn

SamplerName = Literal["tpe", "random", "grid"]
PrunerName = Literal["none", "median", "hyperband"]
DEVELOPMENT = 1000  # the first of the seeds that no table reports
TRIALS = 20
GRID_CAP = 1000  # points of a grid that are tried without being asked for by number
# Attributes of a study and its trials.
_READ = ("reader", "options")
_SWEEP, _SETTINGS, _REASON, _CHECK, _FINISHED = "sweep", "settings", "reason", "check", "finished"


class StorageError(GraphscError):
    """The storage of a study cannot be reached or read."""


@dataclass(frozen=True)
class Sweep:
    """A search: which settings of a method are tried on which graphs, and how they are drawn.

    Args:
        data: A source that `open_collection` takes.
        method: A method by name.
        space: Settings that vary, with their values or ranges.
        settings: Settings that every trial has.
        training: Settings of the training loop that every trial has.
        seeds: Trainings per trial; the mean of their inner accuracies decides.
        first_seed: The first seed; by default none that a table reports.
        reader: The reader of `data`; guessed by default.
        options: Options of the reader.
    """

    data: str
    method: str
    space: dict[str, object]
    features: str = "auto"
    preset: str = "default"
    settings: dict[str, object] = field(default_factory=dict)
    training: dict[str, object] = field(default_factory=dict)
    folds: int = 10
    seeds: int = 1
    first_seed: int = DEVELOPMENT
    sampler: SamplerName = "tpe"
    pruner: PrunerName = "none"
    reader: str | None = None
    options: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        for name, value, valid in (
            ("sampler", self.sampler, get_args(SamplerName)),
            ("pruner", self.pruner, get_args(PrunerName)),
        ):
            if value not in valid:
                raise ConfigError(f"unknown {name} {value!r}", hint=nearest(value, valid))

    @property
    def dimensions(self) -> Space:
        """The search space."""
        return make_space(self.space)

    def trials(self, values: Mapping[str, object]) -> list[ProbeTrial]:
        """One trial per seed, with these settings."""
        settings, training = split_settings(values)
        return [
            ProbeTrial(
                data=self.data,
                method=self.method,
                seed=seed,
                features=self.features,
                preset=self.preset,
                settings={**self.settings, **settings},
                training={**self.training, **training},
                protocol=Protocol(folds=self.folds),
                reader=self.reader,
                options=self.options,
            )
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]

    @property
    def data_hash(self) -> str:
        """The content hash of the graphs."""
        return graphs_hash(self.data, reader=self.reader, options=self.options)

    def identity(self) -> dict[str, object]:
        """Everything that decides the outcome: all fields, the graphs and the version of this package."""
        # The hash of the graphs stands for how they are read.
        fields = {key: value for key, value in dataclasses.asdict(self).items() if key not in _READ}
        return {**fields, "graphs": self.data_hash[:12], "version": __version__}

    def check(self) -> None:
        """Refuse unknown settings, values of a wrong type and graphs without classes before anything runs."""
        trial = self.trials({})[0]
        identity = trial.identity()
        known = identity["settings"]
        assert isinstance(known, Mapping)  # noqa: S101 - narrows the type
        of_loop = [f"training.{item.name}" for item in dataclasses.fields(TrainSettings)]
        valid = [*known, *(name for name in of_loop if name != "training.seed")]
        for one in self.dimensions.dimensions:
            for name in one.names:
                if name not in valid:
                    raise ConfigError(
                        f"space: {self.method} has no setting {name!r}", hint=nearest(name, valid)
                    )
            for value in one.extremes():
                self.trials(one.settings(value))[0].identity()
        folds_of(trial, shared_collection(trial))

    def make_sampler(self, number: int) -> BaseSampler:
        """The sampler of one trial, seeded by its number."""
        samplers = require("optuna.samplers")
        seed = derive_seed(self.first_seed, "sampler", number) % 2**32
        if self.sampler != "tpe":  # a grid's points are given, not drawn
            return samplers.RandomSampler(seed=seed)  # type: ignore[no-any-return]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", require("optuna.exceptions").ExperimentalWarning)
            # Running trials count as poor ones, so that parallel trials do not all try the same place.
            return samplers.TPESampler(seed=seed, constant_liar=True)  # type: ignore[no-any-return]

    def make_pruner(self) -> BasePruner:
        """The pruner, which ends poor trials early."""
        pruners = require("optuna.pruners")
        if self.pruner == "median":
            return pruners.MedianPruner(n_startup_trials=5)  # type: ignore[no-any-return]
        if self.pruner == "hyperband":
            epochs = self.trials({})[0].loop().epochs
            return pruners.HyperbandPruner(max_resource=max(2, epochs))  # type: ignore[no-any-return]
        return pruners.NopPruner()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class SweepTrial:
    """A trial of a sweep: its settings, and its inner accuracy where it has finished."""

    number: int
    state: Literal["running", "done", "pruned", "failed"]
    settings: Mapping[str, object]
    value: float | None = None
    reason: str = ""  # why it failed


class SweepStudy:
    """The study of a sweep: opened or made, and run until it has as many trials as asked."""

    def __init__(self, sweep: Sweep, storage: str, name: str) -> None:
        sweep.check()
        self.sweep, self.storage, self.name = sweep, storage, name
        self.data_hash = sweep.data_hash  # graphs that change later are refused
        self.optuna = open_study(storage, name)
        asked = json.loads(json.dumps(sweep.identity()))
        with reading_study(storage):
            stored = self.optuna.user_attrs.get(_SWEEP)
            if stored is None:
                if self.optuna.get_trials(deepcopy=False):
                    raise ConfigError(f"study {name!r} is not a sweep", hint="use another --study")
                for other in require("optuna").get_all_study_summaries(self.optuna._storage):
                    if other.user_attrs.get(_SWEEP) == asked:  # the name may have been damaged
                        warnings.warn(
                            f"the storage holds the same sweep as study {other.study_name!r}; "
                            f"study {name!r} starts anew", GraphscWarning, stacklevel=2,
                        )  # fmt: skip
                self.optuna.set_user_attr(_SWEEP, asked)
            elif differing := differences(stored, asked):
                raise ConfigError(
                    f"study {name!r} is another sweep: {'; '.join(differing)}",
                    hint="use the same settings, graphs and version to resume it, or another --study",
                )
        self.trials()  # checked before any is used

    def trials(self) -> list[SweepTrial]:
        """All trials so far, in the order of their numbers.

        Raises:
            DamagedFileError: A finished trial does not match its check, or is missing.
        """
        with reading_study(self.storage):
            trials = self.optuna.get_trials(deepcopy=False)
            for trial in trials:
                expected = _check_of(trial, trial.state, trial.value)
                if trial.state.is_finished() and trial.user_attrs.get(_CHECK) != expected:
                    raise DamagedFileError(
                        f"trial {trial.number} of study {self.name!r} does not match its check",
                        where=shown_address(self.storage), hint="restore it, or use another --study",
                    )  # fmt: skip
            counted = self.optuna.user_attrs.get(_FINISHED, 0)
            if sum(trial.state.is_finished() for trial in trials) < counted:
                raise DamagedFileError(
                    f"study {self.name!r} had {counted} finished trials and has fewer",
                    where=shown_address(self.storage), hint="restore it, or use another --study",
                )  # fmt: skip
            return [_sweep_trial(trial) for trial in trials]

    def best(self) -> SweepTrial | None:
        """The trial with the best inner accuracy; the first of equals."""
        done = [trial for trial in self.trials() if trial.state == "done" and trial.value is not None]
        return max(done, key=lambda trial: (trial.value, -trial.number), default=None)

    def run(
        self,
        trials: int | None = None,
        *,
        runs: str | Path,
        jobs: int | None = 1,
        lock: Path,
        reporter: Reporter | None = None,
        cluster: str | None = None,
        device: str = "auto",
    ) -> None:
        """Run trials until the study has as many as asked; trials that a kill left unfinished are resumed.

        Args:
            trials: How many in all; by default 20, or the whole grid.
            runs: Parent folder of training runs.
            jobs: Trials at a time. With one, the same study always draws the same settings. A cluster uses
                all its workers.
            lock: A lock file: one process at a time runs a study.
            reporter: Receives one line per trial.
            cluster: The scheduler of a Dask cluster. With a pruner, its workers open the storage too.
            device: `auto`, `cpu`, `cuda` or `mps`. Local processes share the GPUs there are.
        """
        reporter = reporter or Reporter()
        driver_device(device, jobs, cluster)
        with file_lock(lock), storage_errors(self.storage):
            points = self._untried(_points(self.sweep, trials))
            there = self.optuna.get_trials(deepcopy=False)
            wanted = len(there) + len(points) if self.sweep.sampler == "grid" else trials or TRIALS
            asked: dict[int, Drawn] = {}
            pieces = self._pieces(asked, points, wanted, Path(runs), device)
            ended = sum(trial.state.is_finished() for trial in there)
            with (
                use_cluster(cluster),
                reporter.counting(self.name, "trials") as progress,
                run_parallel(
                    _evaluate,
                    pieces,
                    jobs=None if cluster else jobs,
                    where="finished trials are in the study",
                ) as results,
            ):
                progress(ended, wanted)
                for number, outcome in results:
                    if isinstance(outcome, Stop):
                        raise StoppedError(outcome.signal, f"{ended} of {wanted} trials have ended")
                    ended += 1
                    line = self._tell(asked.pop(number), outcome)
                    reporter.log(f"[{ended}/{wanted}] trial {number}, {line}")
                    progress(ended, wanted)

    def _untried(self, points: list[dict[str, object]]) -> list[dict[str, object]]:
        """Points of a grid that no trial has."""
        tried = [
            trial.system_attrs.get("fixed_params", trial.params)
            for trial in self.optuna.get_trials(deepcopy=False)
        ]
        return [point for point in points if point not in tried]

    def _pieces(
        self, asked: dict[int, Drawn], points: list[dict[str, object]], wanted: int, runs: Path, device: str
    ) -> Iterator[Piece]:
        """Trials to evaluate, drawn one by one: first those that a kill has left unfinished."""
        states = require("optuna.trial").TrialState
        make = require("optuna").trial.Trial
        for trial in self.optuna.get_trials(deepcopy=False, states=(states.RUNNING,)):
            yield self._piece(make(self.optuna, trial._trial_id), asked, runs, device)
        for _ in self.optuna.get_trials(deepcopy=False, states=(states.WAITING,)):
            yield self._piece(self.optuna.ask(), asked, runs, device)  # queued points come first
        while (number := len(self.optuna.get_trials(deepcopy=False))) < wanted:
            if points:
                self.optuna.enqueue_trial(points.pop(0))
            self.optuna.sampler = self.sweep.make_sampler(number)
            yield self._piece(self.optuna.ask(), asked, runs, device)

    def _piece(self, drawn: Drawn, asked: dict[int, Drawn], runs: Path, device: str = "auto") -> Piece:
        settings = self.sweep.dimensions.draw(drawn)
        drawn.set_user_attr(_SETTINGS, settings)  # also of trials that fail
        asked[drawn.number] = drawn
        pruning = None if self.sweep.pruner == "none" else Pruning(self.sweep, self.storage, self.name, drawn)
        trials = self.sweep.trials(settings)
        return Piece(drawn.number, trials, self.data_hash, runs.absolute(), pruning, device)

    def _tell(self, drawn: Drawn, outcome: list[float] | str | None) -> str:
        states = require("optuna.trial").TrialState
        settings = drawn.user_attrs.get(_SETTINGS, {})
        shown = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in settings.items()}
        words = ", ".join(f"{name}={value}" for name, value in shown.items())
        if outcome is None:
            self._finish(drawn, states.PRUNED)
            return f"{words}: pruned"
        if isinstance(outcome, str):
            drawn.set_user_attr(_REASON, outcome)
            self._finish(drawn, states.FAIL)
            return f"{words}: failed: {outcome}"
        value = float(np.mean(outcome))
        self._finish(drawn, states.COMPLETE, value)
        return f"{words}: inner accuracy {100 * value:.2f} %"

    def _finish(self, drawn: Drawn, state: TrialState, value: float | None = None) -> None:
        """Tell Optuna, after a check of what the trial was and gave."""
        frozen = self.optuna._storage.get_trial(drawn._trial_id)
        if state.name == "PRUNED" and frozen.last_step is not None:
            value = frozen.intermediate_values[frozen.last_step]  # what Optuna makes the value
        drawn.set_user_attr(_CHECK, _check_of(frozen, state, value))
        self.optuna.tell(drawn, value if state.name == "COMPLETE" else None, state=state)
        finished = sum(trial.state.is_finished() for trial in self.optuna.get_trials(deepcopy=False))
        self.optuna.set_user_attr(_FINISHED, finished)


class Pruning:
    """Reports inner accuracies during training and says when to stop; opens the study where it runs."""

    def __init__(self, sweep: Sweep, storage: str, name: str, drawn: Drawn) -> None:
        self.sweep, self.storage, self.name = sweep, storage, name
        self.trial_id = drawn._trial_id

    def open(self) -> Drawn:
        """The trial in the study, with the sweep's pruner."""
        study = open_study(self.storage, self.name)
        study.pruner = self.sweep.make_pruner()
        trial: Drawn = require("optuna").trial.Trial(study, self.trial_id)
        return trial


class PrunedError(Exception):
    """The trial is not worth finishing."""


@dataclass(frozen=True)
class Piece:
    """Settings to evaluate: one trial per seed."""

    number: int
    trials: list[ProbeTrial]
    data_hash: str
    runs: Path
    pruning: Pruning | None
    device: str = "auto"


@dataclass(frozen=True)
class Stop:
    """A worker was asked to stop."""

    signal: int


Outcome = list[float] | str | Stop | None  # inner accuracies, a failure, a stop, or pruned


def _evaluate(piece: Piece) -> tuple[int, Outcome]:
    """Inner accuracies of the settings, one per seed."""
    accuracies = []
    for trial in piece.trials:
        check_graphs(trial.data, trial.data_hash, piece.data_hash)
    try:
        drawn = None if piece.pruning is None else piece.pruning.open()
        for trial in piece.trials:
            trial.identity()
            accuracies.append(run_inner(trial, piece.runs, drawn, piece.device))
            drawn = None  # the first seed alone decides whether to prune
    except PrunedError:
        return piece.number, None
    except StoppedError as stopped:
        return piece.number, Stop(stopped.exit_code - 128)
    except (CannotWriteError, InUseError):
        raise  # a full disk fails every trial, not this one
    except GraphscError as error:
        return piece.number, str(error)
    return piece.number, accuracies


def run_inner(trial: ProbeTrial, runs: Path, drawn: Drawn | None = None, device: str = "auto") -> float:
    """Train a trial and return its accuracy on inner folds; no test fold is predicted, shown or stored.

    With `drawn`, the inner accuracies of epochs whose embeddings are kept are reported to the pruner.
    """
    with one_thread():
        collection = shared_collection(trial)
        score = InnerScore.of(trial, collection)
        folder = runs / trial.run_name()
        callbacks = [] if drawn is None else [ReportInnerScore(RunFolder(folder), score, drawn)]
        with file_lock(folder / ".trial"):
            run = train_trial(trial, collection, folder, callbacks=callbacks, device=device)
            embeddings = kept_embeddings(run, collection)
            return score(embeddings[max(embeddings)], gram=run.model.gram)


@dataclass(frozen=True)
class InnerScore:
    """The mean over outer folds of the best accuracy on inner folds."""

    trial: ProbeTrial
    codes: NDArray[np.int64]
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, trial: ProbeTrial, collection: GraphCollection) -> InnerScore:
        return cls(trial, labels_of(collection)[0], folds_of(trial, collection))

    def __call__(self, embeddings: NDArray[np.float32], *, gram: bool = False) -> float:
        accuracies = inner_accuracies(
            embeddings, self.codes, self.trial.protocol,
            seed=self.trial.folds_from, fold=self.fold, gram=gram,
        )  # fmt: skip
        return float(accuracies.max(axis=1).mean())


class ReportInnerScore(Callback):
    """Reports the inner accuracy of kept epochs during training, and stops what the pruner gives up."""

    def __init__(self, folder: RunFolder, score: InnerScore, drawn: Drawn) -> None:
        self.folder = folder
        self.score = score
        self.drawn = drawn

    def on_epoch_end(self, trainer: Trainer) -> None:
        epochs = trainer.epoch
        if epochs == trainer.epochs or not self.folder.embedding(epochs).exists():
            return
        self.drawn.report(self.score(stored_embeddings(self.folder, epochs)), epochs)
        if self.drawn.should_prune():
            raise PrunedError


def _sweep_trial(trial: FrozenTrial) -> SweepTrial:
    states: dict[str, Literal["running", "done", "pruned", "failed"]] = {
        "COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed",
    }  # fmt: skip
    state = states.get(trial.state.name, "running")
    value = trial.value if state == "done" else None
    reason = str(trial.user_attrs.get(_REASON, "no reason was given")) if state == "failed" else ""
    return SweepTrial(trial.number, state, trial.user_attrs.get(_SETTINGS, {}), value, reason)


def _check_of(trial: FrozenTrial, state: TrialState, value: float | None) -> str:
    """A hash of a trial's number, settings, state and value."""
    attributes = {key: trial.user_attrs.get(key) for key in (_SETTINGS, _REASON)}
    content = [trial.number, trial.params, attributes, state.name, value]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def open_study(storage: str, name: str) -> optuna.Study:
    """A study by name, made where it is missing. Optuna takes any of its storage URLs, or `FILE.journal`."""
    library = require("optuna")
    library.logging.set_verbosity(library.logging.ERROR)
    with reading_study(storage):
        try:
            study: optuna.Study = library.create_study(
                study_name=name, storage=_opened(storage), direction="maximize", load_if_exists=True
            )
        except (TypeError, ValueError) as error:  # e.g. a parameter that the driver does not know
            raise _unusable(storage, error) from _cause(error, storage)
    return study


def _remove_partial_line(path: Path, lock: JournalFileSymlinkLock) -> None:
    """Remove what a full disk or a kill has left of a last line; the next line would be appended to it."""
    if not path.exists():
        return
    lock.acquire()  # so that no process is writing now
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
    finally:
        lock.release()


def _opened(storage: str) -> str | BaseStorage:
    """A journal, or the URL after a check; the folder of a new file is made."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    path = storage.removeprefix("journal://")
    if path.endswith(".journal") and "://" not in path:
        journal = require("optuna.storages.journal")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        _remove_partial_line(Path(path), journal.JournalFileSymlinkLock(path))
        backend = journal.JournalFileBackend(path)
        return require("optuna.storages").JournalStorage(backend)  # type: ignore[no-any-return]
    hint = "use FILE.journal, sqlite:///FILE or another URL of Optuna"
    if "://" not in storage:
        raise ConfigError(f"{shown_address(storage)!r} is no storage", hint=hint)
    try:
        url = make_url(storage)
    except (ArgumentError, ValueError):  # their messages may hold the password
        raise ConfigError("not a valid URL of a storage", where=shown_address(storage), hint=hint) from None
    if url.get_backend_name() == "sqlite" and url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    return storage


@contextmanager
def storage_errors(storage: str) -> Iterator[None]:
    """Turn errors of a storage into one sentence, without the password of its URL."""
    from sqlalchemy.exc import SQLAlchemyError

    library = require("optuna")
    try:
        yield
    except (
        library.exceptions.StorageInternalError,
        SQLAlchemyError,
        OSError,
        ImportError,
        ValueError,  # a damaged journal
    ) as error:
        if isinstance(error, GraphscError):
            raise
        raise _unusable(storage, error) from _cause(error, storage)


def _unusable(storage: str, error: BaseException) -> StorageError:
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    problem = (str(cause).strip().splitlines() or [type(cause).__name__])[0].rstrip(".")
    # SQLite has no numbers for errors, only words.
    full = getattr(cause, "errno", None) == errno.ENOSPC or "disk is full" in problem
    return StorageError(
        f"the storage cannot be used: {hide_secrets(problem, storage)}", where=shown_address(storage),
        hint="free some space and run the same command again" if full
        else "check the address, and that the server runs and its driver is installed",
    )  # fmt: skip


def _cause(error: BaseException, storage: str) -> BaseException | None:
    """The error to be chained: none if a traceback of it would show the password."""
    return None if tells_secrets(error, storage) else error


@contextmanager
def reading_study(storage: str) -> Iterator[None]:
    """`storage_errors`, and one sentence for what Optuna raises where it reads damaged records."""
    try:
        with storage_errors(storage):
            yield
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError, RuntimeError) as error:
        raise DamagedFileError(
            "the storage of the sweep is damaged", where=shown_address(storage),
            hint="restore it, or use another --storage",
        ) from error  # fmt: skip


def _points(sweep: Sweep, trials: int | None) -> list[dict[str, object]]:
    """Points of the grid to try, in order; none for samplers that draw."""
    if trials is not None and trials < 1:
        raise ConfigError(f"trials is {trials}", hint="use 1 or more")
    if sweep.sampler != "grid":
        return []
    space = sweep.dimensions
    size = space.size()
    if trials is None and size > GRID_CAP:
        raise ConfigError(
            f"the grid has {size:,} points",
            hint="give --trials for a random part of it, or another --sampler",
        )
    order = numpy_generator(sweep.first_seed, "grid").permutation(size)[:trials]
    return [dict(space.point(int(index))) for index in (range(size) if trials is None else order)]


def command_of(sweep: Sweep, settings: Mapping[str, object]) -> str:
    """The command that trains with these settings."""
    fixed = {**sweep.settings, **{f"training.{key}": value for key, value in sweep.training.items()}}
    assignments = [f"{key}={json.dumps(value)}" for key, value in {**fixed, **settings}.items()]
    words = ["graphsc", "train", sweep.data, "--method", sweep.method]
    for option, value, default in (
        ("--preset", sweep.preset, "default"),
        ("--features", sweep.features, "auto"),
    ):
        words += [option, value] if value != default else []
    words += [] if sweep.reader is None else ["--reader", sweep.reader]
    read = [f"{key}={json.dumps(value)}" for key, value in sweep.options.items()]
    words += [word for text in read for word in ("--reader-set", text)]
    return shlex.join([*words, *(word for text in assignments for word in ("--set", text))])


def plan_of(sweep: Sweep, settings: Mapping[str, object], seeds: int = 5) -> dict[str, object]:
    """A plan that evaluates these settings on seeds the sweep has not used, beside the method as it is."""
    trial = sweep.trials(settings)[0]
    block: dict[str, object] = {
        "data": [sweep.data],
        "methods": [sweep.method],
        "seeds": seeds,
        "features": [sweep.features],
        "preset": sweep.preset,
        "folds": sweep.folds,
        **({} if sweep.reader is None else {"reader": sweep.reader}),
        **({"options": sweep.options} if sweep.options else {}),
    }
    tuned = {
        **block,
        "label": f"{sweep.method} (swept)",
        "settings": dict(trial.settings),
        "training": dict(trial.training),
    }
    before = {**block, "settings": dict(sweep.settings), "training": dict(sweep.training)}
    title = f"{sweep.method} on {trial.data_name}, before and after the sweep"
    return {"tables": {"swept": {"title": title, "trials": [before, tuned]}}}


def write_sweep(study: SweepStudy, out: Path) -> list[str]:
    """Write trials.csv, best.yaml and two figures into a folder; returns a sentence for what is left out."""
    sweep, trials = study.sweep, study.trials()
    out.mkdir(parents=True, exist_ok=True)
    names = [name for dimension in sweep.dimensions.dimensions for name in dimension.names]
    rows = [
        [
            trial.number, trial.state, "" if trial.value is None else round(100 * trial.value, 4),
            *(trial.settings.get(name, "") for name in names), trial.reason,
        ]
        for trial in trials
    ]  # fmt: skip
    write_atomic(out / "trials.csv", csv_text(["trial", "state", "inner_accuracy", *names, "reason"], rows))
    best = study.best()
    if best is None:
        return ["no trial has finished: there are no best settings"]
    write_config(out / "best.yaml", plan_of(sweep, best.settings))
    done = [trial for trial in trials if trial.state == "done"]
    columns = {
        dimension.key: [_shown(dimension.names, trial.settings) for trial in done]
        for dimension in sweep.dimensions.dimensions
    }
    figures = {"parallel": parallel_coordinates(columns, [100 * (trial.value or 0.0) for trial in done])}
    notes = []
    try:
        figures["importance"] = importance_bars(importance_of(study, list(columns)))
    except DataError as error:
        notes.append(str(error))
    for name, figure in figures.items():
        for ending in ("png", "svg"):
            save_figure(figure, out / f"{name}.{ending}")
    return notes


def importance_of(study: SweepStudy, keys: list[str]) -> dict[str, float]:
    """The share of the variance between finished trials that each setting explains (fANOVA)."""
    library = require("optuna")
    values = [trial.value for trial in study.trials() if trial.state == "done"]
    if len(values) < 4 or len(set(values)) < 2:
        raise DataError("too few trials have finished, or all are equal: no importance of settings is drawn")
    evaluator = library.importance.FanovaImportanceEvaluator(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importances = library.importance.get_param_importances(study.optuna, evaluator=evaluator)
    return {key: float(importances.get(key, 0.0)) for key in keys}


def _shown(names: list[str], settings: Mapping[str, object]) -> object:
    """The value of a dimension in a figure: numbers as they are, lists as text."""
    values = [settings.get(name) for name in names]
    if len(values) == 1 and isinstance(values[0], (int, float, str)):
        return values[0]
    parts = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return ", ".join(str(part) for part in parts) if isinstance(parts, list) else str(parts)
