"""Runs a `ProbeTrial`: train without labels, embed, evaluate by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError, GraphscError
from graphsc.core.files import file_lock, read_json, write_json
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import describe_reading
from graphsc.evaluation.cross_validation import (
    Evaluation,
    class_codes,
    evaluate,
    evaluate_split,
    size_folds,
    stratified_folds,
)
from graphsc.experiments.result import Curve, Result, ResultStore
from graphsc.experiments.selection import LEAKY, Evaluate, Selected, protocol_words, select
from graphsc.experiments.trial import ProbeTrial, check_graphs
from graphsc.methods.registry import TUNED, searched_settings
from graphsc.training.callbacks import Callback, Reporter
from graphsc.training.train import Run, embed_clean, environment, stored_embeddings, train
from graphsc.training.trainer import Trainer

HEALTH = ("loss", "effective_rank", "dimensions", "uniformity", "alignment", "mean_cosine")


def run_probe(
    trial: ProbeTrial,
    collection: GraphCollection,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    device: str = "auto",
) -> Result:
    """Run a trial in a folder under `runs`, or resume it there.

    Args:
        trial: What to run.
        collection: The trial's graphs, with the trial's features.
        runs: Parent folder of training runs.
        store: Looked at again once the run's lock is held, because another process may have finished it.
        reporter: Shows the progress of training.
        device: Where it trains.

    Raises:
        InUseError: While another process runs the same training.
        DataError: The file of the graphs was replaced meanwhile.
    """
    codes, classes = labels_of(collection)
    fold = folds_of(trial, collection)
    folder = Path(runs) / trial.run_name()
    with file_lock(folder / ".trial"):
        if store is not None and (stored := store.get(trial)) is not None:
            return stored
        data_hash = trial.data_hash
        case = _Case(trial, collection, codes, fold, folder, reporter or Reporter(), device)
        started = time.monotonic()
        run, selected = case.inductive() if trial.inductive else case.transductive()
        curve = case.probe.curve() if trial.curve else None
        seconds = time.monotonic() - started
        check_graphs(trial.data, trial.data_hash, data_hash)  # a file may be replaced meanwhile
        result = _result(trial, run, classes, selected, seconds, curve)
        result.save(folder / "result.json")
        if store is not None:
            store.put(trial, result)
    return result


def labels_of(collection: GraphCollection) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class codes from 0 and class names of a collection with one complete classification task."""
    if collection.labels is None:
        raise DataError(
            f"{collection.name} has no labels to evaluate embeddings with",
            hint="name their column with label_columns, on the command line --reader-set label_columns=NAME",
        )
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


def folds_of(trial: ProbeTrial, collection: GraphCollection) -> NDArray[np.int64]:
    """The outer fold of each graph: random and stratified, from the trial's seed, or by graph size."""
    codes, classes = labels_of(collection)
    if trial.protocol.splitting == "size":
        return size_folds(codes, np.diff(collection.node_ptr).astype(np.int64))
    return stratified_folds(codes, trial.protocol.folds, trial.folds_from, names=classes)


def train_trial(
    trial: ProbeTrial,
    collection: GraphCollection,
    folder: Path,
    reporter: Reporter | None = None,
    callbacks: Sequence[Callback] = (),
    device: str = "auto",
) -> Run:
    """Train a trial in this folder, without evaluating it."""
    return train(
        collection, trial.method, settings=trial.settings, preset=trial.preset, encoder=trial.encoder,
        training=trial.loop(), device=device, out=folder, source=trial.data, callbacks=callbacks,
        reporter=reporter, keep_every_epoch=trial.selection in LEAKY,
        reading=describe_reading(trial.data, trial.reader, trial.options),
    )  # fmt: skip


def kept_embeddings(run: Run, collection: GraphCollection) -> dict[int, NDArray[np.float32]]:
    """Embeddings of the training graphs at every epoch whose embeddings were kept."""
    assert run.folder is not None  # noqa: S101 - trials always have a folder
    epochs = kept_epochs(run.folder)
    if not epochs:
        return {0: run.model.embed(collection)}
    return {epoch: stored_embeddings(run.folder, epoch) for epoch in epochs}


def kept_epochs(folder: RunFolder) -> list[int]:
    """The epochs whose embeddings a run's folder holds."""
    return sorted(int(path.stem.removeprefix("epoch-")) for path in folder.embeddings.glob("epoch-*"))


