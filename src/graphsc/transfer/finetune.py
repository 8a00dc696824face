"""From labelled molecules and an encoder to a model of them, in a folder that can be gone on with.

Training is the one loop of all methods; what is added here is the split, the labels, and the two rules by
which the literature chooses a model: the last epoch, and the one that validation likes best.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from graphsc import __version__
from graphsc.core.errors import DataError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.rejects import write_rejected
from graphsc.training.device import make_fabric, pick_device
from graphsc.training.loop import Loop
from graphsc.training.metrics import Metrics
from graphsc.training.reporter import Reporter
from graphsc.training.run import environment
from graphsc.transfer.balance import Balance, balance_of, warnings_of
from graphsc.transfer.few import rows_to_train
from graphsc.transfer.finetuned import FineTuned
from graphsc.transfer.held import held_out, judge, write_predictions
from graphsc.transfer.labelled import Labelled
from graphsc.transfer.predictor import Predictor, load_predictor
from graphsc.transfer.result import TransferResult, load_transfer
from graphsc.transfer.settings import FineTuneSettings
from graphsc.transfer.split import TRAIN, WORDS, How, Parts, read_split, split_molecules, write_split
from graphsc.transfer.start import NONE, Start, start_from
from graphsc.transfer.watch import SCORE, Watch, stale

FILES = {"last": "last.safetensors", "best": "best.safetensors"}


@dataclass(frozen=True)
class FineTuneRun:
    """A finished fine-tuning: one result a seed, all on one split."""

    folder: RunFolder
    results: tuple[TransferResult, ...]
    balance: tuple[Balance, ...]
    warnings: tuple[str, ...]


def finetune(
    molecules: Labelled,
    weights: str | Path = NONE,
    *,
    out: str | Path,
    settings: FineTuneSettings | None = None,
    seeds: Sequence[int] = (0,),
    split: How = "scaffold",
    split_seed: int = 0,
    label_fraction: float = 1.0,
    encoder: str = "molecule-gin",
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
    start = start_from(
        weights, molecules.collection.features, encoder=encoder, settings=encoder_settings
    )
    molecules = replace(molecules, collection=molecules.collection.with_features(start.features))
    chosen = pick_device(device)
    config = _config(molecules, start, settings, split, split_seed, label_fraction)
    config |= {"seeds": len(seeds), "device": chosen, "source": {"data": source, "weights": str(weights)}}
    folder = RunFolder(out)
    with folder.owned(trains=False):
        folder.settle(config)
        folder.note_environment(environment(chosen))
        if molecules.rejected:
            write_rejected(folder.path / "rejected.csv", molecules.rejected)
        parts = _settled_split(folder.path / "split.csv", molecules, split, split_seed)
        balance = balance_of(molecules.labels, molecules.tasks, parts, molecules.kind)
        warnings = warnings_of(balance)
        for warning in warnings:
            reporter.say(f"note: {warning}")
        job = _Job(molecules, parts, start, settings, label_fraction, chosen, reporter, config, folder.path)
        results = tuple(job.seed(seed) for seed in seeds)
        if not (folder.path / "predictions.csv").exists() or job.worked:
            files = [model_file(job.place(seed)) for seed in seeds]
            write_predictions(folder.path / "predictions.csv", molecules, parts, files)
    return FineTuneRun(folder, results, tuple(balance), tuple(warnings))


def model_file(folder: Path, rule: str = "best") -> Path:
    """The model of a seed's folder by this rule; where nothing could be chosen by validation, the last."""
    path = folder / FILES[rule]
    return path if path.exists() else folder / FILES["last"]


def _config(
    molecules: Labelled, start: Start, settings: FineTuneSettings, split: How, split_seed: int, fraction: float
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


def _settled_split(path: Path, molecules: Labelled, how: How, seed: int) -> Parts:
    """The split the folder already has, else a new one: another RDKit must not move a run's molecules."""
    if path.exists():
        return read_split(path, molecules.rows)
    parts = split_molecules(molecules.smiles, how, seed)
    write_split(path, molecules.rows, parts)
    return parts


@dataclass
class _Job:
    """What all seeds of a run share."""

    molecules: Labelled
    parts: Parts
    start: Start
    settings: FineTuneSettings
    fraction: float
    device: str
    reporter: Reporter
    config: Mapping[str, object]
    folder: Path
    worked: bool = False

    def place(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}"

    def seed(self, seed: int) -> TransferResult:
        """One whole repetition: every learning rate trained, one model chosen by each rule."""
        place = self.place(seed)
        stored = place / "result.json"
        if stored.exists():
            found = load_transfer(stored)
            if found.config.get("epochs") == self.settings.epochs:
                self.reporter.say(f"seed {seed} is finished")
                return found
        self.worked = True
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
        result.save(stored)
        return result

    def words(self) -> str:
        """The protocol in words."""
        settings = self.settings
        how = str(self.config["transfer"]["split"])  # type: ignore[index]
        first = "its first weights" if self.start.method == NONE else f"weights of {self.start.method}"
        rates = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
        words = (
            f"Fine-tuned from {first}: Adam, learning rate {rates}"
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
        if not len(rows):
            raise DataError("no molecule to train on has a label", where=self.molecules.name)
        training = self.molecules.collection.take(rows)
        method = self._method(seed)
        if self.molecules.kind == "regression":
            method.standardise(torch.from_numpy(self.molecules.labels[rows]))
        held, parts = held_out(self.molecules, self.parts)
        settings = self.settings.loop(rate, seed)
        with folder.owned():
            folder.settle({**self.config, "seed": seed, "learning_rate": rate})
            watch = Watch(
                held, parts, where / FILES["best"], self._save, every=self.settings.every, last=settings.epochs
            )
            fabric = make_fabric(self.device, settings.precision)
            self.reporter.say(
                f"seed {seed}, learning rate {rate:g}: {len(training)} molecules to learn from, "
                f"device {self.device}"
            )
            metrics = Loop(
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
