"""From labelled molecules and an encoder to a model of them, in a folder that can be gone on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphsc import __version__
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.rejects import write_rejected
from graphsc.training.device import pick_device
from graphsc.training.reporter import Reporter
from graphsc.training.run import environment
from graphsc.transfer.balance import Balance, balance_of, warnings_of, write_balance
from graphsc.transfer.held import write_predictions
from graphsc.transfer.labelled import Labelled
from graphsc.transfer.predictor import model_file
from graphsc.transfer.result import TransferResult
from graphsc.transfer.seed import SeedJob
from graphsc.transfer.settings import FineTuneSettings
from graphsc.transfer.split import How, Parts, read_split, split_molecules, write_split
from graphsc.transfer.start import ENCODER, NONE, Start, start_from


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
    with folder.owned(trains=False):
        folder.settle(config)
        folder.note_environment(environment(chosen))
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
    molecules: Labelled,
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


def _settled_split(path: Path, molecules: Labelled, how: How, seed: int) -> Parts:
    """The split the folder already has, else a new one: another RDKit must not move a run's molecules."""
    if path.exists():
        return read_split(path, molecules.rows)
    parts = split_molecules(molecules.smiles, how, seed)
    write_split(path, molecules.rows, parts)
    return parts
