"""What is fed with mutated files: one line a reader in `TARGETS`."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults.mutate import GENTLE, HARSH, Change, blank_lines, change_tree, flip, line_ends, swap_lines

SEEDS = Path(__file__).parent / "seeds"
Files = dict[str, bytes]


@dataclass(frozen=True)
class Target:
    """A reader: its seed files, how one is changed, and how it is read.

    `seed(folder)` may write into a folder of its own; `read(folder)` gives what was read, or raises.
    """

    seed: Callable[[Path], Files]
    change: Callable[[Files, random.Random], Files]
    read: Callable[[Path], object]


def seeds_of(*names: str) -> Callable[[Path], Files]:
    return lambda _: {Path(name).name: (SEEDS / name).read_bytes() for name in names}


def change_text(files: Files, draw: random.Random, gentle: tuple[Change, ...] = GENTLE) -> Files:
    """One to three changes, all gentle in two of three inputs."""
    files = dict(files)
    kinds = gentle if draw.random() < 0.67 else gentle + HARSH * 2
    for _ in range(draw.randrange(1, 4)):
        name = draw.choice(sorted(files))
        files[name] = draw.choice(kinds)(files[name], draw)
    if draw.random() < 0.02:
        del files[draw.choice(sorted(files))]
    return files


def change_tu(files: Files, draw: random.Random) -> Files:
    """As text, but gentle changes keep the number of lines and which graph a node is in."""
    if draw.random() < 0.67:
        kept = {name: content for name, content in files.items() if "indicator" not in name}
        return {**files, **change_text(kept, draw, (line_ends, blank_lines, swap_lines))}
    return change_text(files, draw)


def checked(collection: object) -> object:
    """A collection that keeps its promises and can say what it holds."""
    collection.check()  # type: ignore[attr-defined]
    collection.describe()  # type: ignore[attr-defined]
    return collection


def read_tu(folder: Path) -> object:
    from graphsc.data.doors.tu import read_tu as read

    return checked(read(folder))


def change_zip(files: Files, draw: random.Random) -> Files:
    """The changed files in an archive, whose members may be called anything; or its bytes changed."""
    members = change_tu(files, draw)
    hostile = draw.random() < 0.06
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            prefix = draw.choice(("../", "/tmp/", "MUTAG/../../", "C:\\", "\x00")) if hostile else "MUTAG/"
            archive.writestr(zipfile.ZipInfo(prefix + name), content)
    content = packed.getvalue()
    return {"MUTAG.zip": flip(content, draw) if draw.random() < 0.1 else content}


def read_tu_zip(folder: Path) -> object:
    from graphsc.data.doors.tu import read_tu as read

    # Before anything is changed, the seeds are read as they are.
    return checked(read(folder / "MUTAG.zip" if (folder / "MUTAG.zip").exists() else folder))


def read_smiles(folder: Path) -> object:
    from graphsc.data.doors.smiles import read_smiles as read

    return checked(read(folder / "BBBP.csv", label_columns=("p_np",)))


def read_edges(folder: Path) -> object:
    from graphsc.data.doors.edges import read_edges as read

    return checked(read(folder / "edges.csv", nodes=folder / "nodes.csv", graphs=folder / "graphs.csv"))


def seed_collection(folder: Path) -> Files:
    from graphsc.data.doors.tu import read_tu as read

    read(SEEDS / "tu").save(folder / "c.safetensors")
    return {"c.safetensors": (folder / "c.safetensors").read_bytes()}


def change_collection(files: Files, draw: random.Random) -> Files:
    """Bytes; or header, meaning or data with all hashes made to fit again."""
    content = files["c.safetensors"]
    if draw.random() < 0.2:
        return {"c.safetensors": draw.choice(HARSH)(content, draw)}
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.pop("__metadata__")
    kind = draw.randrange(10)
    if kind < 2:
        for _ in range(draw.randrange(1, 4)):
            data = flip(data, draw)
    elif kind < 7:
        meta = json.loads(metadata["meta"])
        meta = meta if kind == 6 else {**meta, "tasks": [draw.choice(("y", "é", "<b>", ""))], "classes": {}}
        metadata["meta"] = json.dumps(change_tree(meta, draw) if kind == 6 else meta)
    elif kind < 9:
        metadata["name"] = draw.choice(("", "x", "../x", "<script>", "é" * 99, "\x00"))
    else:
        header = change_tree(header, draw)
    blocks = [hashlib.sha256(data).hexdigest()]
    metadata["blocks"] = ",".join(blocks)
    hashed = json.dumps([metadata["meta"], header, blocks], sort_keys=True)
    metadata["content_hash"] = hashlib.sha256(hashed.encode()).hexdigest()
    text = json.dumps({"__metadata__": metadata, **header} if isinstance(header, dict) else header).encode()
    text += b" " * (-len(text) % 8)
    return {"c.safetensors": len(text).to_bytes(8, "little") + text + data}


def read_collection(folder: Path) -> object:
    import numpy as np

    from graphsc.data.batch import GraphBatch
    from graphsc.data.collection import GraphCollection

    collection = GraphCollection.open(folder / "c.safetensors")
    checked(collection)
    return GraphBatch.gather(collection, np.arange(len(collection)))


def change_yaml(files: Files, draw: random.Random) -> Files:
    """Lines of text, or a value of the tree written anew."""
    from graphsc.core.config import dump_yaml, parse_yaml

    name = draw.choice(sorted(files))
    if draw.random() < 0.4:
        return {**files, name: draw.choice(GENTLE + HARSH)(files[name], draw)}
    tree = change_tree(parse_yaml(files[name], name), draw)
    return {**files, name: dump_yaml(tree).encode() if isinstance(tree, dict) else repr(tree).encode()}


def seed_config(folder: Path) -> Files:
    from graphsc.data.doors.tu import read_tu as read
    from graphsc.training.run import train
    from graphsc.training.settings import TrainSettings

    train(read(SEEDS / "tu"), training=TrainSettings(epochs=1), out=folder / "run", device="cpu")
    plan = b"tables:\n  t:\n    title: T\n    trials:\n      - {data: [mutag], methods: [raw], seeds: 2}\n"
    return {"config.yaml": (folder / "run" / "config.yaml").read_bytes(), "plan.yaml": plan}


def read_config(folder: Path) -> object:
    from graphsc.core.config import build
    from graphsc.core.run_folder import RunFolder, differences
    from graphsc.experiments.plan import read_plan
    from graphsc.training.settings import TrainSettings

    config = RunFolder(folder).settled()
    differences(config, {"method": "graphsc"})
    training = config.get("training")
    if isinstance(training, dict):
        build(TrainSettings, training, "training")
    return [trial.key() for table in read_plan(folder / "plan.yaml") for trial in table.trials()]


def seed_checkpoint(folder: Path) -> Files:
    from graphsc.data.sources import open_collection
    from graphsc.training.run import train
    from graphsc.training.settings import TrainSettings

    small = {"encoder.width": 4, "encoder.depth": 1}
    train(
        open_collection("motifs:8"), settings=small, training=TrainSettings(epochs=1), out=folder / "run",
        device="cpu",
    )  # fmt: skip
    newest = max((folder / "run" / "checkpoints").iterdir())
    return {newest.name: newest.read_bytes()}


def seed_model(folder: Path) -> Files:
    seed_checkpoint(folder)
    return {"model.safetensors": (folder / "run" / "model.safetensors").read_bytes()}


def change_tensors(kind: str) -> Callable[[Files, random.Random], Files]:
    """Bytes; or facts, names, shapes or numbers with the hash made to fit again."""

    def change(files: Files, draw: random.Random) -> Files:
        import torch
        from safetensors.torch import load, save

        from graphsc.core.formats import stamp
        from graphsc.core.tensors import digest_of

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
    from graphsc.data.sources import open_collection
    from graphsc.methods import make_recipe
    from graphsc.training.checkpoint import load_checkpoint

    if not _SMALL:
        graphs = open_collection("motifs:8")
        recipe = make_recipe("graphsc", graphs, {"encoder.width": 4, "encoder.depth": 1})
        _SMALL.append(recipe.build(graphs.features, 0))
    method = _SMALL[0]
    optimisers = {player.name: Adam(player.parameters) for player in method.players()}
    said: list[str] = []
    progress = load_checkpoint(folder, method, optimisers, said.append)
    if progress is None:
        # With no checkpoint before it a run says so and begins anew; here that is the one clear error.
        raise DamagedFileError(" ".join(said) or "nothing was there")
    return progress


_SMALL: list = []


def read_model(folder: Path) -> object:
    from graphsc.training.model_file import load_model

    return load_model(folder / "model.safetensors")


def seed_result(folder: Path) -> Files:
    from graphsc.evaluation.protocol import Protocol
    from graphsc.experiments.run import run_trial
    from graphsc.experiments.trial import Trial

    trial = Trial(data="motifs:30", method="raw", protocol=Protocol(folds=3))
    run_trial(trial, runs=folder / "runs").save(folder / "result.json")
    return {"result.json": (folder / "result.json").read_bytes()}


def change_json(files: Files, draw: random.Random) -> Files:
    ((name, content),) = files.items()
    if draw.random() < 0.2:
        return {name: draw.choice(HARSH)(content, draw)}
    tree = json.loads(content)
    part = draw.choice(("trial", "config", "health", "seconds", "environment", "words", None))
    if part is None:
        return {name: json.dumps(change_tree(tree, draw)).encode()}
    tree[part] = change_tree(tree[part], draw)
    return {name: json.dumps(tree).encode()}


def read_result(folder: Path) -> object:
    from graphsc.experiments.result import load_result

    return load_result(folder / "result.json").accuracy


TU = tuple(
    f"tu/MUTAG_{part}.txt" for part in ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels")
)
EDGES = ("edges/edges.csv", "edges/nodes.csv", "edges/graphs.csv")

TARGETS = {
    "tu": Target(seeds_of(*TU), change_tu, read_tu),
    "tu-zip": Target(seeds_of(*TU), change_zip, read_tu_zip),
    "smiles": Target(seeds_of("BBBP.csv"), change_text, read_smiles),
    "edges": Target(seeds_of(*EDGES), change_text, read_edges),
    "collection": Target(seed_collection, change_collection, read_collection),
    "config": Target(seed_config, change_yaml, read_config),
    "checkpoint": Target(seed_checkpoint, change_tensors("checkpoint"), read_checkpoint),
    "model": Target(seed_model, change_tensors("model"), read_model),
    "result": Target(seed_result, change_json, read_result),
}
