"""What is fed with mutated files: one line a reader in `TARGETS`."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

from faults.mutate import GENTLE, HARSH, Change, blank_lines, change_tree, flip, line_ends, swap_lines
from faults.run_targets import (
    change_json,
    change_tensors,
    change_yaml,
    read_checkpoint,
    read_config,
    read_model,
    read_result,
    seed_checkpoint,
    seed_config,
    seed_model,
    seed_result,
)
from faults.target import SEEDS, Files, Target
from faults.transfer_targets import (
    change_transfer,
    read_predictor,
    read_transfer,
    seed_predictor,
    seed_transfer,
)


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
    from graphsc.data.readers.tu import read_tu as read

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
    from graphsc.data.readers.tu import read_tu as read

    # Before anything is changed, the seeds are read as they are.
    return checked(read(folder / "MUTAG.zip" if (folder / "MUTAG.zip").exists() else folder))


# Two molecules of three and of two atoms, with two features of atoms and one of bonds.
OGB = {
    "edge": b"0,1\n1,2\n0,1\n",
    "num-node-list": b"3\n2\n",
    "num-edge-list": b"2\n1\n",
    "node-feat": b"5,0\n6,0\n5,1\n5,0\n7,1\n",
    "edge-feat": b"0\n1\n2\n",
    "graph-label": b"0.0,1.0\n1.0,\n",
}


def pack_ogb(tables: Files) -> Files:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in tables.items():
            archive.writestr(f"toy/raw/{name}.csv.gz", gzip.compress(content))
    return {"toy.zip": packed.getvalue()}


def change_ogb(_: Files, draw: random.Random) -> Files:
    files = pack_ogb(change_text(OGB, draw))
    return {"toy.zip": flip(files["toy.zip"], draw)} if draw.random() < 0.1 else files


def read_ogb(folder: Path) -> object:
    from graphsc.data.readers.ogb import read_ogb as read

    return checked(read(folder / "toy.zip"))


def read_smiles(folder: Path) -> object:
    from graphsc.data.readers.smiles import read_smiles as read

    return checked(read(folder / "BBBP.csv", label_columns=("p_np",)))


def read_edges(folder: Path) -> object:
    from graphsc.data.readers.edge_list import read_edges as read

    return checked(read(folder / "edges.csv", nodes=folder / "nodes.csv", graphs=folder / "graphs.csv"))


def seed_collection(folder: Path) -> Files:
    from graphsc.data.readers.tu import read_tu as read

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
    words = json.dumps([metadata["name"], metadata["notes"]])
    metadata["words_hash"] = hashlib.sha256(words.encode()).hexdigest()
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


TU = tuple(
    f"tu/MUTAG_{part}.txt" for part in ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels")
)
EDGES = ("edges/edges.csv", "edges/nodes.csv", "edges/graphs.csv")

TARGETS = {
    "tu": Target(seeds_of(*TU), change_tu, read_tu),
    "tu-zip": Target(seeds_of(*TU), change_zip, read_tu_zip),
    "ogb": Target(lambda _: pack_ogb(OGB), change_ogb, read_ogb),
    "smiles": Target(seeds_of("BBBP.csv"), change_text, read_smiles),
    "edges": Target(seeds_of(*EDGES), change_text, read_edges),
    "collection": Target(seed_collection, change_collection, read_collection),
    "config": Target(seed_config, change_yaml, read_config),
    "checkpoint": Target(seed_checkpoint, change_tensors("checkpoint"), read_checkpoint),
    "model": Target(seed_model, change_tensors("model"), read_model),
    "result": Target(seed_result, change_json, read_result),
    "predictor": Target(seed_predictor, change_tensors("predictor"), read_predictor),
    "transfer": Target(seed_transfer, change_transfer, read_transfer),
}
