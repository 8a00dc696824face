"""Runs a `TransferTrial`: fine-tune or probe pre-trained weights, or fit fingerprints."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.files import file_lock, write_atomic
from graphsc.core.run_folder import ADDED_SETTINGS, RunFolder
from graphsc.core.tables import Table
from graphsc.data.datasets.catalog import NAMED
from graphsc.experiments.result import ResultStore
from graphsc.experiments.trial import MODEL, TransferTrial, check_graphs, key_of
from graphsc.finetuning.baselines import baseline
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.finetune import delivered_result, finetune
from graphsc.finetuning.model import NONE
from graphsc.finetuning.result import TransferResult
from graphsc.finetuning.splits import Parts, split_molecules
from graphsc.training.callbacks import Reporter, duration
from graphsc.training.model_files import find_model
from graphsc.training.model_io import JSON_NAME, Card, read_card
from graphsc.training.pretrain import pretrain

CARDS = "weights"  # folder of model cards beside the results


@dataclass(frozen=True)
class PretrainedWeights:
    """Pre-trained weights in one sub-folder per method; those that are missing are pre-trained on demand.

    Args:
        folder: Parent of the pre-training runs.
        results: Folder of results, beside which the model cards are kept.
        make: Whether missing weights are pre-trained; otherwise they are an error.
    """

    folder: Path
    results: Path
    make: bool = True

    def of(self, trial: TransferTrial, reporter: Reporter | None = None) -> Path:
        """The run folder of the weights that a trial starts from.

        Raises:
            ConfigError: Where the weights there were pre-trained otherwise.
            InUseError: While another process pre-trains them.
        """
        method = trial.method
        if MODEL in trial.pretraining:
            return find_model(str(trial.pretraining[MODEL]))
        path = self.folder / method
        if self.make and not RunFolder(path).model.exists():
            facts = dict(trial.pretraining)
            data = str(facts.pop("data", "moses"))
            pretrain(data, method, out=path, reporter=reporter or Reporter(), **facts)  # type: ignore[arg-type]
        if not RunFolder(path).model.exists():
            raise NotFoundError(
                f"there are no weights of {method}", where=str(path),
                hint=f"pre-train it into {path}, with --encoder molecule-gin",
            )  # fmt: skip
        check_weights(path, trial)
        CardStore(self.results).keep(trial, path)
        return path


def run_transfer(
    trial: TransferTrial,
    *,
    runs: str | Path,
    weights: PretrainedWeights,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    device: str = "auto",
) -> TransferResult:
    """Run a trial, or resume it. Its run folder is removed when the trial has ended.

    Raises:
        InUseError: While another process runs the same trial or pre-trains its weights.
    """
    folder = Path(runs) / trial.run_name()
    reporter = reporter or Reporter()
    with file_lock(folder / ".trial"):
        result = None if store is None else store.get(trial)  # another process may have been quicker
        if result is None:
            data_hash = trial.data_hash
            source = weights.of(trial, reporter) if trial.needs_weights else NONE
            result = _run(trial, source, folder, device, reporter)
            check_graphs(trial.data, trial.data_hash, data_hash)  # a file may be replaced meanwhile
            if store is not None:
                result = store.put(trial, result)
    shutil.rmtree(folder, ignore_errors=True)
    return result


def _run(
    trial: TransferTrial, weights: str | Path, folder: Path, device: str, reporter: Reporter
) -> TransferResult:
    molecules, parts = shared_molecules(trial.data, trial.split)
    if trial.way == "fine-tuned":
        run = finetune(
            molecules, weights, out=folder / "run", settings=trial.tuning(), seeds=[trial.seed],
            split=trial.split, device=device, source=trial.data, reporter=reporter,
        )  # fmt: skip
        return run.results[0]
    if trial.way == "ensemble":
        run = finetune(
            molecules, weights, out=folder / "run", settings=trial.tuning(), seeds=trial.member_seeds,
            split=trial.split, device=device, source=trial.data, reporter=reporter, model="ensemble",
        )  # fmt: skip
        return delivered_result(run, molecules)
    return baseline(molecules, trial.way, weights, seed=trial.seed, split=trial.split, parts=parts)


@lru_cache(maxsize=1)
def shared_molecules(data: str, split: str) -> tuple[MoleculeDataset, Parts]:
    """Read and split once for all trials of a data set."""
    molecules = read_dataset(data)
    return molecules, split_molecules(molecules.smiles, split)  # type: ignore[arg-type]


class CardStore:
    """Model cards under `weights` beside the results: one per method and way of pre-training."""

    def __init__(self, results: str | Path) -> None:
        self.folder = Path(results) / CARDS

    def path(self, trial: TransferTrial) -> Path:
        """The card of the weights that a trial starts from."""
        return self.folder / f"{trial.method}-{key_of({'weights': trial.weights()})}.json"

    def keep(self, trial: TransferTrial, run: Path) -> None:
        """Copy the card of a pre-training, where it has one."""
        if (run / JSON_NAME).exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.path(trial), (run / JSON_NAME).read_text())

    def get(self, trial: TransferTrial) -> Card | None:
        """The card of a trial's weights, if there is one."""
        path = self.path(trial)
        return read_card(path) if path.exists() else None


