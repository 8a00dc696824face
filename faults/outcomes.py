"""What a command leaves in its folder, without times and places: equal for two calls that did the same."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

Outcome = dict[str, object]


def run_outcome(folder: Path) -> Outcome:
    """Weights, the last checkpoint, embeddings, and metrics without times."""
    from graphsc.core.run_folder import RunFolder
    from graphsc.core.serialization import load_tensors

    run = RunFolder(folder / "run")
    found = _training(folder / "run") | {"model": _tensors(run.model, "model")}
    for path in sorted(run.embeddings.iterdir()):
        found[path.name] = _hash(load_tensors(path, "embeddings")[0])
    return found


def pretrain_outcome(folder: Path) -> Outcome:
    """As of a training, and the scores of the method's own task and the card without its time."""
    card = json.loads((folder / "run" / "card.json").read_text())
    card.pop("seconds")
    card.pop("sha256")  # of all this
    scores = (folder / "run" / "pretext.json").read_text()
    return run_outcome(folder) | {"card": card, "pretext": scores}


def finetune_outcome(folder: Path) -> Outcome:
    """Split and predictions, and of every seed both models, the last checkpoint, metrics and scores."""
    tuned = folder / "tuned"
    found: Outcome = {path.name: path.read_text() for path in sorted(tuned.glob("*.csv"))}
    for seed in sorted(tuned.glob("seed-*")):
        result = json.loads((seed / "result.json").read_text())
        models = {path.name: _tensors(path, "predictor") for path in sorted(seed.glob("*.safetensors"))}
        stored = {key: result[key] for key in ("trial", "figures", "split", "rules", "config")}
        found[seed.name] = [_training(seed), models, stored]
    return found


def file_outcome(name: str) -> Callable[[Path], Outcome]:
    """The bytes of one file."""
    return lambda folder: {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()}


def result_outcome(folder: Path) -> Outcome:
    """Predictions and accuracy of the run's result."""
    return {"result": _plain(json.loads((folder / "run" / "result.json").read_text()))}


def compare_outcome(folder: Path) -> Outcome:
    """The table and every stored result."""
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.trial import key_of

    stored = ResultStore(folder / "results").all()
    results = {key_of(result.trial): _plain(result.to_json()) for result in stored}
    return {"table": (folder / "t.csv").read_text(), "results": results}


def sweep_outcome(folder: Path) -> Outcome:
    """Every trial once, with the settings and the accuracy it had, whoever ran it."""
    with open(folder / "out" / "trials.csv", newline="") as file:
        rows = sorted(tuple(row.items()) for row in csv.DictReader(file))
    return {"trials": rows, "best": (folder / "out" / "best.yaml").read_text()}


def _training(folder: Path) -> Outcome:
    """The last checkpoint, and metrics without times."""
    from graphsc.core.run_folder import RunFolder
    from graphsc.core.serialization import load_tensors
    from graphsc.training.callbacks import TIMES, Metrics

    run, found = RunFolder(folder), {}
    newest = max(run.checkpoints.glob("step-*"), default=None)
    if newest is not None:
        tensors, facts = load_tensors(newest, "checkpoint")
        found["checkpoint"] = [newest.name, _hash(tensors), facts["epoch"], facts["step"]]
    rows = Metrics(run.metrics, keep=10**6).rows
    found["metrics"] = [{name: row[name] for name in row if name not in TIMES} for row in rows]
    return found


def _plain(found: Mapping[str, object]) -> Outcome:
    """A result without what depends on the clock and the machine."""
    return {
        key: found[key] for key in ("accuracy", "predictions", "folds", "chosen", "epochs", "inner_accuracy")
    }


def _tensors(path: Path, kind: str) -> list[object]:
    """Numbers and facts of a model."""
    from graphsc.core.serialization import load_tensors

    tensors, facts = load_tensors(path, kind)
    return [_hash(tensors), facts]


def _hash(tensors: dict[str, object]) -> str:
    from graphsc.core.serialization import digest_of

    return digest_of(tensors, {})  # type: ignore[arg-type]
