"""Transfer trials run one after the other: what is stored is skipped, what cannot run is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from graphsc.core.errors import GraphscError, NotFoundError
from graphsc.core.files import InUseError, StoppedError, file_lock, remove_stray_files
from graphsc.core.run_folder import RunFolder
from graphsc.experiments.single import one_thread
from graphsc.experiments.transfer_plan import TransferTrial
from graphsc.finetuning.baselines import baseline
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.finetune import finetune
from graphsc.finetuning.model import NONE
from graphsc.finetuning.result import TransferResult, load_transfer
from graphsc.finetuning.splits import Parts, split_molecules
from graphsc.training.callbacks import Reporter

Weights = Callable[[str], str | Path]  # from a pre-training method to its run folder or model file


class TransferStore:
    """One JSON file a trial, under `transfer` and the name of its data set."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder) / "transfer"

    def path(self, trial: TransferTrial) -> Path:
        """Where the trial's result is, or would be."""
        return self.folder / trial.data_name / f"{trial.method}-{trial.way}-{trial.seed}-{trial.key()}.json"

    def get(self, trial: TransferTrial) -> TransferResult | None:
        """The stored result, if there is one."""
        path = self.path(trial)
        return load_transfer(path) if path.exists() else None

    def put(self, trial: TransferTrial, result: TransferResult) -> TransferResult:
        """Keep a result under the identity of its trial; gives it as it is kept."""
        path = self.path(trial)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stray_files(path.parent)
        # Where it lay on the machine that ran it is nobody's business, and no part of the result.
        config = {key: value for key, value in result.config.items() if key != "source"}
        kept = replace(result, trial=trial.identity(), config=config)
        kept.save(path)
        return kept


def weights_in(folder: str | Path, pretrain: Callable[[str, Path], object] | None = None) -> Weights:
    """Weights of a method in a sub-folder of its name, as pre-training leaves them.

    Where there are none, `pretrain(method, sub-folder)` is asked to make them.
    """

    def find(method: str) -> Path:
        path = Path(folder) / method
        if pretrain is not None and not RunFolder(path).model.exists():
            pretrain(method, path)
        if not RunFolder(path).model.exists():
            raise NotFoundError(
                f"there are no weights of {method}", where=str(path),
                hint=f"pre-train it into {path}, with --encoder molecule-gin",
            )  # fmt: skip
        return path

    return find


@dataclass(frozen=True)
class TransferOutcome:
    """How one trial ended: with a result, an error, or in other hands."""

    trial: TransferTrial
    result: TransferResult | None = None
    error: str | None = None


def run_transfer(
    trials: Sequence[TransferTrial],
    store: TransferStore,
    runs: str | Path,
    weights: Weights,
    *,
    device: str = "auto",
    reporter: Reporter | None = None,
) -> list[TransferOutcome]:
    """Run what the store has not, one thread a trial; several processes can work through one plan.

    A trial that was stopped goes on where it stopped. Its run folder goes when its result is stored.
    """
    reporter = reporter or Reporter()
    by_key = {trial.key(): trial for trial in trials}
    missing = [trial for trial in by_key.values() if not store.path(trial).exists()]
    reporter.say(f"{len(by_key)} trials: {len(by_key) - len(missing)} stored, {len(missing)} to run")
    outcomes = []
    for number, trial in enumerate(missing, start=1):
        what = f"{trial.method}, {trial.way}, on {trial.data_name}, seed {trial.seed}"
        outcome = _run(trial, store, Path(runs) / "transfer", weights, device, reporter)
        outcomes.append(outcome)
        if outcome.result is not None:
            found = outcome.result
            rules = ", ".join(f"{rule} {100 * found.score(rule):.2f}" for rule in found.rules)
            reporter.say(f"[{number}/{len(missing)}] {what}: {rules}")
        else:
            reporter.say(f"[{number}/{len(missing)}] {what}: {outcome.error or 'another process is at it'}")
    return outcomes


def _run(
    trial: TransferTrial, store: TransferStore, runs: Path, weights: Weights, device: str, reporter: Reporter
) -> TransferOutcome:
    try:
        with one_thread():
            found = run_one(trial, store, runs, weights, device=device, reporter=reporter)
    except InUseError:
        return TransferOutcome(trial)
    except StoppedError:
        raise
    except GraphscError as error:
        return TransferOutcome(trial, error=str(error))
    return TransferOutcome(trial, found)


def run_one(
    trial: TransferTrial,
    store: TransferStore,
    runs: Path,
    weights: Weights,
    *,
    device: str = "auto",
    reporter: Reporter | None = None,
) -> TransferResult:
    """The stored result, made first where there is none; its run folder goes when it is stored."""
    place = runs / trial.data_name / f"{trial.method}-{trial.way}-{trial.seed}-{trial.key()}"
    with file_lock(place / ".trial"):
        kept = store.get(trial)  # another process may have been quicker
        if kept is None:
            source = weights(trial.method) if trial.needs_weights else NONE
            kept = store.put(trial, _result(trial, source, place, device, reporter or Reporter()))
    shutil.rmtree(place, ignore_errors=True)
    return kept


def _result(
    trial: TransferTrial, weights: str | Path, place: Path, device: str, reporter: Reporter
) -> TransferResult:
    molecules, parts = shared_molecules(trial.data, trial.split)
    if trial.way == "fine-tuned":
        run = finetune(
            molecules, weights, out=place / "run", settings=trial.tuning(), seeds=[trial.seed],
            split=trial.split, device=device, source=trial.data, reporter=reporter,
        )  # fmt: skip
        return run.results[0]
    return baseline(molecules, trial.way, weights, seed=trial.seed, split=trial.split, parts=parts)


@lru_cache(maxsize=1)
def shared_molecules(data: str, split: str) -> tuple[MoleculeDataset, Parts]:
    """Read and split once for all trials of a data set."""
    molecules = read_dataset(data)
    return molecules, split_molecules(molecules.smiles, split)  # type: ignore[arg-type]