def check_weights(run: Path, trial: TransferTrial) -> None:
    """Refuse weights that were made otherwise than a trial says; what has no card is taken as it is."""
    if not (run / JSON_NAME).exists():
        return
    card = read_card(run / JSON_NAME)
    weights = trial.weights()
    settings, training = (cast("dict[str, object]", weights[part]) for part in ("settings", "training"))
    # A card has the settings for its molecules, and a trial those that do not depend on them.
    asked = {name: value for name, value in settings.items() if value != ["auto"]}
    asked |= {**training, "method": trial.method, "encoder": weights["encoder"]}
    asked |= {name: weights[name] for name in ("molecules",) if name in weights}
    data = str(weights.get("data", "")).lower()
    if data in NAMED:
        asked["data"] = data
    made = {
        **ADDED_SETTINGS, **card.settings, **card.training,
        **{f"encoder.{name}": value for name, value in card.encoder_settings.items()},
        "method": card.method, "encoder": card.encoder, "epochs": card.epochs, "molecules": card.graphs,
        "data": card.data.lower(),
    }  # fmt: skip
    for name, value in asked.items():
        if made.get(name) != value:
            raise ConfigError(
                f"these weights of {card.method} were made with {name} {made.get(name)}, not {value}",
                where=str(run), hint="move the folder away, and they are made anew",
            )  # fmt: skip


def cards_table(trials: Sequence[TransferTrial], store: CardStore) -> Table | None:
    """What weights were pre-trained with, and how well each method solves its own task: a row per trial."""
    cards = {trial.method: card for trial in trials if (card := store.get(trial)) is not None}
    if not cards:
        return None
    rows = [
        (
            method, f"{card.seen:,}", f"{card.steps:,}", f"{card.passes_per_step:.3g}",
            duration(card.seconds), card.pretext or "", *map(_score, (card.chance, card.before, card.after)),
        )
        for method, card in cards.items()
    ]  # fmt: skip
    missing = len(trials) - len(cards)
    rest = f" {missing} of {len(trials)} methods have not been pre-trained yet." if missing else ""
    note = (
        "All have seen the same molecules equally often, in batches as published; steps, and passes through "
        "an encoder, which methods differ by, are counted. Times are of one busy core and say little."
    )
    columns = (
        "method", "molecules seen", "steps", "passes a step", "time", "its task, on unseen molecules",
        "chance", "before", "after",
    )  # fmt: skip
    return Table(columns, tuple(rows), notes=(note + rest,), align="lrrrrlrrr")


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
