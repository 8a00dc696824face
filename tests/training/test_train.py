"""Runs: the files of the folder, model files, labels that are never read, settings that are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphsc.core.config import read_config
from graphsc.core.errors import ConfigError, DamagedFileError, DataError
from graphsc.core.run_folder import RunFolder
from graphsc.data.readers import open_collection
from graphsc.training.model_io import load_model
from graphsc.training.train import embed_with, model_of, stored_embeddings, train
from graphsc.training.trainer import TrainSettings


def test_folder_holds_config_environment_metrics_model_and_embeddings(motifs, quick, tmp_path):
    run = train(motifs, training=quick(epochs=6), out=tmp_path / "r", source="motifs:40")
    folder = RunFolder(tmp_path / "r")
    config = read_config(folder.config)
    assert config["method"] == "graphsc"
    assert config["data"]["content_hash"] == motifs.content_hash
    assert config["epochs"] == 6
    assert folder.environments()[-1]["threads"] == torch.get_num_threads()
    kept = sorted(int(path.stem.split("-")[1]) for path in folder.embeddings.iterdir())
    assert kept == [0, 1, 2, 5, 6]
    np.testing.assert_allclose(
        stored_embeddings(folder, 6), embed_with(run.model, motifs), rtol=1e-5, atol=1e-5
    )
    assert not np.allclose(stored_embeddings(folder, 0), stored_embeddings(folder, 6), atol=1e-3)


def test_config_replays_the_run(motifs, quick, tmp_path):
    first = train(motifs, "graphsc-mse", settings={"encoder.width": 16}, training=quick(), out=tmp_path / "r")
    config = read_config(RunFolder(tmp_path / "r").config)
    settings = {**config["settings"], **{f"encoder.{k}": v for k, v in config["encoder_settings"].items()}}
    again = train(
        motifs,
        config["method"],
        settings=settings,
        training=TrainSettings(epochs=config["epochs"], **config["training"]),
    )
    np.testing.assert_array_equal(embed_with(first.model, motifs), embed_with(again.model, motifs))


def test_first_epoch_has_gradient_norms_of_every_term(motifs, quick):
    rows = train(motifs, training=quick()).metrics.rows
    for term in ("self", "masked", "factor", "absolute"):
        assert rows[0][f"gradient_{term}"] > 0
        assert f"gradient_{term}" not in rows[1]
        assert f"loss_{term}" in rows[1]


def test_labels_are_never_read(motifs, quick):
    class Poison:
        def __getattr__(self, name):
            raise AssertionError(f"a label was read: {name}")

    poisoned = replace(motifs, labels=Poison())
    poisoned.__dict__["content_hash"] = motifs.content_hash
    with_poison = train(poisoned, training=quick(epochs=1))
    without = train(motifs, training=quick(epochs=1))
    np.testing.assert_array_equal(embed_with(with_poison.model, motifs), embed_with(without.model, motifs))


def test_saved_model_embeds_as_the_run_did(motifs, quick, tmp_path):
    run = train(motifs, training=quick(epochs=1), out=tmp_path / "r")
    model = model_of(tmp_path / "r")
    np.testing.assert_array_equal(embed_with(model, motifs), embed_with(run.model, motifs))


def test_pickle_in_place_of_a_model_is_refused_unread(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "boom"), "w"))

    torch.save({"weights": Bomb()}, tmp_path / "model.safetensors")
    with pytest.raises(DamagedFileError, match="pickle"):
        load_model(tmp_path / "model.safetensors")
    assert not (tmp_path / "boom").exists()


def test_flipped_byte_anywhere_in_a_model_is_noticed(motifs, quick, tmp_path):
    train(motifs, settings={"encoder.width": 4, "encoder.depth": 1, "factors": 2},
          training=quick(epochs=1), out=tmp_path / "r")  # fmt: skip
    path = tmp_path / "r" / "model.safetensors"
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(content), 60):
        flipped = bytearray(content)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(DamagedFileError):
            load_model(path)


def test_graphs_with_unknown_node_labels_are_refused_by_name(quick):
    networkx = pytest.importorskip("networkx")

    def graphs(atoms):
        graph = networkx.path_graph(3)
        networkx.set_node_attributes(graph, dict(enumerate(atoms)), "atom")
        return open_collection([graph] * 10)

    run = train(graphs("CNO"), training=quick(epochs=1))
    assert embed_with(run.model, graphs("OOC")).shape == (10, 96)
    with pytest.raises(DataError, match="'S'"):
        embed_with(run.model, graphs("CNS"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weak_rate": 0.5}, "weak rate 0.5 must be below"),
        ({"factors": 1}, "factors must be at least 2 and at most"),
        ({"margin": -1.0}, "must not be negative"),
        ({"weight_temperature": 0.0}, "must be positive"),
        ({"operations": ["fly"]}, "unknown view 'fly'"),
        ({"distance_space": "round"}, "distance_space"),
        ({"encoder.widht": 3}, "did you mean 'width'"),
    ],
)
def test_wrong_settings_are_named(motifs, settings, message):
    with pytest.raises(ConfigError, match=message):
        train(motifs, settings=settings)


@pytest.mark.parametrize(
    "changes", [{"epochs": -1}, {"batch_size": 0}, {"learning_rate": 0.0}, {"clip": -1.0}]
)
def test_wrong_training_settings_are_refused(changes):
    with pytest.raises(ConfigError):
        TrainSettings(**changes)


def test_missing_device_is_never_replaced_silently(motifs, quick):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigError, match="no usable cuda"):
        train(motifs, training=quick(), device="cuda")


def test_bf16_trains(motifs, quick):
    run = train(motifs, training=quick(epochs=1, precision="bf16"))
    assert np.isfinite(run.metrics.rows[0]["loss"])
