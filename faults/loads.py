"""What is loaded with very many graphs: one line a verb in `LOADS`."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from faults.load import Figures, Load, run
from faults.molecules import is_broken, write_molecules
from graphsc.finetuning.predict import CHUNK as PREDICT_CHUNK
from graphsc.training.embed_io import CHUNK as EMBED_CHUNK

FINETUNE = (
    "finetune", "none", "few.csv", "--labels", "nitrogen", "--seeds", "2", "--epochs", "2",
    "--set", "encoder.width=16", "--set", "encoder.depth=2", "--device", "cpu", "--out", "tuned",
)  # fmt: skip


def prepare_embed(home: Path, graphs: int) -> None:
    run(home, "train", "motifs:200", "--epochs", "1", "--device", "cpu", "--out", "run")
    run(home, "data", "convert", f"motifs:{graphs}", "--out", "graphs.safetensors")


def kept_vectors(home: Path) -> int:
    return len(list((home / ".v.parquet.chunks").glob("chunk-*.json")))


def read_vectors(path: Path, _: int) -> tuple[np.ndarray, Figures]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=["id"])["id"].to_numpy(), {}


def prepare_predict(home: Path, graphs: int) -> None:
    write_molecules(home / "few.csv", 400)
    run(home, *FINETUNE)
    write_molecules(home / "many.csv", graphs)


def kept_predictions(home: Path) -> int:
    return len(list((home / ".p.csv.chunks").glob("chunk-*.json")))


def read_predictions(path: Path, graphs: int) -> tuple[np.ndarray, Figures]:
    """Rows must be marked with a reason where they hold no molecule, and have a prediction elsewhere."""
    numbers, marked, wrong = [], 0, 0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            number = int(row["id"])
            numbers.append(number)
            said = bool(row["reason"])
            marked += said and is_broken(number)
            wrong += said != is_broken(number) or said == bool(row["nitrogen_probability"])
    broken = sum(map(is_broken, range(graphs)))
    return np.array(numbers), {
        "rows_without_a_molecule": broken,
        "rows_marked": marked,
        "rows_marked_wrongly": wrong,
    }


LOADS = {
    "embed": Load(
        prepare_embed, ("embed", "run", "graphs.safetensors", "--out", "v.parquet"), "graphs.safetensors",
        "v.parquet", EMBED_CHUNK, kept_vectors, read_vectors,
    ),
    "predict": Load(
        prepare_predict, ("predict", "tuned", "many.csv", "--out", "p.csv"), "many.csv", "p.csv",
        PREDICT_CHUNK, kept_predictions, read_predictions,
    ),
}  # fmt: skip
