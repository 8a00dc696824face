"""Files that earlier versions wrote are read; files from the future are refused in words."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hurt import newer

from graphsc.core.errors import DamagedFileError
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import VERSIONS, load_tensors
from graphsc.data.collection import GraphCollection
from graphsc.experiments.result import load_result
from graphsc.training.callbacks import Metrics
from graphsc.training.model_io import load_model
from graphsc.training.train import stored_embeddings

FIXTURES = sorted(path.parent for path in (Path(__file__).parents[1] / "fixtures").glob("v*/expected.json"))
EACH = pytest.mark.parametrize("folder", FIXTURES, ids=lambda path: path.name)


def expected(folder):
    return json.loads((folder / "expected.json").read_text())


def test_today_s_versions_are_among_those_kept():
    kept = [expected(folder)["versions"] for folder in FIXTURES]
    for kind, version in VERSIONS.items():
        known = {versions[kind] for versions in kept if kind in versions}
        # A kind of file that is newer than all fixtures has no past to be true to.
        assert not known or version in known, f"{kind}: run tests/fixtures/make.py into a new folder"


@EACH
def test_collection_is_read(folder):
    graphs = GraphCollection.open(folder / "collection.safetensors")
    graphs.check()
    known = expected(folder)
    assert graphs.node_ptr.tolist() == known["nodes"]
    assert graphs.edge_index.tolist() == known["edges"]
    assert graphs.labels[:, 0].tolist() == known["labels"]


@EACH
def test_model_and_embeddings_are_read(folder):
    graphs = GraphCollection.open(folder / "collection.safetensors")
    vectors = expected(folder)["vectors"]
    found = load_model(folder / "run" / "model.safetensors").embed(graphs)
    np.testing.assert_allclose(found, vectors, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(stored_embeddings(RunFolder(folder / "run"), 2), vectors, rtol=1e-3, atol=1e-3)


@EACH
def test_run_is_gone_on_with(folder, run, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "run")
    known = expected(folder)["metrics"]
    assert [row["loss"] for row in Metrics(tmp_path / "run" / "metrics.csv", keep=9).rows] == [
        pytest.approx(row["loss"]) for row in known
    ]
    arguments = (
        "train",
        "motifs:6",
        "--set",
        "encoder.width=4",
        "--set",
        "encoder.depth=2",
        "--set",
        "batch_norm_embedding=reestimate",  # the defaults of these versions
        "--set",
        "learning_rate=0.01",
        "--device",
        "cpu",
    )
    code, _, err = run(*arguments, "--set", "batch_size=4", "--epochs", 3, "--out", tmp_path / "run")
    assert code == 0, err
    assert "resuming at epoch 3, step 1" in err


@EACH
def test_result_is_read(folder):
    result = load_result(folder / "result.json")
    known = expected(folder)
    assert result.accuracy == pytest.approx(known["accuracy"])
    assert result.predictions.tolist() == known["predictions"]


READERS = {
    "collection.safetensors": GraphCollection.open,
    "run/model.safetensors": load_model,
    "run/embeddings/epoch-00002.safetensors": lambda path: load_tensors(path, "embeddings"),
    "run/checkpoints": lambda path: load_tensors(path, "checkpoint"),
    "run/config.yaml": lambda path: RunFolder(path.parent).load_config(),
    "run/env.json": lambda path: RunFolder(path.parent).environments(),
    "result.json": load_result,
}


@EACH
@pytest.mark.parametrize("name", READERS)
def test_a_newer_version_is_refused_in_words(folder, tmp_path, name):
    path = folder / name
    path = max(path.iterdir()) if path.is_dir() else path
    with pytest.raises(
        DamagedFileError, match=r"has format version 9, this package reads up to \d.*upgrade graphsc"
    ):
        READERS[name](newer(path, tmp_path / path.name))


def test_every_kind_of_file_is_tried():
    kinds = {"collection", "model", "embeddings", "checkpoint", "run", "environments", "result"}
    assert kinds <= set(VERSIONS), "a format of ours has another name now"
    assert len(READERS) == len(kinds)
