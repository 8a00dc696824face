"""From labelled molecules and an encoder to a model of them, in a folder that can be gone on with."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from graphsc import __version__
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.rejected import write_rejected
from graphsc.finetuning.callbacks import SCORE, Watch, stale
from graphsc.finetuning.dataset import (
    Balance,
    MoleculeDataset,
    balance_of,
    rows_to_train,
    warnings_of,
    write_balance,
)
from graphsc.finetuning.model import (
    ENCODER,
    FILES,
    NONE,
    FineTuned,
    Predictor,
    Start,
    load_predictor,
    model_file,
    start_from,
)
from graphsc.finetuning.result import TransferResult, held_out, judge, load_transfer, write_predictions
from graphsc.finetuning.splits import TRAIN, WORDS, How, Parts, read_split, split_molecules, write_split
from graphsc.training.callbacks import Metrics, Reporter
from graphsc.training.distributed import make_fabric, pick_device
from graphsc.training.train import environment
from graphsc.training.trainer import Trainer, TrainSettings

# How a model is fine-tuned; the same keywords in Python, in a plan and on the command line.


GRID_RATES = (1e-4, 5e-4, 1e-3)
GRID_EVERY = 20


@dataclass(frozen=True)
class FineTuneSettings:
    """Settings of fine-tuning. Defaults are those of the literature since Hu et al. (2020).

    With several learning rates each is trained, and validation chooses. `every` says at which epochs a model
    may be chosen: every one, or every 20th with the grid of the GraphSC paper.
    """

    epochs: int = 100
    learning_rates: tuple[float, ...] = (1e-3,)
    batch_size: int = 32
    dropout: float = 0.5
    weight_decay: float = 0.0
    clip: float | None = None
    patience: int | None = None  # epochs without a better score on validation after which to stop
    every: int = 1
    precision: Literal["full", "bf16"] = "full"

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError("fine-tuning needs at least 1 epoch", hint="graphsc yardstick fits without any")
        if not self.learning_rates or len(set(self.learning_rates)) != len(self.learning_rates):
            raise ConfigError("learning rates must be given once each, at least one")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        if self.every < 1 or (self.patience is not None and self.patience < 1):
            raise ConfigError("every and patience must be at least 1")
        for rate in self.learning_rates:
            self.loop(rate, 0)

    def loop(self, learning_rate: float, seed: int) -> TrainSettings:
        """The training loop's part of it."""
        return TrainSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            clip=self.clip,
            seed=seed,
            precision=self.precision,
        )

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "learning_rates": list(self.learning_rates)}


# One whole repetition of fine-tuning: the one loop of all methods, then both choices of a model.
#
# The literature has two rules for which model is judged: the last epoch's, and the one validation likes best.


