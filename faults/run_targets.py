"""Readers of what a run leaves behind: configuration, checkpoint, model and result."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from faults.mutate import GENTLE, HARSH, change_tree
from faults.target import Files

METHOD = "joao"
SMALL = {"encoder.width": 4, "encoder.depth": 1}


def train_small(folder: Path) -> Path:
    """A run of the method with the fewest weights of those that keep a state of their own."""
    from graphsc.data.readers import open_collection
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    train(
        open_collection("motifs:8"), METHOD, settings=SMALL, training=TrainSettings(epochs=1),
        out=folder / "run", device="cpu",
    )  # fmt: skip
    return folder / "run"


def change_yaml(files: Files, draw: random.Random) -> Files:
    """One of the files, with lines of text changed or a value of the tree written anew."""
    from graphsc.core.config import dump_yaml

    name = draw.choice(sorted(files))
    if draw.random() < 0.3:
        return {name: draw.choice(GENTLE + HARSH)(files[name], draw)}
    tree = change_tree(_tree(files[name]), draw)
    return {name: dump_yaml(tree).encode() if isinstance(tree, dict) else repr(tree).encode()}


@cache
def _tree(content: bytes) -> object:
    """What a seed holds: parsing it again for every change would take longer than reading the changed one."""
    from graphsc.core.config import parse_yaml

    return parse_yaml(content, "seed")


def seed_config(folder: Path) -> Files:
    run = train_small(folder)
    plan = b"tables:\n  t:\n    title: T\n    trials:\n      - {data: [mutag], methods: [raw], seeds: 2}\n"
    return {"config.yaml": (run / "config.yaml").read_bytes(), "plan.yaml": plan}


def read_config(folder: Path) -> object:
    from graphsc.core.config import build
    from graphsc.core.run_folder import RunFolder, differences
    from graphsc.experiments.plan import read_plan
    from graphsc.training.trainer import TrainSettings

    run = RunFolder(folder)
    if run.config.exists():  # else it is the plan that was changed
        config = run.load_config()
        differences(config, {"method": METHOD})
        training = config.get("training")
        if isinstance(training, dict):
            build(TrainSettings, training, "training")
    if not (folder / "plan.yaml").exists():
        return None
    return [trial.key() for table in read_plan(folder / "plan.yaml") for trial in table.trials()]


def seed_checkpoint(folder: Path) -> Files:
    newest = max((train_small(folder) / "checkpoints").iterdir())
    return {newest.name: newest.read_bytes()}


def seed_model(folder: Path) -> Files:
    return {"model.safetensors": (train_small(folder) / "model.safetensors").read_bytes()}


def change_tensors(kind: str) -> Callable[[Files, random.Random], Files]:
    """Bytes; or facts, names, shapes or numbers with the hash made to fit again."""

    def change(files: Files, draw: random.Random) -> Files:
        import torch
        from safetensors.torch import load, save

        from graphsc.core.serialization import digest_of, stamp

        ((name, content),) = files.items()
        if draw.random() < 0.15:
            return {name: draw.choice(HARSH)(content, draw)}
        length = int.from_bytes(content[:8], "little")
        facts = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["facts"])
        tensors = load(content)
        some = draw.choice(sorted(tensors))
        act = draw.randrange(12)
        if act < 7 and tensors[some].numel():
            value = draw.choice((0.0, -1.0, 1e15, 1e-30, float(draw.random())))
            tensors[some].reshape(-1)[draw.randrange(tensors[some].numel())] = value
        elif act == 7:
            tensors[draw.choice(("x", "weights/x", "optimiser/a/b", "optimiser/model/x/y", "é"))] = (
                tensors.pop(some)
            )
        elif act == 8:
            tensors[some] = draw.choice(
                (torch.zeros(3), tensors[some].reshape(-1)[:-1].clone(), torch.zeros(2, 0))
            )
        elif act == 9:
            tensors[some] = tensors[some].to(draw.choice((torch.int64, torch.float16, torch.float64)))
        else:
            facts = change_tree(facts, draw)
        metadata = stamp(kind) | {"facts": json.dumps(facts)}
        metadata["sha256"] = digest_of(tensors, metadata)
        return {name: save(tensors, metadata)}

    return change


def read_checkpoint(folder: Path) -> object:
    from torch.optim import Adam

    from graphsc.core.errors import DamagedFileError
    from graphsc.data.readers import open_collection
    from graphsc.methods import make_recipe
    from graphsc.training.checkpoint import load_checkpoint

    if not _BUILT:
        graphs = open_collection("motifs:8")
        _BUILT.append(make_recipe(METHOD, graphs, SMALL).build(graphs.features, 0))
    method = _BUILT[0]
    optimisers = {player.name: Adam(player.parameters) for player in method.players()}
    said: list[str] = []
    progress = load_checkpoint(folder, method, optimisers, {"seed": 0}, said.append)
    if progress is None:
        # With no checkpoint before it a run says so and begins anew; here that is the one clear error.
        raise DamagedFileError(" ".join(said) or "nothing was there")
    return progress


_BUILT: list = []


def read_model(folder: Path) -> object:
    from graphsc.training.model_io import load_model

    return load_model(folder / "model.safetensors")


def seed_result(folder: Path) -> Files:
    from graphsc.evaluation.protocol import Protocol
    from graphsc.experiments.runner import run_trial
    from graphsc.experiments.trial import ProbeTrial

    trial = ProbeTrial(data="motifs:30", method="raw", protocol=Protocol(folds=3))
    run_trial(trial, runs=folder / "runs").save(folder / "result.json")
    return {"result.json": (folder / "result.json").read_bytes()}


def change_json(files: Files, draw: random.Random) -> Files:
    ((name, content),) = files.items()
    if draw.random() < 0.2:
        return {name: draw.choice(HARSH)(content, draw)}
    tree = json.loads(content)
    del tree["sha256"]  # else all changes would be refused for one reason
    part = draw.choice(("trial", "config", "health", "seconds", "environment", "words", None))
    if part is None:
        return {name: json.dumps(change_tree(tree, draw)).encode()}
    tree[part] = change_tree(tree[part], draw)
    return {name: json.dumps(tree).encode()}


def read_result(folder: Path) -> object:
    from graphsc.experiments.result import load_result

    return load_result(folder / "result.json").accuracy
