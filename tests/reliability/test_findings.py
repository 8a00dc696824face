"""What `make fuzz` once found, kept as tests: each file is refused in one sentence."""

import hashlib
import json

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError, DamagedFileError, DataError, GraphscError
from graphsc.core.serialization import UNPACKED_CAP, load_tensors, save_tensors, unpack
from graphsc.data.collection import GraphCollection
from graphsc.training.model_io import load_model
from graphsc.training.train import train


def rewritten(path, change, **metadata_changes):
    """A saved collection with another meaning and hashes that fit it."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = {**header.pop("__metadata__"), **metadata_changes}
    meta = json.loads(metadata["meta"])
    change(meta, header)
    metadata["meta"] = json.dumps(meta)
    hashed = json.dumps([metadata["meta"], header, metadata["blocks"].split(",")], sort_keys=True)
    metadata["content_hash"] = hashlib.sha256(hashed.encode()).hexdigest()
    text = json.dumps({"__metadata__": metadata, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


CHANGES = {
    "a task that is a list": lambda meta, _: meta.update(tasks=[["y"]]),
    "tasks that are a text": lambda meta, _: meta.update(tasks="y"),
    "classes that are numbers": lambda meta, _: meta.update(classes={"y": [1, 2]}),
    "a column of minus one": lambda meta, _: meta.update(node_columns=[["atom", -1, None]]),
    "features of other nodes": lambda meta, _: meta["features"].update(
        columns=[["x", 3, None]], degree_cap=None
    ),
    "a degree cap without its column": lambda meta, _: meta["features"].update(degree_cap=2**40),
    "a degree cap that is a word": lambda meta, _: meta["features"].update(degree_cap="x"),
    "labels of whole numbers": lambda _, header: header["labels"].update(dtype="I64"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_collection_with_another_meaning(three, tmp_path, name):
    path = tmp_path / "c.safetensors"
    GraphCollection.save(three, path)
    rewritten(path, lambda *_: None)
    assert GraphCollection.open(path) == three  # the rewriting itself does no harm
    rewritten(path, CHANGES[name])
    with pytest.raises(DamagedFileError, match="damaged"):
        GraphCollection.open(path)


def test_collection_with_notes_that_are_numbers(three, tmp_path):
    path = tmp_path / "c.safetensors"
    three.save(path)
    rewritten(path, lambda *_: None, notes="[1]")
    with pytest.raises(DamagedFileError):
        GraphCollection.open(path)


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    from graphsc.data.readers import open_collection
    from graphsc.training.trainer import TrainSettings

    folder = tmp_path_factory.mktemp("model") / "r"
    train(
        open_collection("motifs:8"), settings={"encoder.width": 4, "encoder.depth": 1},
        training=TrainSettings(epochs=1), out=folder, device="cpu",
    )  # fmt: skip
    return folder


RECIPES = {
    "settings that are a text": lambda recipe, _: recipe.update(settings="x"),
    "settings of the encoder that are a number": lambda recipe, _: recipe.update(encoder_settings=3),
    "a recipe without an encoder": lambda recipe, _: recipe.update(encoder=None),
    "an encoder nobody knows": lambda recipe, _: recipe.update(encoder="x"),
    "a width of a million": lambda recipe, _: recipe["encoder_settings"].update(width=10**6),
    "a billion layers": lambda recipe, _: recipe["encoder_settings"].update(depth=10**9),
    "a width beyond any number": lambda recipe, _: recipe["encoder_settings"].update(width=2**70),
    "features of negative width": lambda _, features: features.update(columns=[["degree", -65, None]]),
}


@pytest.mark.parametrize("name", RECIPES)
def test_model_with_another_recipe(model_file, tmp_path, name):
    tensors, facts = load_tensors(model_file / "model.safetensors", "model")
    RECIPES[name](facts["recipe"], facts["features"])
    save_tensors(tmp_path / "m.safetensors", "model", tensors, facts)
    with pytest.raises(GraphscError) as refused:
        load_model(tmp_path / "m.safetensors")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["optimiser/model/x/y", "optimiser/model/0", "optimiser/nobody/0/step", "else/x"]
)
def test_checkpoint_with_a_part_that_has_no_place(model_file, tmp_path, name):
    from graphsc.methods import make_recipe
    from graphsc.training.checkpoint import load_checkpoint

    tensors, facts = load_tensors(max((model_file / "checkpoints").iterdir()), "checkpoint")
    save_tensors(
        tmp_path / "step-000000001.safetensors", "checkpoint", {**tensors, name: torch.zeros(1)}, facts
    )
    from graphsc.data.readers import open_collection

    graphs = open_collection("motifs:8")
    method = make_recipe("graphsc", graphs, {"encoder.width": 4, "encoder.depth": 1}).build(
        graphs.features, 0
    )
    optimisers = {one.name: torch.optim.Adam(one.parameters) for one in method.players()}
    before = {key: value.clone() for key, value in method.state_dict().items()}
    said = []
    assert load_checkpoint(tmp_path, method, optimisers, {}, said.append) is None
    assert "is damaged" in said[0]
    assert all(torch.equal(before[key], value) for key, value in method.state_dict().items())


@pytest.mark.parametrize("fact", [{"epoch": -1}, {"step": "x"}, {"sums": 3}, {"other": 1}])
def test_checkpoint_with_other_facts(model_file, tmp_path, fact):
    from graphsc.training.checkpoint import _read

    tensors, facts = load_tensors(max((model_file / "checkpoints").iterdir()), "checkpoint")
    path = tmp_path / f"step-{facts['total_steps']:09d}.safetensors"
    save_tensors(path, "checkpoint", tensors, {**facts, **fact})
    method = load_model(model_file / "model.safetensors").method
    optimisers = {one.name: torch.optim.Adam(one.parameters) for one in method.players()}
    with pytest.raises(DamagedFileError):
        _read(path, method, optimisers, {})


def test_error_does_not_repeat_a_cell_of_a_million_characters(tmp_path):
    from graphsc.data.readers.edge_list import read_edges

    word = "a" * 1_000_000
    (tmp_path / "e.csv").write_text(f"graph_id,source,target\n1,0,{word}\n")
    (tmp_path / "n.csv").write_text("graph_id,node_id\n1,0\n")
    with pytest.raises(DataError) as refused:
        read_edges(tmp_path / "e.csv", nodes=tmp_path / "n.csv")
    assert len(str(refused.value)) < 2_000


def test_packed_numbers_that_would_fill_the_memory():
    import base64
    import zlib

    packed = base64.b85encode(zlib.compress(b"\0" * (UNPACKED_CAP + 1), 9)).decode()
    with pytest.raises(ValueError, match="too many"):
        unpack(f"1:{packed}")


@pytest.mark.parametrize("labels", [{}, 3, None, "", ":", "1:", "3:xx"])
def test_result_whose_labels_are_something_else(labels, tmp_path):
    from graphsc.experiments.result import load_result

    stored = {"format": "graphsc-result", "format_version": "1", "labels": labels, "trial": {}, "config": {}}
    (tmp_path / "r.json").write_text(json.dumps({**stored, "classes": []}))
    with pytest.raises(DamagedFileError):
        load_result(tmp_path / "r.json")


def test_a_million_seeds_are_a_slip_of_the_hand():
    from graphsc.experiments.comparison import compare

    with pytest.raises(ConfigError, match="1,000,000 seeds asked"):
        compare(["motifs:9"], ["raw"], seeds=10**6)


def test_numbers_survive_packing():
    from graphsc.core.serialization import pack

    numbers = np.array([0, 300, 7])
    assert unpack(pack(numbers)).tolist() == [0, 300, 7]