@dataclass(frozen=True)
class SeedJob:
    """What all seeds of a run share."""

    molecules: MoleculeDataset
    parts: Parts
    start: Start
    settings: FineTuneSettings
    fraction: float
    device: str
    reporter: Reporter
    config: Mapping[str, object]
    folder: Path

    @property
    def predictions(self) -> Path:
        """Of all seeds together, for the molecules that were held out."""
        return self.folder / "predictions.csv"

    def place(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}"

    def seed(self, seed: int) -> TransferResult:
        """One whole repetition: every learning rate trained, one model chosen by each rule."""
        place = self.place(seed)
        stored = place / "result.json"
        if stored.exists():
            found = load_transfer(stored)
            if int(str(found.config["epochs"])) >= self.settings.epochs:
                self.reporter.say(f"seed {seed} is finished")
                return found
        began = time.monotonic()
        rates = self.settings.learning_rates
        places = {rate: place if len(rates) == 1 else place / f"lr-{rate:g}" for rate in rates}
        trained = {rate: self._train(seed, rate, where) for rate, where in places.items()}
        held, parts = held_out(self.molecules, self.parts)
        rules = {}
        for rule, file in FILES.items():
            scores = {rate: found[rule] for rate, found in trained.items() if rule in found}
            if not scores:
                continue
            rate = max(scores, key=lambda rate: (scores[rate], -rates.index(rate)))
            predictor = load_predictor(places[rate] / file)
            if len(rates) > 1:
                predictor.save(place / file)
            epoch = int(str(predictor.facts["epoch"]))
            rules[rule] = judge(predictor.scores(held), held, parts, self.molecules.kind, epoch, rate)
        result = TransferResult(
            trial={
                "data": self.molecules.name,
                "method": self.start.method,
                "way": "fine-tuned",
                "seed": seed,
            },
            config={**self.config, "seed": seed},
            tasks=self.molecules.tasks,
            kind=self.molecules.kind,
            parts=self.parts,
            rules=rules,
            words=self.words(),
            seconds={"total": round(time.monotonic() - began, 1)},
            environment=environment(self.device),
        )
        # From here on they would be those of other models; they are written when all seeds are done.
        self.predictions.unlink(missing_ok=True)
        result.save(stored)
        return result

    def words(self) -> str:
        """The protocol in words."""
        settings = self.settings
        how = str(self.config["transfer"]["split"])  # type: ignore[index]
        rates = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
        words = (
            f"Fine-tuned by Adam, learning rate {rates}"
            f"{' (chosen on validation)' if len(settings.learning_rates) > 1 else ''}, batch "
            f"{settings.batch_size}, dropout {settings.dropout:g}, {settings.epochs} epochs. "
            f"Split {how}, 80/10/10: {WORDS[how]}."
        )
        return words if self.fraction == 1 else f"{words} {self.fraction:.0%} of the training labels."

    def _train(self, seed: int, rate: float, where: Path) -> dict[str, float]:
        """Train one model; the score on validation of each rule's choice."""
        folder = RunFolder(where)
        rows = np.flatnonzero(self.parts == TRAIN)
        rows = rows_to_train(self.molecules.labels, rows, self.molecules.kind, self.fraction, seed)
        if len(rows) < 2:
            raise DataError(
                f"{len(rows)} of the molecules to train on has a label", where=self.molecules.name,
                hint="label more of them, or raise --label-fraction",
            )  # fmt: skip
        training = self.molecules.collection.take(rows)
        method = self._method(seed)
        if self.molecules.kind == "regression":
            method.standardise(torch.from_numpy(self.molecules.labels[rows]))
        held, parts = held_out(self.molecules, self.parts)
        settings = self.settings.loop(rate, seed)
        with folder.lock():
            folder.save_config({**self.config, "seed": seed, "learning_rate": rate})
            watch = Watch(
                held,
                parts,
                where / FILES["best"],
                self._save,
                every=self.settings.every,
                last=settings.epochs,
            )
            fabric = make_fabric(self.device, settings.precision)
            self.reporter.say(
                f"seed {seed}, learning rate {rate:g}: {len(training)} molecules to learn from, "
                f"device {self.device}"
            )
            metrics = Trainer(
                method, training, settings, fabric, f"fine-tuning of {self.start.method}",
                folder.checkpoints, folder.metrics, self.reporter, (watch.keep,), (watch.measure,),
                lambda rows: stale(rows, self.settings.patience),
            ).run()  # fmt: skip
            facts = {"rule": "last", "epoch": int(metrics.rows[-1]["epoch"]), "seed": seed}
            self._save(method.eval(), where / FILES["last"], facts)
        return _scores(metrics, watch)

    def _method(self, seed: int) -> FineTuned:
        encoder = self.start.build(seed, self.settings.dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "head"))
            return FineTuned(encoder, tasks=len(self.molecules.tasks), kind=self.molecules.kind)

    def _save(self, method: FineTuned, path: Path, facts: Mapping[str, object]) -> None:
        start, dropout = replace(self.start, weights=None), self.settings.dropout
        Predictor(method, start, dropout, self.molecules.tasks, self.molecules.classes, facts).save(path)


def _scores(metrics: Metrics, watch: Watch) -> dict[str, float]:
    """By rule: how validation likes the model it chose. Without validation there is only the last."""
    last = metrics.rows[-1].get(SCORE)
    found = {"last": float("-inf") if last is None else last}
    return found if watch.best is None else {**found, "best": watch.best[0]}


