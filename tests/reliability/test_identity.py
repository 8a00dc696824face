"""Files say what they are: hashes, epochs, seeds and graphs are compared before a file is used."""

import hashlib
import shutil
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from graphsc.core.errors import (
    ConfigError,
    DamagedFileError,
    DivergedError,
    GraphscWarning,
    NotFoundError,
)
from graphsc.core.files import read_json, write_json
from graphsc.core.run_folder import RunFolder
from graphsc.data.readers import open_collection
from graphsc.estimator import GraphEmbedder
from graphsc.experiments.run_evaluation import evaluate_run
from graphsc.training.callbacks import Metrics, Reporter
from graphsc.training.model_io import load_model
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

SMALL = {"encoder.width": 8, "encoder.depth": 2}


@pytest.fixture(scope="module")
def motifs():
    return open_collection("motifs:20")


@pytest.fixture
def run(motifs, tmp_path):
    """A finished run of two epochs."""
    settings = TrainSettings(epochs=2, batch_size=16)
    train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / "run", source="motifs:20")
    return RunFolder(tmp_path / "run")


def hashes(folder):
    return {
        path.relative_to(folder): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_every_bit_of_a_json_file_is_guarded(tmp_path):
    path = tmp_path / "x.json"
    content = {"seed": 0, "rates": [0.1, 1e-30], "name": "é", "nested": {"a": None}}
    write_json(path, content)
    raw = path.read_bytes()
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(damaged))
        try:
            found = read_json(path, "x")
        except DamagedFileError:
            continue
        # The name of the hash itself, or a space, may change.
        assert {key: value for key, value in found.items() if key in content} == content


def test_every_bit_of_metrics_is_guarded(tmp_path):
    path = tmp_path / "metrics.csv"
    metrics = Metrics(path)
    metrics.add({"epoch": 1, "loss": 0.1234567890123, "seconds": 0.5})
    metrics.add({"epoch": 2, "loss": 0.12, "extra": 7.0, "seconds": 0.25})
    raw, rows = path.read_bytes(), Metrics(path, keep=9).rows
    assert rows == metrics.rows
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(damaged))
        try:
            found = Metrics(path, keep=9).rows
        except DamagedFileError:
            continue
        assert [
            {key: row[key] for key in row if key in before} for row, before in zip(found, rows, strict=True)
        ] == rows


def silent_flips(run, bits):
    """How many of these bits of the config can change without a word; none of them changes a setting."""
    raw, config = run.config.read_bytes(), run.load_config()
    silent = 0
    for bit in bits(len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << bit % 8
        run.config.write_bytes(bytes(damaged))
        with warnings.catch_warnings():
            warnings.simplefilter("error", GraphscWarning)
            try:
                assert run.load_config() == config  # the words of the comment may change
            except (GraphscWarning, ConfigError, DamagedFileError):
                continue
        silent += 1
    return silent


def test_two_bits_of_every_byte_of_a_config_are_guarded(run):
    """All eight bits have their turn: byte 0 has bits 0 and 4, byte 1 has bits 1 and 5."""
    silent = silent_flips(run, lambda size: (8 * k + (k + part) % 8 for k in range(size) for part in (0, 4)))
    assert silent < 2 * 40


@pytest.mark.slow
def test_every_bit_of_a_config_is_guarded(run):
    assert silent_flips(run, lambda size: range(8 * size)) < 8 * 40


def test_an_edited_config_is_used_and_said(run, motifs):
    run.config.write_text(run.config.read_text().replace("seed: 0", "seed: 1"))
    with pytest.warns(GraphscWarning, match=r"config.yaml was edited since it was written"):
        assert run.load_config()["training"]["seed"] == 1


def test_a_finished_run_run_again_changes_no_file(run, motifs):
    before = hashes(run.path)
    settings = TrainSettings(epochs=2, batch_size=16)
    train(motifs, "graphcl", settings=SMALL, training=settings, out=run.path, source="motifs:20")
    assert hashes(run.path) == before


def test_equal_models_are_equal_files(motifs, tmp_path):
    files = []
    for name in ("one", "two"):
        settings = TrainSettings(epochs=1, batch_size=16)
        done = train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / name)
        files.append(done.folder.model.read_bytes())
    assert files[0] == files[1]


def test_embeddings_of_another_epoch(run, motifs):
    shutil.copy(run.embedding(1), run.embedding(2))
    with pytest.raises(DamagedFileError, match="embeddings of epoch 1, not of epoch 2"):
        evaluate_run(run.path, motifs)


def test_the_last_embeddings_are_missing(run, motifs):
    run.embedding(2).unlink()
    with pytest.raises(NotFoundError, match="ended after epoch 2, but its newest embeddings are of epoch 1"):
        evaluate_run(run.path, motifs)


def test_embeddings_of_other_graphs(run, motifs, tmp_path):
    settings = TrainSettings(epochs=2, batch_size=16)
    other = train(motifs[:12], "graphcl", settings=SMALL, training=settings, out=tmp_path / "other")
    shutil.copy(other.folder.embedding(2), run.embedding(2))
    with pytest.raises(DamagedFileError, match="embeddings of other graphs"):
        evaluate_run(run.path, motifs)


@pytest.mark.parametrize("change", ["seed", "graphs", "method"])
def test_a_model_of_another_run(run, motifs, tmp_path, change):
    settings = TrainSettings(epochs=2, batch_size=16, seed=int(change == "seed"))
    graphs = open_collection("motifs:21") if change == "graphs" else motifs
    method = "graphsc" if change == "method" else "graphcl"
    train(graphs, method, settings=SMALL, training=settings, out=tmp_path / "other")
    shutil.copy(tmp_path / "other" / "model.safetensors", run.model)
    with pytest.raises(DamagedFileError, match=f"this model is of another run: {change} "):
        load_model(run.model)
    run.model.rename(tmp_path / "model.safetensors")
    load_model(tmp_path / "model.safetensors")  # which belongs to no run


