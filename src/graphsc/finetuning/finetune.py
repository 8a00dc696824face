"""Fine-tune an encoder on labelled molecules, once per seed, in a run folder that can be resumed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from graphsc import __version__
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.rejected import write_rejected
from graphsc.encoders import reads_edges
from graphsc.finetuning.callbacks import SCORE, BestModel, EarlyStopping, ValidationMetrics
from graphsc.finetuning.dataset import (
    Balance,
    MoleculeDataset,
    label_balance,
    label_warnings,
    select_labelled,
    write_balance,
)
from graphsc.finetuning.model import (
    ENCODER,
    FILES,
    NONE,
    EncoderSpec,
    FineTuned,
    Predictor,
    load_predictor,
    model_file,
    resolve_encoder,
)
from graphsc.finetuning.result import (
    TransferResult,
    held_out_set,
    load_transfer,
    score_held_out,
    write_predictions,
)
from graphsc.finetuning.splits import (
    DESCRIPTIONS,
    TRAIN,
    Parts,
    SplitKind,
    read_split,
    split_molecules,
    write_split,
)
from graphsc.training.callbacks import HealthMetrics, Reporter
from graphsc.training.distributed import (
    Precision,
    make_fabric,
    pick_device,
    pick_precision,
    precision_warning,
)
from graphsc.training.train import environment
from graphsc.training.trainer import Trainer, TrainSettings

GRID_RATES = (1e-4, 5e-4, 1e-3)
GRID_EVERY = 20


@dataclass(frozen=True)
class FineTuneSettings:
    """Settings of fine-tuning: the keywords in Python, in a plan and on the command line.

    The defaults are those of the literature since Hu et al. (2020). With several learning rates a model is
    trained with each, and the validation score chooses among them.
    """

    epochs: int = 100
    learning_rates: tuple[float, ...] = (1e-3,)
    batch_size: int = 32
    dropout: float = 0.5
    weight_decay: float = 0.0
    clip: float | None = None
    patience: int | None = None  # stop after so many epochs without a better validation score
    every: int = 1  # epochs between two candidates for the best model; 20 in the GraphSC paper's grid
    precision: Precision = "full"

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
        """The settings of the training loop for one learning rate and seed."""
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


@dataclass(frozen=True)
class _FineTuner:
    """Fine-tunes one model per learning rate for a seed; the fields are shared by all seeds of a run."""

    molecules: MoleculeDataset
    parts: Parts
    encoder: EncoderSpec
    settings: FineTuneSettings
    fraction: float
    device: str
    reporter: Reporter
    config: Mapping[str, object]
    folder: Path

    @property
    def predictions(self) -> Path:
        """The file of predictions for the held-out molecules, averaged over all seeds."""
        return self.folder / "predictions.csv"

    def seed_folder(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}"

    def run(self, seed: int) -> TransferResult:
        """One repetition: train with every learning rate, then score the models of both selection rules.

        The literature uses two rules: the model of the last epoch, and that of the best validation score.
        """
        folder = self.seed_folder(seed)
        stored = folder / "result.json"
        if stored.exists():
            result = load_transfer(stored)
            if int(str(result.config["epochs"])) >= self.settings.epochs:
                self.reporter.log(f"seed {seed} is finished")
                return result
        started, data = time.monotonic(), self.molecules.name
        rates = self.settings.learning_rates
        folders = {rate: folder if len(rates) == 1 else folder / f"lr-{rate:g}" for rate in rates}
        trained = {rate: self._train(seed, rate, folders[rate]) for rate in rates}
        held_out, parts = held_out_set(self.molecules, self.parts)
        rules = {}
        for rule, file in FILES.items():
            scores = {rate: by_rule[rule] for rate, by_rule in trained.items() if rule in by_rule}
            if not scores:
                continue
            rate = max(scores, key=lambda rate: (scores[rate], -rates.index(rate)))
            predictor = load_predictor(folders[rate] / file, self.device)
            if len(rates) > 1:
                predictor.save(folder / file)
            epoch = int(str(predictor.facts["epoch"]))
            rules[rule] = score_held_out(
                predictor.scores(held_out), held_out, parts, self.molecules.kind, epoch, rate
            )
        result = TransferResult(
            trial={"data": data, "method": self.encoder.method, "way": "fine-tuned", "seed": seed},
            config={**self.config, "seed": seed},
            tasks=self.molecules.tasks,
            kind=self.molecules.kind,
            parts=self.parts,
            rules=rules,
            words=self._protocol(),
            seconds={"total": round(time.monotonic() - started, 1)},
            environment=environment(self.device),
        )
        # Stored predictions are those of other models from here on; they are rewritten after all seeds.
        self.predictions.unlink(missing_ok=True)
        result.save(stored)
        return result

    def _protocol(self) -> str:
        """A description of the protocol, to be printed beside the scores."""
        settings = self.settings
        split = str(self.config["transfer"]["split"])  # type: ignore[index]
        rates = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
        text = (
            f"Fine-tuned by Adam, learning rate {rates}"
            f"{' (chosen on validation)' if len(settings.learning_rates) > 1 else ''}, batch "
            f"{settings.batch_size}, dropout {settings.dropout:g}, {settings.epochs} epochs. "
            f"Split {split}, 80/10/10: {DESCRIPTIONS[split]}."
        )
        return text if self.fraction == 1 else f"{text} {self.fraction:.0%} of the training labels."

    def _train(self, seed: int, rate: float, path: Path) -> dict[str, float]:
        """Train one model; return the validation score of the model of each selection rule."""
        folder = RunFolder(path)
        rows = np.flatnonzero(self.parts == TRAIN)
        rows = select_labelled(self.molecules.labels, rows, self.molecules.kind, self.fraction, seed)
        if len(rows) < 2:
            raise DataError(
                f"{len(rows)} of the training molecules has a label", where=self.molecules.name,
                hint="label more of them, or raise --label-fraction",
            )  # fmt: skip
        training = self.molecules.collection.take(rows)
        method = self._new_method(seed)
        if self.molecules.kind == "regression":
            method.standardise(torch.from_numpy(self.molecules.labels[rows]))
        settings = self.settings.loop(rate, seed)
        with folder.lock():
            folder.save_config({**self.config, "seed": seed, "learning_rate": rate})
            best = BestModel(path / FILES["best"], self._save, every=self.settings.every)
            fabric = make_fabric(self.device, settings.precision)
            self.reporter.log(
                f"seed {seed}, learning rate {rate:g}: {len(training)} training molecules, "
                f"device {self.device}"
            )
            validation = ValidationMetrics(*held_out_set(self.molecules, self.parts))
            metrics = Trainer(
                method, training, settings, fabric, f"fine-tuning of {self.encoder.method}",
                folder.checkpoints, folder.metrics, self.reporter,
                [HealthMetrics(), validation, best, EarlyStopping(self.settings.patience)],
            ).run()  # fmt: skip
            last = metrics.rows[-1]
            facts = {"rule": "last", "epoch": int(last["epoch"]), "seed": seed}
            self._save(method.eval(), path / FILES["last"], facts)
        scores = {"last": last.get(SCORE, float("-inf"))}
        return scores if best.best is None else {**scores, "best": best.best[0]}

    def _new_method(self, seed: int) -> FineTuned:
        encoder = self.encoder.build(seed, self.settings.dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "head"))
            return FineTuned(encoder, tasks=len(self.molecules.tasks), kind=self.molecules.kind)

    def _save(self, method: FineTuned, path: Path, facts: Mapping[str, object]) -> None:
        encoder, dropout = replace(self.encoder, weights=None), self.settings.dropout
        Predictor(method, encoder, dropout, self.molecules.tasks, self.molecules.classes, facts).save(path)


@dataclass(frozen=True)
class FineTuneRun:
    """A finished fine-tuning: one result per seed, all on the same split."""

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
    split: SplitKind = "scaffold",
    split_seed: int = 0,
    label_fraction: float = 1.0,
    encoder: str = ENCODER,
    encoder_settings: Mapping[str, object] | None = None,
    device: str = "auto",
    source: str | None = None,
    reporter: Reporter | None = None,
) -> FineTuneRun:
    """Fine-tune an encoder once per seed. The same call again resumes after a stop.

    `weights` is a run folder, model file or model name with a trained encoder, or `"none"` for the named
    `encoder` with random initialisation. A seed decides the head, the order of molecules, dropout and,
    without weights, the encoder; it does not change the split, which has its own `split_seed`.

    The folder `out` holds the split, `predictions.csv` of the held-out molecules, and one folder per seed
    with the models of both selection rules, the metrics of each epoch and `result.json`.
    """
    settings = settings or FineTuneSettings()
    reporter = reporter or Reporter()
    own = molecules.collection.with_edge_features() if reads_edges(encoder) else molecules.collection
    spec = resolve_encoder(weights, own.features, encoder=encoder, settings=encoder_settings)
    molecules = replace(molecules, collection=molecules.collection.with_features(spec.features))
    chosen = pick_device(device)
    settings = replace(settings, precision=pick_precision(settings.precision, chosen))
    if (slow := precision_warning(settings.precision, chosen)) is not None:
        reporter.log(f"warning: {slow}")
    config = _config(molecules, spec, settings, split, split_seed, label_fraction)
    config |= {"seeds": len(seeds), "device": chosen, "source": {"data": source, "weights": str(weights)}}
    folder = RunFolder(out)
    with folder.lock(trains=False):
        folder.save_config(config)
        folder.record_environment(environment(chosen))
        if molecules.rejected:
            write_rejected(folder.path / "rejected.csv", molecules.rejected)
        parts = _stored_split(folder.path / "split.csv", molecules, split, split_seed)
        balance = label_balance(molecules.labels, molecules.tasks, parts, molecules.kind)
        write_balance(folder.path / "balance.csv", balance)
        warnings = label_warnings(balance)
        for warning in warnings:
            reporter.log(f"note: {warning}")
        tuner = _FineTuner(
            molecules, parts, spec, settings, label_fraction, chosen, reporter, config, folder.path
        )
        results = tuple(tuner.run(seed) for seed in seeds)
        if not tuner.predictions.exists():
            files = [model_file(tuner.seed_folder(seed)) for seed in seeds]
            write_predictions(tuner.predictions, molecules, parts, files, chosen)
    return FineTuneRun(folder, results, tuple(balance), tuple(warnings))


def _config(
    molecules: MoleculeDataset,
    encoder: EncoderSpec,
    settings: FineTuneSettings,
    split: SplitKind,
    split_seed: int,
    fraction: float,
) -> dict[str, object]:
    """Everything that decides the outcome; a folder can only be resumed with the same configuration."""
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
        "method": encoder.method,
        "weights": dict(encoder.facts),
        "encoder": encoder.encoder,
        "encoder_settings": encoder.settings_with(settings.dropout),
        "training": {key: value for key, value in tuning.items() if key != "epochs"},
        "epochs": settings.epochs,
    }


def _stored_split(path: Path, molecules: MoleculeDataset, how: SplitKind, seed: int) -> Parts:
    """Read the folder's split, or make it; reading it makes a resumed run independent of RDKit's version."""
    if path.exists():
        return read_split(path, molecules.rows)
    parts = split_molecules(molecules.smiles, how, seed)
    write_split(path, molecules.rows, parts)
    return parts
