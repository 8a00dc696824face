"""Readers of what fine-tuning leaves behind: the model that predicts, and the result."""

from __future__ import annotations

import json
import random
from pathlib import Path

from faults.molecules import write_molecules
from faults.mutate import HARSH, change_tree
from faults.target import Files


def tune_small(folder: Path, baselines: bool = False) -> Path:
    """The folder of one seed of a fine-tuning that takes a second."""
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.finetune import FineTuneSettings, finetune

    write_molecules(folder / "few.csv", 60)
    finetune(
        read_dataset(folder / "few.csv", labels="nitrogen"), out=folder / "tuned", device="cpu",
        settings=FineTuneSettings(epochs=1), encoder_settings={"width": 4, "depth": 1}, split="random",
        baselines=baselines,
    )  # fmt: skip
    return folder / "tuned" / "seed-0"


def seed_predictor(folder: Path) -> Files:
    return {"best.safetensors": (tune_small(folder) / "best.safetensors").read_bytes()}


def read_predictor(folder: Path) -> object:
    """Read, and good for a molecule."""
    from graphsc.data.readers import open_collection
    from graphsc.finetuning.model import load_predictor

    if not _MOLECULES:
        _MOLECULES.append(open_collection(["CCO", "c1ccncc1"]))
    return load_predictor(folder / "best.safetensors").predict(_MOLECULES[0])


_MOLECULES: list = []


def seed_transfer(folder: Path) -> Files:
    return {"result.json": (tune_small(folder) / "result.json").read_bytes()}


def change_transfer(files: Files, draw: random.Random) -> Files:
    """Bytes; or a value, mostly of those that say how it came about and not how good it is."""
    ((name, content),) = files.items()
    if draw.random() < 0.2:
        return {name: draw.choice(HARSH)(content, draw)}
    tree = json.loads(content)
    del tree["sha256"]  # else all changes would be refused for one reason
    part = draw.choice(("trial", "config", "seconds", "environment", None))
    if part is None:
        return {name: json.dumps(change_tree(tree, draw)).encode()}
    tree[part] = change_tree(tree[part], draw)
    return {name: json.dumps(tree).encode()}


def read_transfer(folder: Path) -> object:
    """Read, and good for every figure that is made of it."""
    from graphsc.finetuning.result import load_transfer

    result = load_transfer(folder / "result.json")
    return [result.figures(rule) for rule in result.rules]
