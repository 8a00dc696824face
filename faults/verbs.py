"""What the soak starts and kills: one line a verb in `VERBS`, and what must be the same afterwards."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Outcome = dict[str, object]


@dataclass(frozen=True)
class Verb:
    """A command as given in an empty folder, and what it leaves there without times and places.

    `prepare` makes what the command starts from, once; it is copied for every round.
    """

    arguments: tuple[str, ...]
    outcome: Callable[[Path], Outcome]
    prepare: tuple[tuple[str, ...], ...] = ()


def run_outcome(folder: Path) -> Outcome:
    """Weights, the last checkpoint, embeddings, and metrics without times."""
    from graphsc.core.run_folder import RunFolder
    from graphsc.core.tensors import load_tensors
    from graphsc.training.metrics import TIMES, Metrics

    run = RunFolder(folder / "run")
    found: Outcome = {"model": _hash(load_tensors(run.model, "model")[0])}
    newest = max(run.checkpoints.glob("step-*"), default=None)
    if newest is not None:
        tensors, facts = load_tensors(newest, "checkpoint")
        found["checkpoint"] = [newest.name, _hash(tensors), facts["epoch"], facts["step"]]
    for path in sorted(run.embeddings.iterdir()):
        found[path.name] = _hash(load_tensors(path, "embeddings")[0])
    rows = Metrics(run.metrics, keep=10**6).rows
    found["metrics"] = [{name: row[name] for name in row if name not in TIMES} for row in rows]
    return found


def file_outcome(name: str) -> Callable[[Path], Outcome]:
    """The bytes of one file."""
    return lambda folder: {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()}


def result_outcome(folder: Path) -> Outcome:
    """Predictions and accuracy of the run's result."""
    return {"result": _plain(folder / "run" / "result.json")}


def compare_outcome(folder: Path) -> Outcome:
    """The table and every stored result."""
    stored = sorted((folder / "results").glob("*/*.json"))
    return {"table": (folder / "t.csv").read_text(), "results": {path.name: _plain(path) for path in stored}}


def sweep_outcome(folder: Path) -> Outcome:
    """Every trial once, with the settings and the accuracy it had, whoever ran it."""
    with open(folder / "out" / "trials.csv", newline="") as file:
        rows = sorted(tuple(row.items()) for row in csv.DictReader(file))
    return {"trials": rows, "best": (folder / "out" / "best.yaml").read_text()}


def _plain(path: Path) -> Outcome:
    """A result without what depends on the clock and the machine."""
    found = json.loads(path.read_text())
    return {
        key: found[key] for key in ("accuracy", "predictions", "folds", "chosen", "epochs", "inner_accuracy")
    }


def _hash(tensors: dict[str, object]) -> str:
    from graphsc.core.tensors import digest_of

    return digest_of(tensors, {})  # type: ignore[arg-type]


TRAIN = (
    "train", "motifs:64", "--epochs", "6", "--set", "encoder.width=8", "--set", "batch_size=16",
    "--device", "cpu", "--out", "run",
)  # fmt: skip
GRAPHS = ("data", "convert", "motifs:25000", "--out", "graphs.safetensors")

VERBS = {
    "train": Verb(TRAIN, run_outcome),
    "embed": Verb(
        ("embed", "run", "graphs.safetensors", "--out", "v.npz"), file_outcome("v.npz"), (TRAIN, GRAPHS)
    ),
    "evaluate": Verb(("evaluate", "run", "--folds", "4", "--jobs", "1"), result_outcome, (TRAIN,)),
    "compare": Verb(
        ("compare", "motifs:40", "--methods", "raw,untrained,graphsc", "--seeds", "2", "--epochs", "2",
         "--folds", "3", "--jobs", "1", "--out", "t.csv"),
        compare_outcome,
    ),
    "sweep": Verb(
        ("sweep", "motifs:40", "--method", "graphsc", "--space", "space.yaml", "--sampler", "grid",
         "--epochs", "2", "--folds", "3", "--out", "out"),
        sweep_outcome,
    ),
}  # fmt: skip
SPACE = "encoder.width: [4, 8]\nencoder.depth: [1, 2]\n"