def test_a_checkpoint_of_another_seed(run, motifs, tmp_path):
    settings = TrainSettings(epochs=2, batch_size=16, seed=1)
    other = train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / "other")
    for path in run.checkpoints.glob("*"):
        shutil.copy(other.folder.checkpoints / path.name, path)
    with pytest.raises(ConfigError, match="this checkpoint is of seed 1, the run has seed 0"):
        train(
            motifs, "graphcl", settings=SMALL, training=TrainSettings(epochs=3, batch_size=16), out=run.path
        )


def test_a_checkpoint_under_the_name_of_another_step(run, motifs):
    newest = max(run.checkpoints.glob("*"))
    newest.rename(newest.with_name("step-000009999.safetensors"))
    said = []

    class Said(Reporter):
        def log(self, message):
            said.append(message)

    train(
        motifs, "graphcl", settings=SMALL, training=TrainSettings(epochs=3, batch_size=16), out=run.path,
        reporter=Said(),
    )  # fmt: skip
    assert any("it is of step" in message for message in said)


@pytest.mark.parametrize("rate", [1e20, 1e30])
def test_weights_that_are_not_finite_are_never_saved(motifs, tmp_path, rate):
    """One step: the loss and the gradient are finite, the weights after it are not."""
    settings = TrainSettings(epochs=1, batch_size=len(motifs), learning_rate=rate)
    with pytest.raises(DivergedError) as error:
        train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / "run")
    assert error.value.exit_code == 3
    assert not (tmp_path / "run" / "model.safetensors").exists()


@pytest.mark.parametrize("rate", [1e20, 1e30])
@pytest.mark.parametrize("method", ["graphsc", "graphcl"])
def test_embeddings_that_are_not_finite_end_training(tmp_path, method, rate):
    """There are enough graphs for a warning of collapse, and weights may be finite."""
    settings = TrainSettings(epochs=2, learning_rate=rate)
    with pytest.raises(DivergedError):
        train(open_collection("motifs:60"), method, training=settings, out=tmp_path / "run")
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_fitting_with_a_diverging_setting_raises(motifs):
    with pytest.raises(DivergedError):
        GraphEmbedder("graphcl", epochs=2, learning_rate=1e30, settings=SMALL).fit(motifs)


def test_a_diverging_fit_leaves_nothing_behind(motifs, tmp_path, monkeypatch):
    for variable in ("TMPDIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    embedder = GraphEmbedder("graphcl", epochs=1, settings=SMALL).fit(motifs)
    threads = threading.active_count()
    embedder.set_params(learning_rate=1e30, epochs=2)
    with pytest.raises(DivergedError):
        embedder.fit(motifs)
    with pytest.raises(NotFittedError):
        embedder.transform(motifs)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() <= threads
    assert not [name for name in vars(embedder) if name.endswith("_")]


# Advice to remove a file: it is followed, and the same command then works.


@pytest.mark.parametrize("name", ["metrics.csv", "env.json"])
def test_a_damaged_file_that_is_to_be_removed_can_be_removed(run, motifs, name):
    settings = TrainSettings(epochs=3, batch_size=16)
    path = run.path / name
    path.write_bytes(path.read_bytes()[:-20] + b"x" * 20)
    with pytest.raises(DamagedFileError, match="remove the file to resume"):
        train(motifs, "graphcl", settings=SMALL, training=settings, out=run.path, source="motifs:20")
    path.unlink()
    done = train(motifs, "graphcl", settings=SMALL, training=settings, out=run.path, source="motifs:20")
    assert [row["epoch"] for row in done.metrics.rows][-1] == 3
    assert path.exists()


def test_checkpoints_of_another_seed_can_be_removed(run, motifs, tmp_path):
    settings = TrainSettings(epochs=2, batch_size=16, seed=1)
    other = train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / "other")
    for path in run.checkpoints.glob("*"):
        shutil.copy(other.folder.checkpoints / path.name, path)
    settings = TrainSettings(epochs=3, batch_size=16)
    for _ in range(2):  # checkpoints are kept
        with pytest.raises(ConfigError, match="remove the file") as error:
            train(motifs, "graphcl", settings=SMALL, training=settings, out=run.path)
        Path(error.value.where).unlink()
    done = train(motifs, "graphcl", settings=SMALL, training=settings, out=run.path)
    assert [row["epoch"] for row in done.metrics.rows] == [1, 2, 3]
    undisturbed = train(motifs, "graphcl", settings=SMALL, training=settings, out=tmp_path / "plain")
    assert done.folder.model.read_bytes() == undisturbed.folder.model.read_bytes()


def test_damaged_pretext_scores_can_be_removed(tmp_path, motifs):
    from graphsc.training.callbacks import PretextScores

    path = tmp_path / "pretext.json"
    write_json(path, {"passes_per_step": 1.0, "scores": 3})
    with pytest.raises(DamagedFileError, match="remove the file to resume without it"):
        PretextScores(path, motifs, motifs, 0)
    path.unlink()
    assert PretextScores(path, motifs, motifs, 0).scores == {}


def test_fitting_leaves_the_global_generator_as_it_was(motifs):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    GraphEmbedder("graphcl", epochs=1, settings=SMALL).fit(motifs)
    np.testing.assert_array_equal(torch.rand(3), expected)
