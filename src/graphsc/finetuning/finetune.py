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
from graphsc.data.batch import GraphBatch
from graphsc.data.molecules.rejected import write_rejected
from graphsc.encoders import reads_edges
from graphsc.finetuning.callbacks import SCORE, BestModel, ValidationMetrics
from graphsc.finetuning.dataset import (
    Balance,
    MoleculeDataset,
    label_balance,
    label_warnings,
    select_labelled,
    write_balance,
)
from graphsc.finetuning.delivered import (
    BASELINES,
    PREDICTIONS,
    Assessment,
    assess,
    read_held_out,
    write_baselines,
    write_predictions,
)
from graphsc.finetuning.model import (
    ENCODER,
    NONE,
    EncoderSpec,
    FineTuned,
    Predictor,
    load_predictor,
    resolve_encoder,
)
from graphsc.finetuning.result import (
    TransferResult,
    held_out_set,
    load_transfer,
    score_held_out,
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
from graphsc.training.callbacks import EarlyStopping, HealthMetrics, PlainReporter, Reporter, RunOf, duration
from graphsc.training.distributed import (
    Precision,
    make_fabric,
    pick_device,
    pick_precision,
    precision_warning,
)
from graphsc.training.loggers import make_loggers
from graphsc.training.model_files import FILES, model_file
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
    log: Sequence[str] = ()

    def seed_folder(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}"

    def run(self, seed: int, number: int, total: int) -> TransferResult:
        """One of several repetitions: train with every learning rate, score the models of both rules.

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
        trained = {}
        for place, rate in enumerate(rates):
            self.reporter.run_of = RunOf(
                (number - 1) * len(rates) + place + 1, total * len(rates),
                "seed" if len(rates) == 1 else "training", self.settings.patience is not None,
            )  # fmt: skip
            trained[rate] = self._train(seed, rate, folders[rate])
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
        for name in (PREDICTIONS, BASELINES):
            (self.folder / name).unlink(missing_ok=True)
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
            f"{settings.batch_size}, dropout {settings.dropout:g}, "
            f"{self._length()}. "
            f"Split {split}, 80/10/10: {DESCRIPTIONS[split]}."
        )
        return text if self.fraction == 1 else f"{text} {self.fraction:.0%} of the training labels."

    def _length(self) -> str:
        if self.settings.patience is None:
            return f"{self.settings.epochs} epochs"
        return (
            f"at most {self.settings.epochs} epochs, stopped after {self.settings.patience} without a better "
            "validation score"
        )

    def seconds_per_epoch(self) -> float:
        """An estimate from three steps of a model that is thrown away."""
        rows = np.flatnonzero(self.parts == TRAIN)
        rows = select_labelled(self.molecules.labels, rows, self.molecules.kind, self.fraction, 0)
        if len(rows) < 2:
            return 0.0
        sample = rows[np.linspace(0, len(rows) - 1, min(self.settings.batch_size, len(rows))).astype(int)]
        with torch.random.fork_rng(devices=[]):
            method = self._new_method(0).to(self.device).train()
            batch = GraphBatch.gather(self.molecules.collection, sample).to(self.device)
            times = []
            for _ in range(3):
                started = time.monotonic()
                encoded = method.encode({"anchor": batch})
                loss = torch.stack(list(method.objective(encoded).values())).sum()
                torch.autograd.backward(loss)
                times.append(time.monotonic() - started)
        # Validation and test molecules take a forward pass only, about a third of a step.
        others = int((self.parts != TRAIN).sum())
        return min(times) / len(sample) * (len(rows) + others / 3)

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
                [
                    HealthMetrics(), validation, best, EarlyStopping(self.settings.patience, SCORE, "max"),
                    *make_loggers(self.log, path),
                ],
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
        molecules = self.molecules
        Predictor(method, encoder, dropout, molecules.tasks, molecules.classes, facts, molecules.groups).save(
            path
        )


@dataclass(frozen=True)
class FineTuneRun:
    """A finished fine-tuning: one result per seed, all on the same split."""

    folder: RunFolder
    results: tuple[TransferResult, ...]
    balance: tuple[Balance, ...]
    warnings: tuple[str, ...]
    assessment: Assessment | None  # of the mean over the seeds, which predictions are; None without any


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
    baselines: bool = False,
    log: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> FineTuneRun:
    """Fine-tune an encoder once per seed. The same call again resumes after a stop.

    `weights` is a run folder, model file or model name with a trained encoder, or `"none"` for the named
    `encoder` with random initialisation. A seed decides the head, the order of molecules, dropout and,
    without weights, the encoder; it does not change the split, which has its own `split_seed`.

    The folder `out` holds the split, `predictions.csv` of the held-out molecules, and one folder per seed
    with the models of both selection rules, the metrics of each epoch and `result.json`. With `baselines`,
    simple models are fitted on the same split, and `baselines.csv` has their predictions. `log` names loggers
    (see `make_loggers`), each of which logs every training as a run of its own.
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
    # Only these may differ when a run is resumed.
    config |= {
        "seeds": len(seeds),
        "device": chosen,
        "source": {
            "data": source, **molecules.reading, "weights": str(weights),
            "rows": len(molecules.rows) + len(molecules.rejected), "notes": list(molecules.collection.notes),
        },
    }  # fmt: skip
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
            molecules, parts, spec, settings, label_fraction, chosen, reporter, config, folder.path, log
        )
        _announce(tuner, seeds)
        results = tuple(tuner.run(seed, number, len(seeds)) for number, seed in enumerate(seeds, start=1))
        if not (folder.path / PREDICTIONS).exists():
            files = [model_file(tuner.seed_folder(seed)) for seed in seeds]
            write_predictions(folder.path / PREDICTIONS, molecules, parts, files, chosen)
        if baselines and not (folder.path / BASELINES).exists():
            with reporter.counting("simple models for comparison", "models") as progress:
                write_baselines(folder.path / BASELINES, molecules, parts, label_fraction, seeds, progress)
        held_out = read_held_out(folder.path, molecules.tasks, molecules.kind) if baselines else None
    assessment = None
    if held_out is not None:
        assessment = assess(held_out, molecules.tasks, molecules.kind, molecules.groups)
    return FineTuneRun(folder, results, tuple(balance), tuple(warnings), assessment)


def _announce(tuner: _FineTuner, seeds: Sequence[int]) -> None:
    """Say how long the missing seeds will take, where there is someone to read it."""
    missing = [seed for seed in seeds if not (tuner.seed_folder(seed) / "result.json").exists()]
    if not missing or not isinstance(tuner.reporter, PlainReporter):
        return
    seconds = tuner.seconds_per_epoch()
    settings = tuner.settings
    total = seconds * settings.epochs * len(missing) * len(settings.learning_rates)
    at_most = "" if settings.patience is None else "at most "
    rates = f" x {len(settings.learning_rates)} learning rates" if len(settings.learning_rates) > 1 else ""
    tuner.reporter.log(
        f"{len(missing)} seed{'s' if len(missing) > 1 else ''}{rates} of {at_most}{settings.epochs} epochs, "
        f"about {seconds:.2g} seconds per epoch: {at_most}{duration(total)}"
    )


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