@dataclass(frozen=True)
class FineTuneRun:
    """A finished fine-tuning: one result a seed, all on one split."""

    folder: RunFolder
    results: tuple[TransferResult, ...]
    balance: tuple[Balance, ...]
    warnings: tuple[str, ...]


def finetune(
    molecules: MoleculeDataset,
    weights: str | Path = NONE,
    *,
    out: str | Path,
    settings: FineTuneSettings | None = None,
    seeds: Sequence[int] = (0,),
    split: How = "scaffold",
    split_seed: int = 0,
    label_fraction: float = 1.0,
    encoder: str = ENCODER,
    encoder_settings: Mapping[str, object] | None = None,
    device: str = "auto",
    source: str | None = None,
    reporter: Reporter | None = None,
) -> FineTuneRun:
    """Fine-tune an encoder once for each seed; the same call again goes on after a stop.

    `weights` is a run folder or model file of a method that has trained an encoder, or `"none"`. A seed
    decides the head, the order of molecules, dropout and, without weights, the encoder; never the scaffold
    split. Everything is kept in the folder `out`: the split, one folder a seed with both models, metrics by
    epoch and `result.json`, and `predictions.csv` for the molecules that were held out.
    """
    settings = settings or FineTuneSettings()
    reporter = reporter or Reporter()
    start = start_from(weights, molecules.collection.features, encoder=encoder, settings=encoder_settings)
    molecules = replace(molecules, collection=molecules.collection.with_features(start.features))
    chosen = pick_device(device)
    config = _config(molecules, start, settings, split, split_seed, label_fraction)
    config |= {"seeds": len(seeds), "device": chosen, "source": {"data": source, "weights": str(weights)}}
    folder = RunFolder(out)
    with folder.lock(trains=False):
        folder.save_config(config)
        folder.record_environment(environment(chosen))
        if molecules.rejected:
            write_rejected(folder.path / "rejected.csv", molecules.rejected)
        parts = _settled_split(folder.path / "split.csv", molecules, split, split_seed)
        balance = balance_of(molecules.labels, molecules.tasks, parts, molecules.kind)
        write_balance(folder.path / "balance.csv", balance)
        warnings = warnings_of(balance)
        for warning in warnings:
            reporter.say(f"note: {warning}")
        job = SeedJob(
            molecules, parts, start, settings, label_fraction, chosen, reporter, config, folder.path
        )
        results = tuple(job.seed(seed) for seed in seeds)
        if not job.predictions.exists():
            write_predictions(
                job.predictions, molecules, parts, [model_file(job.place(seed)) for seed in seeds]
            )
    return FineTuneRun(folder, results, tuple(balance), tuple(warnings))


def _config(
    molecules: MoleculeDataset,
    start: Start,
    settings: FineTuneSettings,
    split: How,
    split_seed: int,
    fraction: float,
) -> dict[str, object]:
    """All that decides the outcome, and with it whether a folder can be gone on with."""
    tuning = settings.to_json()
    return {
        "graphsc": __version__,
        "transfer": {
            "kind": molecules.kind,
            "tasks": list(molecules.tasks),
            "split": split,
            "split_seed": 0 if split == "scaffold" else split_seed,
            "label_fraction": fraction,
        },
        "data": {
            "name": molecules.name,
            "graphs": len(molecules.collection),
            "content_hash": molecules.collection.content_hash,
            "features": molecules.collection.features.name,
        },
        "method": start.method,
        "weights": dict(start.facts),
        "encoder": start.encoder,
        "encoder_settings": start.tuned(settings.dropout),
        "training": {key: value for key, value in tuning.items() if key != "epochs"},
        "epochs": settings.epochs,
    }


def _settled_split(path: Path, molecules: MoleculeDataset, how: How, seed: int) -> Parts:
    """The split the folder already has, else a new one: another RDKit must not move a run's molecules."""
    if path.exists():
        return read_split(path, molecules.rows)
    parts = split_molecules(molecules.smiles, how, seed)
    write_split(path, molecules.rows, parts)
    return parts
