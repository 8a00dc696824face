"""What the soak starts and kills: one line a verb in `VERBS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults.molecules import write_molecules
from faults.outcomes import (
    Outcome,
    compare_outcome,
    file_outcome,
    finetune_outcome,
    pretrain_outcome,
    result_outcome,
    run_outcome,
    sweep_outcome,
)


@dataclass(frozen=True)
class Verb:
    """A command as given in a folder with nothing but `write_inputs` in it, and what it leaves there.

    `prepare` makes what the command starts from, once; it is copied for every round. With `on_cluster` it
    runs on a Dask cluster that nobody kills.
    """

    arguments: tuple[str, ...]
    outcome: Callable[[Path], Outcome]
    prepare: tuple[tuple[str, ...], ...] = ()
    on_cluster: bool = False


def write_inputs(folder: Path) -> None:
    """What commands read: a space to sweep, a table of molecules to learn from, a longer one to predict."""
    (folder / "space.yaml").write_text("encoder.width: [4, 8]\nencoder.depth: [1, 2]\n")
    write_molecules(folder / "molecules.csv", 240)
    write_molecules(folder / "many.csv", 16_000)


SMALL = ("--set", "encoder.width=16", "--set", "encoder.depth=2", "--device", "cpu")
TRAIN = (
    "train", "motifs:64", "--epochs", "6", "--set", "encoder.width=8", "--set", "batch_size=16",
    "--device", "cpu", "--out", "run",
)  # fmt: skip
GRAPHS = ("data", "convert", "motifs:25000", "--out", "graphs.safetensors")
PRETRAIN = (
    "pretrain", "molecules.csv", "--epochs", "4", "--held-out", "24", *SMALL, "--set", "batch_size=32",
    "--out", "run",
)  # fmt: skip
COMPARE = (
    "compare", "motifs:40", "--methods", "raw,untrained,graphsc", "--seeds", "2", "--epochs", "2",
    "--folds", "3", "--out", "t.csv",
)  # fmt: skip
FINETUNE = (
    "finetune", "run", "molecules.csv", "--labels", "nitrogen", "--seeds", "2", "--epochs", "5",
    "--device", "cpu", "--out", "tuned",
)  # fmt: skip

VERBS = {
    "train": Verb(TRAIN, run_outcome),
    "embed": Verb(
        ("embed", "run", "graphs.safetensors", "--out", "v.npz"), file_outcome("v.npz"), (TRAIN, GRAPHS)
    ),
    "evaluate": Verb(("evaluate", "run", "--folds", "4", "--jobs", "1"), result_outcome, (TRAIN,)),
    "compare": Verb((*COMPARE, "--jobs", "1"), compare_outcome),
    "compare-jobs": Verb((*COMPARE, "--jobs", "2"), compare_outcome),
    "compare-cluster": Verb(COMPARE, compare_outcome, on_cluster=True),
    "pretrain": Verb(PRETRAIN, pretrain_outcome),
    "finetune": Verb(FINETUNE, finetune_outcome, (PRETRAIN,)),
    "predict": Verb(
        ("predict", "tuned", "many.csv", "--out", "p.csv"), file_outcome("p.csv"), (PRETRAIN, FINETUNE)
    ),
    "sweep": Verb(
        ("sweep", "motifs:40", "--method", "graphsc", "--space", "space.yaml", "--sampler", "grid",
         "--epochs", "2", "--folds", "3", "--out", "out"),
        sweep_outcome,
    ),
}  # fmt: skip