@dataclass
class _Case:
    """A trial with its graphs, classes, folds and folder."""

    trial: ProbeTrial
    collection: GraphCollection
    codes: NDArray[np.int64]
    fold: NDArray[np.int64]
    folder: Path
    reporter: Reporter
    device: str

    @cached_property
    def probe(self) -> CurveProbe:
        """The callback that evaluates the epochs of the trial's curve."""
        return CurveProbe(
            self.folder / "curve.json", self.trial.curve, self.collection,
            lambda rows: evaluate(
                rows, self.codes, self.trial.protocol, seed=self.trial.folds_from, fold=self.fold
            ),
        )  # fmt: skip

    def transductive(self) -> tuple[Run, Selected]:
        """One encoder for all graphs; the selection rule says which epoch is evaluated."""
        callbacks = [self.probe] if self.trial.curve else []
        run = train_trial(self.trial, self.collection, self.folder, self.reporter, callbacks, self.device)

        def evaluate_rows(rows: NDArray[np.float32]) -> Evaluation:
            if self.probe.final is not None and self.trial.selection == "last":
                return self.probe.final  # of these embeddings, evaluated a moment ago
            return evaluate(
                rows, self.codes, self.trial.protocol,
                seed=self.trial.folds_from, fold=self.fold, gram=run.model.gram,
            )  # fmt: skip

        return run, select(self.trial.selection, kept_embeddings(run, self.collection), evaluate_rows)

    def inductive(self) -> tuple[Run, Selected]:
        """One encoder per outer fold, trained without that fold's graphs."""
        predictions = np.empty_like(self.codes)
        chosen, inner, epochs = [], [], []
        for number in range(self.trial.protocol.folds):
            seen, held_out = np.flatnonzero(self.fold != number), np.flatnonzero(self.fold == number)
            folder = self.folder / f"fold-{number}"
            run = train_trial(self.trial, self.collection[seen], folder, self.reporter, device=self.device)
            rows = run.model.embed(self.collection)
            if run.model.gram:
                # Kernel values with the training graphs, in their columns; other columns are never read.
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
        evaluation = Evaluation(predictions, self.fold, self.codes, tuple(chosen), np.stack(inner))
        return run, Selected(evaluation, epochs)


def _result(
    trial: ProbeTrial,
    run: Run,
    classes: tuple[str, ...],
    selected: Selected,
    seconds: float,
    curve: Curve | None = None,
) -> Result:
    last = run.metrics.rows[-1] if run.metrics.rows else {}
    return Result.of(
        selected,
        trial=trial.identity(),
        config=run.config,
        classes=classes,
        words=protocol_words(
            trial.selection,
            trial.protocol,
            inductive=trial.inductive,
            searched=trial.preset == TUNED and bool(searched_settings(trial.method, trial.data_name)),
        ),
        health={name: last[name] for name in HEALTH if name in last},
        seconds={
            "training": round(sum(row.get("seconds", 0.0) for row in run.metrics.rows), 2),
            "total": round(seconds, 2),
        },
        environment=environment(str(run.config["device"])),
        keep_inner=trial.inner,
        curve=curve,
    )


class CurveProbe(Callback):
    """Evaluates the embeddings of some epochs during training and records the outcome in the run's folder.

    An epoch is recorded before the trainer's checkpoint, so that a resumed run continues its curve.
    """

    def __init__(
        self, path: Path, epochs: tuple[int, ...], collection: GraphCollection, evaluate: Evaluate
    ) -> None:
        self.path = path
        self.epochs = epochs
        self.collection = collection
        self.evaluate = evaluate
        self.final: Evaluation | None = None  # of the last epoch, if this process has evaluated it

    def on_train_start(self, trainer: Trainer) -> None:
        if not trainer.resumed:
            self.on_epoch_end(trainer)

    def on_epoch_end(self, trainer: Trainer) -> None:
        epochs = trainer.epoch
        if epochs not in self.epochs:
            return
        evaluation = self.evaluate(embed_clean(trainer.method, self.collection))
        self.final = evaluation if epochs == trainer.epochs else None
        sizes = np.bincount(evaluation.fold)
        correct = evaluation.predictions == evaluation.labels
        right = np.bincount(evaluation.fold, correct).astype(np.int64)
        counts = {epoch: row for epoch, row in self._recorded().items() if epoch < epochs} | {epochs: right}
        curve = Curve(tuple(counts), np.stack(list(counts.values())), sizes)
        write_json(self.path, curve.to_json())

    def curve(self) -> Curve:
        """The recorded curve."""
        try:
            return Curve.from_json(read_json(self.path, "curve"))
        except (GraphscError, ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(
                "the curve of a run is missing or damaged",
                where=str(self.path),
                hint="remove the run's folder",
            ) from error

    def _recorded(self) -> dict[int, NDArray[np.int64]]:
        if not self.path.exists():
            return {}
        curve = self.curve()
        return dict(zip(curve.epochs, curve.right, strict=True))
