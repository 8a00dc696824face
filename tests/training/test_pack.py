"""Packed models: small, true to the run, found by name, with their card."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.data.readers import open_collection
from graphsc.training.model_io import Card, card_of, find_model, pack, read_card, shipped_models
from graphsc.training.pretrain import pretrain
from graphsc.training.train import model_of, train
from graphsc.training.trainer import TrainSettings

pytest.importorskip("rdkit")
SMILES = ["C" * length + tail for length in range(1, 15) for tail in ("", "O", "N", "c1ccccc1", "C(=O)O")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    pretrain(SMILES, settings={"encoder.depth": 3, "encoder.width": 60}, epochs=2, out=folder, licence="MIT")
    return folder


def test_half_precision_embeds_to_a_thousandth(run, tmp_path):
    molecules = open_collection(SMILES)
    whole = model_of(run).embed(molecules)
    pack(run, tmp_path / "full.safetensors", half=False)
    np.testing.assert_array_equal(model_of(tmp_path / "full.safetensors").embed(molecules), whole)
    pack(run, tmp_path / "half.safetensors")
    halved = model_of(tmp_path / "half.safetensors")
    rows = halved.embed(molecules)
    assert np.linalg.norm(rows - whole) < 1e-3 * np.linalg.norm(whole)
    assert (np.linalg.norm(rows - whole, axis=1) < 2e-3 * np.linalg.norm(whole, axis=1)).all()
    assert {weight.dtype for weight in halved.method.parameters()} == {torch.float32}


def test_only_the_encoder_is_in_the_file(run, tmp_path):
    pack(run, tmp_path / "p.safetensors")
    names = load_file(tmp_path / "p.safetensors")
    own = model_of(run).method.encoder.state_dict().keys()
    assert {name for name in names if not name.endswith(".scale")} == own
    assert names["blocks.0.first.weight"].dtype == torch.int16
    assert names["blocks.0.norm.running_var"].dtype == torch.float32
    assert (tmp_path / "p.safetensors").stat().st_size < (run / "model.safetensors").stat().st_size / 2


def test_card_goes_with_the_file_under_its_new_name(run, tmp_path):
    packed = pack(run, tmp_path / "p.safetensors", name="small")
    assert packed.name == "small"
    assert card_of(tmp_path / "p.safetensors") == packed
    assert (
        card_of(run) == read_card(run / "card.json") == Card(**{**vars(packed), "name": "graphsc-molecules"})
    )


def test_models_by_name(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path))
    pack(run, tmp_path / "tiny-one.safetensors")
    assert shipped_models()["tiny-one"] == tmp_path / "tiny-one.safetensors"
    assert model_of("tiny-one").dimensions == 60
    with pytest.raises(NotFoundError, match=r"called 'tiny-on'.*did you mean 'tiny-one'\? valid: .*tiny-one"):
        find_model("tiny-on")
    with pytest.raises(NotFoundError, match="cannot open model file"):
        model_of("no/such.safetensors")


def test_a_folder_comes_before_a_name(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path))
    pack(run, tmp_path / "r.safetensors")
    monkeypatch.chdir(run.parent)
    assert find_model("tiny") == run.relative_to(run.parent) / "model.safetensors"


def test_model_without_a_card_packs_without_one(tmp_path):
    none = TrainSettings(epochs=0)
    train(open_collection("motifs:20"), settings={"encoder.width": 8}, training=none, out=tmp_path / "r")
    assert pack(tmp_path / "r", tmp_path / "p.safetensors") is None
    assert card_of(tmp_path / "p.safetensors") is None
    assert model_of(tmp_path / "p.safetensors").embed(open_collection("motifs:3")).shape == (3, 24)


@pytest.mark.parametrize("method", ["raw", "wl"])
def test_vectors_that_are_not_an_encoders_are_refused(tmp_path, method):
    train(open_collection("motifs:20"), method, out=tmp_path / "r")
    with pytest.raises(ConfigError, match="not those of an encoder"):
        pack(tmp_path / "r", tmp_path / "p.safetensors")


def test_a_spoilt_card_is_named(run, tmp_path):
    values = json.loads((run / "card.json").read_text())
    for spoilt in ({**values, "epochs": "two"}, {**values, "format": "x"}, [1]):
        (tmp_path / "card.json").write_text(json.dumps(spoilt))
        with pytest.raises(DamagedFileError, match="card"):
            read_card(tmp_path / "card.json")
