"""A trial run: train, embed, judge. What is stored is not run again; what was stopped goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.files import cannot_write, file_lock
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import (
    Evaluation,
    class_codes,
    evaluate,
    evaluate_split,
    size_folds,
    stratified_folds,
)
from graphsc.experiments.curve import Curve
from graphsc.experiments.curve_probe import CurveProbe
from graphsc.experiments.result import Result
from graphsc.experiments.selection import in_words, select
from graphsc.experiments.store import ResultStore
from graphsc.experiments.trial import Trial
from graphsc.training.callbacks import Reporter
from graphsc.training.train import Run, environment, stored_embeddings, train
from graphsc.training.trainer import EpochHook


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """The lock of a trial, or a sentence where it cannot be made."""
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path))
        except OSError as error:
            raise cannot_write(path.parent, error) from error
        yield


def run_trial(
    trial: Trial,
    *,
    collection: GraphCollection | None = None,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
) -> Result:
    """The trial's result: from the store, or by running it in a folder under `runs`.

    Raises `InUseError` while another process runs the same training.
    """
    if store is not None and (kept := store.get(trial)) is not None:
        return kept
    if collection is None:
        collection = open_collection(trial.data, features=trial.features)
    codes, classes = labels_of(collection)
    fold = folds_of(trial, collection)
    folder = Path(runs) / trial.run_name()
    with _held(folder / ".trial"):
        if store is not None and (kept := store.get(trial)) is not None:
            return kept  # by whoever held the lock before us
        case = _Case(trial, collection, codes, fold, folder, reporter or Reporter())
        started = time.monotonic()
        run, found, epochs = case.inductive() if trial.inductive else case.transductive()
        curve = case.probe.curve() if trial.curve else None
        result = _result(trial, run, classes, found, epochs, time.monotonic() - started, curve)
        result.save(folder / "result.json")
        if store is not None:
            store.put(trial, result)
    return result


def labels_of(collection: GraphCollection) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The collection's classes as codes from 0, with their names; it must have one task, without gaps."""
    if collection.labels is None:
        raise DataError(f"{collection.name} has no labels to judge embeddings by")
    if collection.labels.shape[1] != 1:
        raise DataError(
            f"{collection.name} has {collection.labels.shape[1]} tasks, one is needed",
            hint="choose one label column",
        )
    codes, names = class_codes(collection.labels[:, 0])
    known = collection.classes.get(collection.tasks[0])
    if known:
        names = [known[int(float(name))] for name in names]
    return codes, tuple(names)


def folds_of(trial: Trial, collection: GraphCollection) -> NDArray[np.int64]:
    """The outer fold of each graph: at random from the trial's seed, or by size."""
    codes, classes = labels_of(collection)
    if trial.protocol.splitting == "size":
        return size_folds(codes, np.diff(collection.node_ptr).astype(np.int64))
    return stratified_folds(codes, trial.protocol.folds, trial.folds_from, names=classes)


def train_trial(
    trial: Trial,
    collection: GraphCollection,
    folder: Path,
    reporter: Reporter | None = None,
    hooks: Sequence[EpochHook] = (),
) -> Run:
    """The trial's training alone, in this folder."""
    return train(
        collection, trial.method, settings=trial.settings, preset=trial.preset, encoder=trial.encoder,
        training=trial.loop(), out=folder, source=trial.data, hooks=hooks, reporter=reporter,
    )  # fmt: skip


def kept_embeddings(run: Run, collection: GraphCollection) -> dict[int, NDArray[np.float32]]:
    """Rows of the graphs the run was trained on, for every epoch that was kept."""
    assert run.folder is not None  # noqa: S101 - trials always have a folder
    epochs = kept_epochs(run.folder)
    if not epochs:
        return {0: run.model.embed(collection)}
    return {epoch: stored_embeddings(run.folder, epoch) for epoch in epochs}


def kept_epochs(folder: RunFolder) -> list[int]:
    """The epochs whose embeddings a run's folder holds."""
    return sorted(int(path.stem.removeprefix("epoch-")) for path in folder.embeddings.glob("epoch-*"))


Judged = tuple[Run, Evaluation, list[int]]


@dataclass(frozen=True)
class _Case:
    """A trial with its graphs, classes and folds, and where it runs."""

    trial: Trial
    collection: GraphCollection
    codes: NDArray[np.int64]
    fold: NDArray[np.int64]
    folder: Path
    reporter: Reporter

    @property
    def probe(self) -> CurveProbe:
        """What judges the epochs of the trial's curve."""
        return CurveProbe(
            self.folder / "curve.json", self.trial.curve, self.collection,
            lambda rows: evaluate(
                rows, self.codes, self.trial.protocol, seed=self.trial.folds_from, fold=self.fold
            ),
        )  # fmt: skip

    def transductive(self) -> Judged:
        """One encoder for all graphs; the selection rule says which of its epochs is judged."""
        hooks = [self.probe] if self.trial.curve else []
        run = train_trial(self.trial, self.collection, self.folder, self.reporter, hooks)

        def judge(rows: NDArray[np.float32]) -> Evaluation:
            return evaluate(
                rows, self.codes, self.trial.protocol,
                seed=self.trial.folds_from, fold=self.fold, gram=run.model.gram,
            )  # fmt: skip

        return run, *select(self.trial.selection, kept_embeddings(run, self.collection), judge)

    def inductive(self) -> Judged:
        """One encoder an outer fold, which has never seen that fold's graphs."""
        predictions = np.empty_like(self.codes)
        chosen, inner, epochs = [], [], []
        for number in range(self.trial.protocol.folds):
            seen, held_out = np.flatnonzero(self.fold != number), np.flatnonzero(self.fold == number)
            part = self.collection[seen]
            run = train_trial(self.trial, part, self.folder / f"fold-{number}", self.reporter)
            rows = run.model.embed(self.collection)
            if run.model.gram:
                # Kernel values against the graphs it has seen, in their columns; the others are never read.
                kernel = np.zeros((len(self.codes), len(self.codes)), np.float32)
                kernel[:, seen] = rows
                rows = kernel
            split = evaluate_split(
                rows, self.codes, seen, held_out, self.trial.protocol,
                gram=run.model.gram, seed=self.trial.folds_from, number=number,
            )  # fmt: skip
            predictions[held_out] = split.predictions
            chosen.append(split.chosen)
            inner.append(split.inner)
            epochs.append(len(run.metrics.rows))
        found = Evaluation(predictions, self.fold, self.codes, tuple(chosen), np.stack(inner))
        return run, found, epochs


def _result(
    trial: Trial,
    run: Run,
    classes: tuple[str, ...],
    found: Evaluation,
    epochs: list[int],
    seconds: float,
    curve: Curve | None = None,
) -> Result:
    health = ("loss", "effective_rank", "dimensions", "uniformity", "alignment", "mean_cosine")
    last = run.metrics.rows[-1] if run.metrics.rows else {}
    return Result.of(
        found,
        epochs,
        trial=trial.identity(),
        config=run.config,
        classes=classes,
        words=in_words(trial.selection, trial.protocol, inductive=trial.inductive),
        health={name: last[name] for name in health if name in last},
        seconds={
            "training": round(sum(row.get("seconds", 0.0) for row in run.metrics.rows), 2),
            "total": round(seconds, 2),
        },
        environment=environment(str(run.config["device"])),
        keep_inner=trial.inner,
        curve=curve,
    )
