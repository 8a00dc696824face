"""Fine-tune an encoder on labelled molecules, once per seed, in a run folder that can be resumed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from graphsc import __version__
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import write_atomic
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rejected import write_rejected
from graphsc.encoders import reads_edges
from graphsc.evaluation.metrics import tasks_of
from graphsc.finetuning.baselines import BOOSTING
from graphsc.finetuning.callbacks import (
    SCORE,
    VALIDATION_SCORES,
    BestModel,
    CrossFittedScores,
    ValidationMetrics,
    load_validation_scores,
)
from graphsc.finetuning.classical import ClassWeight, trees_per_task
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
    PART_SCORES,
    PREDICTIONS,
    Assessment,
    assess,
    read_held_out,
    write_baselines,
    write_parts,
    write_predictions,
)
from graphsc.finetuning.ensemble import (
    ENSEMBLE,
    PART_TITLES,
    PARTS,
    Ensemble,
    ModelName,
    Part,
    fit_ensemble,
    load_ensemble,
    parts_of,
)
from graphsc.finetuning.features import BLOCKS, Block, MoleculeFeatures, RawFeatures
from graphsc.finetuning.model import (
    ENCODER,
    NONE,
    EncoderSpec,
    FineTuned,
    Predictor,
    load_predictor,
    resolve_encoder,
    with_extra,
)
from graphsc.finetuning.property_model import DOMAIN, Domain, load_property_model
from graphsc.finetuning.result import (
    HeldOutScores,
    TransferResult,
    held_out_set,
    load_transfer,
    score_held_out,
)
from graphsc.finetuning.splits import (
    DESCRIPTIONS,
    NAMES,
    TEST,
    TRAIN,
    VALID,
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
    features: tuple[Block, ...] = ()  # what the head sees beside the encoder: ecfp, rdkit
    class_weight: ClassWeight = "none"  # balanced: both classes of a task count as much as each other

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if not set(self.features) <= set(BLOCKS):
            raise ConfigError(f"features are {' and '.join(BLOCKS)}, not {', '.join(self.features)}")
        if self.class_weight not in ("none", "balanced"):
            raise ConfigError(f"class_weight is none or balanced, not {self.class_weight!r}")
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
        values = {
            **asdict(self),
            "learning_rates": list(self.learning_rates),
            "features": list(self.features),
        }
        # Settings that were added later are left out at the value that stands for what was done before.
        later = {"features": [], "class_weight": "none"}
        return {name: value for name, value in values.items() if name not in later or value != later[name]}


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
    raw: RawFeatures | None = None  # of all molecules, where the head sees them
    features: MoleculeFeatures = field(default_factory=lambda: MoleculeFeatures(()))

    @cached_property
    def tuned(self) -> GraphCollection:
        """The molecules with the features that the head sees behind their labels."""
        rows = None if self.raw is None else self.features.rows(self.raw)
        return with_extra(self.molecules.collection, rows, len(self.molecules.tasks))

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
                if rule == "best":
                    write_atomic(folder / VALIDATION_SCORES, (folders[rate] / VALIDATION_SCORES).read_bytes())
            epoch = int(str(predictor.facts["epoch"]))
            raw = None if self.raw is None else self.raw.take(self.parts != TRAIN)
            rules[rule] = score_held_out(
                predictor.scores(held_out, raw=raw), held_out, parts, self.molecules.kind, epoch, rate
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
        for name in (PREDICTIONS, BASELINES, PART_SCORES, ENSEMBLE):
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
            f"{self._length()}{self._head()}. "
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

    def _head(self) -> str:
        seen = {"ecfp": "fingerprints", "rdkit": "RDKit's descriptors"}
        text = " and ".join(seen[block] for block in self.settings.features)
        text = f"; the head also sees {text}" if text else ""
        return text + ("; classes weighted equally" if self.settings.class_weight == "balanced" else "")

    def seconds_per_epoch(self) -> float:
        """An estimate from three steps of a model that is thrown away."""
        rows = np.flatnonzero(self.parts == TRAIN)
        rows = select_labelled(self.molecules.labels, rows, self.molecules.kind, self.fraction, 0)
        if len(rows) < 2:
            return 0.0
        sample = rows[np.linspace(0, len(rows) - 1, min(self.settings.batch_size, len(rows))).astype(int)]
        with torch.random.fork_rng(devices=[]):
            method = self._new_method(0).to(self.device).train()
            batch = GraphBatch.gather(self.tuned, sample).to(self.device)
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
        training = self.tuned.take(rows)
        method = self._new_method(seed)
        if self.settings.class_weight == "balanced" and self.molecules.kind == "classification":
            method.balance_classes(torch.from_numpy(self.molecules.labels[rows]))
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
            others = np.flatnonzero(self.parts != TRAIN)
            validation = ValidationMetrics(replace(self.tuned.take(others), rejected=()), self.parts[others])
            every = self.settings.every
            unchosen = CrossFittedScores(validation, path / VALIDATION_SCORES, seed=seed, every=every)
            metrics = Trainer(
                method, training, settings, fabric, f"fine-tuning of {self.encoder.method}",
                folder.checkpoints, folder.metrics, self.reporter,
                [
                    HealthMetrics(), validation, best, unchosen,
                    EarlyStopping(self.settings.patience, SCORE, "max"), *make_loggers(self.log, path),
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
            return FineTuned(
                encoder, tasks=len(self.molecules.tasks), kind=self.molecules.kind, extra=self.features.width,
                dropout=self.settings.dropout,
            )  # fmt: skip

    def _save(self, method: FineTuned, path: Path, facts: Mapping[str, object]) -> None:
        encoder, dropout = replace(self.encoder, weights=None), self.settings.dropout
        molecules = self.molecules
        Predictor(
            method, encoder, dropout, molecules.tasks, molecules.classes, facts, molecules.groups,
            self.features,
        ).save(path)  # fmt: skip


@dataclass(frozen=True)
class FineTuneRun:
    """A finished fine-tuning: one result per seed, all on the same split."""

    folder: RunFolder
    results: tuple[TransferResult, ...]
    balance: tuple[Balance, ...]
    warnings: tuple[str, ...]
    assessment: Assessment | None  # of the mean over the seeds, which predictions are; None without any
    seconds: float = 0.0  # of this call


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
    model: ModelName | None = None,
    jobs: int | None = None,
    log: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> FineTuneRun:
    """Fine-tune an encoder once per seed. The same call again resumes after a stop.

    `model` is what predictions are made with. None: the mean over the fine-tuned seeds, as papers do.
    `"ensemble"`: also linear models, a forest and gradient boosting on fingerprints, descriptors and frozen
    vectors, weighted and calibrated on validation (see `Ensemble`); or one of its parts. A model without
    the part `"encoder"` trains no encoder, so there is no result per seed. `jobs` are the threads of its
    classical parts, by default one per core.

    `weights` is a run folder, model file or model name with a trained encoder, or `"none"` for the named
    `encoder` with random initialisation. A seed decides the head, the order of molecules, dropout and,
    without weights, the encoder; it does not change the split, which has its own `split_seed`.

    The folder `out` holds the split, `predictions.csv` of the held-out molecules, and one folder per seed
    with the models of both selection rules, the metrics of each epoch and `result.json`. With `baselines`,
    simple models are fitted on the same split, and `baselines.csv` has their predictions. `log` names loggers
    (see `make_loggers`), each of which logs every training as a run of its own.
    """
    started = time.monotonic()
    settings = settings or FineTuneSettings()
    reporter = reporter or Reporter()
    own = molecules.collection.with_edge_features() if reads_edges(encoder) else molecules.collection
    spec = resolve_encoder(weights, own.features, encoder=encoder, settings=encoder_settings)
    molecules = replace(molecules, collection=molecules.collection.with_features(spec.features))
    chosen = pick_device(device)
    settings = replace(settings, precision=pick_precision(settings.precision, chosen))
    if (slow := precision_warning(settings.precision, chosen)) is not None:
        reporter.log(f"warning: {slow}")
    if model == "vectors" and spec.weights is None:
        raise ConfigError(
            "there are no pre-trained vectors to fit", hint="give trained weights instead of none"
        )
    config = _config(molecules, spec, settings, split, split_seed, label_fraction)
    # Only these may differ when a run is resumed.
    config |= {
        "seeds": len(seeds),
        "device": chosen,
        "source": {
            "data": source, **molecules.reading, "weights": str(weights),
            "rows": len(molecules.rows) + len(molecules.rejected), "notes": list(molecules.collection.notes),
            **({} if model is None else {"model": model}),
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
        used = () if model is None else parts_of(model, weights)
        trained = seeds if model is None or "encoder" in used else ()
        blocks = BLOCKS if any(part != "encoder" for part in used) else settings.features if trained else ()
        raw = None
        if blocks:
            reporter.log(f"computing {' and '.join(_BLOCK_TITLES[block] for block in blocks)}")
            raw = RawFeatures.of(molecules.smiles, blocks)
        seen = MoleculeFeatures(())
        if settings.features and raw is not None:
            seen = MoleculeFeatures.fit(settings.features, raw, parts == TRAIN)
        tuner = _FineTuner(
            molecules, parts, spec, settings, label_fraction, chosen, reporter, config, folder.path, log,
            raw if seen.blocks else None, seen,
        )  # fmt: skip
        _announce(tuner, trained)
        results = tuple(tuner.run(seed, number, len(trained)) for number, seed in enumerate(trained, start=1))
        ensemble = None
        if model is not None:
            ensemble = _stored_ensemble(folder.path, model)
            if ensemble is None:
                ensemble = _deliver(tuner, model, used, trained, raw, jobs)
        if not (folder.path / PREDICTIONS).exists():
            write_predictions(
                folder.path / PREDICTIONS, molecules, parts, load_property_model(folder.path, device=chosen),
                raw,
            )  # fmt: skip
        if baselines and not (folder.path / BASELINES).exists():
            with reporter.counting("simple models for comparison", "models") as progress:
                write_baselines(
                    folder.path / BASELINES, molecules, parts, label_fraction, seeds, progress, raw
                )
        held_out = None
        if baselines or model is not None:
            held_out = read_held_out(folder.path, molecules.tasks, molecules.kind)
    assessment = None
    if held_out is not None:
        assessment = assess(held_out, molecules.tasks, molecules.kind, molecules.groups, ensemble)
    return FineTuneRun(
        folder, results, tuple(balance), tuple(warnings), assessment, time.monotonic() - started
    )


def delivered_result(run: FineTuneRun, molecules: MoleculeDataset) -> TransferResult:
    """What a run delivers, as one result: the rule `fit` is the ensemble, each other rule one of its parts.

    `run` was made with `model="ensemble"` from these molecules.
    """
    folder = run.folder.path
    held_out = read_held_out(folder, molecules.tasks, molecules.kind)
    ensemble = load_ensemble(folder / ENSEMBLE)
    if held_out is None or run.assessment is None:
        raise DataError("there are no molecules to score the ensemble on", where=molecules.name)
    values = {"fit": held_out.predicted} | {name: held_out.parts_scores[name] for name in ensemble.weights}
    rules = {}
    for name, predicted in values.items():
        scores = predicted
        if molecules.kind == "classification":  # log-odds keep the order of rare positives in 16 bits
            scores = np.log(np.maximum(predicted, 1e-12) / np.maximum(1 - predicted, 1e-12))
        test, valid = (
            tasks_of(held_out.labels[rows], scores[rows])
            for rows in (held_out.of(NAMES[TEST]), held_out.of(NAMES[VALID]))
        )
        rules[name] = HeldOutScores.of(test, valid, molecules.kind)
    first, calibration = run.results[0], run.assessment.calibration
    facts = {"weights": {name: round(weight, 4) for name, weight in ensemble.weights.items()}}
    if calibration is not None:
        facts["calibration_error"] = {
            "before": round(calibration.before, 4), "after": round(calibration.after, 4)
        }  # fmt: skip
    seeds = len(run.results)
    return TransferResult(
        trial={**first.trial, "way": "ensemble"},
        config={**first.config, "ensemble": facts},
        tasks=molecules.tasks,
        kind=molecules.kind,
        parts=first.parts,
        rules=rules,
        words=f"{first.words} {_ensemble_words(ensemble, seeds)}",
        seconds={"total": round(run.seconds, 1)},
        environment=first.environment,
    )


def _ensemble_words(ensemble: Ensemble, seeds: int) -> str:
    """What an ensemble is made of, for the protocol of its result."""
    titles = [PART_TITLES[name] for name in PARTS if name in ensemble.weights]
    left = [PART_TITLES[name] for name in PARTS if name not in ensemble.weights]
    trees = trees_per_task(len(ensemble.tasks))
    text = (
        f"The ensemble has {len(titles)} parts: {', '.join(titles)}; the encoder is the mean of {seeds} "
        f"seed{'s' if seeds > 1 else ''} after their best epochs on validation, a forest has {trees} trees "
        f"per task, boosting {BOOSTING['max_iter']}. Weights are chosen on validation, for all tasks alike."
    )
    return f"{text} Left out: {', '.join(left)}." if left else text


_BLOCK_TITLES = {"ecfp": "fingerprints", "rdkit": "descriptors"}


def _stored_ensemble(folder: Path, model: ModelName) -> Ensemble | None:
    """The ensemble of a finished run, if it is the one that is asked for; otherwise its files are removed."""
    if (folder / ENSEMBLE).exists() and (folder / DOMAIN).exists():
        stored = load_ensemble(folder / ENSEMBLE)
        if stored.model == model:
            return stored
    for name in (ENSEMBLE, PART_SCORES, PREDICTIONS):
        (folder / name).unlink(missing_ok=True)
    return None


def _deliver(
    tuner: _FineTuner,
    model: ModelName,
    used: Sequence[Part],
    seeds: Sequence[int],
    raw: RawFeatures | None,
    jobs: int | None,
) -> Ensemble:
    """Fit and store what predictions are made with, and the domain of its training molecules."""
    molecules, parts, folder = tuner.molecules, tuner.parts, tuner.folder
    predictors = [load_predictor(model_file(tuner.seed_folder(seed)), tuner.device) for seed in seeds]
    train = np.zeros(len(parts), dtype=bool)
    candidates = np.flatnonzero(parts == TRAIN)
    train[select_labelled(molecules.labels, candidates, molecules.kind, tuner.fraction, 0)] = True
    if not train.any():
        raise DataError(
            "none of the training molecules has a label", where=molecules.name, hint="label some of them"
        )
    known = candidates[~np.isnan(molecules.labels[candidates]).all(axis=1)]
    smiles = [molecules.smiles[row] for row in known.tolist()]
    names = smiles if molecules.ids is None else [str(molecules.ids[row]) for row in known.tolist()]
    Domain.of(names, smiles).save(folder / DOMAIN)
    unchosen = [load_validation_scores(tuner.seed_folder(seed) / VALIDATION_SCORES) for seed in seeds]
    with tuner.reporter.counting("parts of the ensemble", "tasks") as progress:
        ensemble, scores = fit_ensemble(
            molecules, model, used, tuner.encoder, train, parts == VALID, predictors, unchosen=unchosen,
            class_weight=tuner.settings.class_weight, jobs=jobs, raw=raw, progress=progress,
        )  # fmt: skip
    write_parts(folder / PART_SCORES, molecules, parts, ensemble, scores)
    (folder / PREDICTIONS).unlink(missing_ok=True)
    ensemble.save(folder / ENSEMBLE)
    return ensemble


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
            "content_hash": molecules.content_hash,
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
