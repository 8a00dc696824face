"""One trial of a sweep: draw settings, train, and judge by inner folds alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.files import file_lock
from graphsc.core.registry import require
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.cross_validation import inner_accuracies
from graphsc.experiments.run import folds_of, kept_embeddings, labels_of, train_trial
from graphsc.experiments.single import shared_collection
from graphsc.experiments.storage import in_words
from graphsc.experiments.study import Held
from graphsc.experiments.sweep import sweep_of
from graphsc.experiments.trial import Trial
from graphsc.methods.base import TrainedMethod
from graphsc.training.train import stored_embeddings

if TYPE_CHECKING:
    from optuna.trial import Trial as Drawn


@dataclass(frozen=True)
class Searched:
    """The settings tried, and the inner accuracy of each seed; none where it was pruned."""

    settings: Mapping[str, object]
    inner: tuple[float, ...] = ()

    @property
    def pruned(self) -> bool:
        return not self.inner

    @property
    def value(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.inner))

    @property
    def words(self) -> str:
        shown = {key: f"{v:.4g}" if isinstance(v, float) else v for key, v in self.settings.items()}
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class PrunedError(Exception):
    """The trial is not worth going on with."""


def run_search(held: Held, runs: Path) -> Searched:
    """Draw what the cell's sweep leaves open, and run it on the development seeds.

    A cell taken over from a dead worker has its settings already, and its training goes on.
    """
    sweep = sweep_of(held.study)
    study = held.study.optuna
    study.sampler, study.pruner = sweep.make_sampler(held.cell.number), sweep.make_pruner()
    with in_words(held.study.storage.name):
        drawn: Drawn = require("optuna").trial.Trial(study, held.trial_id)
        settings = sweep.dimensions.draw(drawn)
        drawn.set_user_attr("settings", settings)  # also of those that fail
    watched = drawn if sweep.pruner != "none" else None
    inner = []
    for trial in sweep.trials(settings):
        trial.identity()
        try:
            inner.append(run_inner(trial, runs, watched))
        except PrunedError:
            return Searched(settings)
        watched = None  # the first seed alone decides whether to go on
    return Searched(settings, tuple(inner))


def run_inner(trial: Trial, runs: Path, watched: Drawn | None = None) -> float:
    """Train a trial and give its accuracy on inner folds; no test fold is predicted, shown or stored.

    With `watched`, inner accuracies of the epochs that are kept on the way are reported to the pruner.
    """
    collection = shared_collection(trial.data, trial.features)
    judge = InnerJudge.of(trial, collection)
    folder = runs / trial.run_name()
    hooks = [] if watched is None else [Watch(RunFolder(folder), judge, watched)]
    with file_lock(folder / ".trial"):
        run = train_trial(trial, collection, folder, hooks=hooks)
        rows = kept_embeddings(run, collection)
        return judge(rows[max(rows)], gram=run.model.gram)


@dataclass(frozen=True)
class InnerJudge:
    """Mean over outer folds of the best inner accuracy."""

    trial: Trial
    codes: NDArray[np.int64]
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, trial: Trial, collection: GraphCollection) -> InnerJudge:
        return cls(trial, labels_of(collection)[0], folds_of(trial, collection))

    def __call__(self, rows: NDArray[np.float32], *, gram: bool = False) -> float:
        found = inner_accuracies(
            rows, self.codes, self.trial.protocol, seed=self.trial.folds_from, fold=self.fold, gram=gram
        )
        return float(found.max(axis=1).mean())


class Watch:
    """Epoch hook: report the inner accuracy of kept epochs, and stop what the pruner gives up."""

    def __init__(self, folder: RunFolder, judge: InnerJudge, drawn: Drawn) -> None:
        self.folder = folder
        self.judge = judge
        self.drawn = drawn

    def __call__(self, epochs: int, method: TrainedMethod) -> None:
        last = self.judge.trial.loop().epochs
        if not 0 < epochs < last or not self.folder.embedding(epochs).exists():
            return
        self.drawn.report(self.judge(stored_embeddings(self.folder, epochs)), epochs)
        if self.drawn.should_prune():
            raise PrunedError
