"""Packed models, quantisation, models by name, and the model that comes with the package."""

import csv
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from graphsc import GraphEmbedder
from graphsc.cli import main
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.training.model_io import (
    Card,
    available_models,
    card_of,
    dequantize_int16,
    find_model,
    load_model,
    pack,
    quantize_int16,
    read_card,
)
from graphsc.training.pretrain import pretrain
from graphsc.training.train import model_of, train
from graphsc.training.trainer import TrainSettings

SMILES = ["C" * length + tail for length in range(1, 15) for tail in ("", "O", "N", "c1ccccc1", "C(=O)O")]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    pretrain(SMILES, settings={"encoder.depth": 3, "encoder.width": 60}, epochs=2, out=folder, licence="MIT")
    return folder


def test_quantised_model_embeds_to_a_thousandth(run, tmp_path):
    molecules = open_collection(SMILES)
    whole = model_of(run).embed(molecules)
    pack(run, tmp_path / "full.safetensors", half=False)
    np.testing.assert_array_equal(model_of(tmp_path / "full.safetensors").embed(molecules), whole)
    pack(run, tmp_path / "half.safetensors")
    quantised = model_of(tmp_path / "half.safetensors")
    rows = quantised.embed(molecules)
    assert np.linalg.norm(rows - whole) < 1e-3 * np.linalg.norm(whole)
    assert (np.linalg.norm(rows - whole, axis=1) < 2e-3 * np.linalg.norm(whole, axis=1)).all()
    assert {weight.dtype for weight in quantised.method.parameters()} == {torch.float32}


def test_only_the_encoder_is_in_the_file(run, tmp_path):
    pack(run, tmp_path / "p.safetensors")
    names = load_file(tmp_path / "p.safetensors")
    own = model_of(run).method.encoder.state_dict().keys()
    assert {name for name in names if not name.endswith(".scale")} == own
    assert names["blocks.0.first.weight"].dtype == torch.int16
    assert names["blocks.0.norm.running_var"].dtype == torch.float32
    assert (tmp_path / "p.safetensors").stat().st_size < (run / "model.safetensors").stat().st_size / 2


def test_card_is_in_the_file_under_its_new_name(run, tmp_path):
    packed = pack(run, tmp_path / "p.safetensors", name="small")
    assert packed.name == "small"
    assert card_of(tmp_path / "p.safetensors") == packed
    assert (
        card_of(run) == read_card(run / "card.json") == Card(**{**vars(packed), "name": "graphsc-molecules"})
    )


def test_models_by_name(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path))
    pack(run, tmp_path / "tiny-one.safetensors")
    assert available_models()["tiny-one"] == tmp_path / "tiny-one.safetensors"
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
def test_methods_that_do_not_embed_by_an_encoder_are_refused(tmp_path, method):
    train(open_collection("motifs:20"), method, out=tmp_path / "r")
    with pytest.raises(ConfigError, match="not those of an encoder"):
        pack(tmp_path / "r", tmp_path / "p.safetensors")


def test_a_damaged_card_is_refused(run, tmp_path):
    values = json.loads((run / "card.json").read_text())
    for damaged in ({**values, "epochs": "two"}, {**values, "format": "x"}, [1]):
        (tmp_path / "card.json").write_text(json.dumps(damaged))
        with pytest.raises(DamagedFileError, match="card"):
            read_card(tmp_path / "card.json")


def test_quantised_matrices_are_exact_to_half_a_step_of_their_row():
    weights = {"w": torch.randn(40, 30) * torch.logspace(-6, 6, 40)[:, None], "n": torch.randn(7)}
    stored = quantize_int16(weights)
    assert stored["w"].dtype == torch.int16
    assert stored["n"] is weights["n"]
    back = dequantize_int16(stored)
    assert back.keys() == weights.keys()
    step = weights["w"].abs().amax(1, keepdim=True) / 32767
    assert ((back["w"] - weights["w"]).abs() <= 0.501 * step).all()


def test_zeros_and_integers_are_quantised_exactly():
    weights = {"zero": torch.zeros(2, 3), "count": torch.tensor([[3, 4]]), "scalar": torch.tensor(5)}
    back = dequantize_int16(quantize_int16(weights))
    for name, value in weights.items():
        assert torch.equal(back[name], value)


NAME = "graphsc-moses"
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.fixture(scope="module")
def embedder():
    pytest.importorskip("rdkit")
    return GraphEmbedder.from_pretrained(NAME)


def by_loops(smiles):
    """Hu et al.'s network in evaluation mode by explicit loops, from the weights in the file."""
    model = load_model(find_model(NAME))
    batch = GraphBatch.of(open_collection([smiles]).with_features(model.features))
    state = {name: value.double().numpy() for name, value in model.method.encoder.state_dict().items()}
    source, destination = (part.tolist() for part in batch.edge_index)
    bonds = batch.edge_codes.tolist()
    x = [
        state["atoms.atom.weight"][atom] + state["atoms.chirality.weight"][turn]
        for atom, turn in batch.codes.tolist()
    ]
    for layer in range(5):
        own = {key.removeprefix(f"blocks.{layer}."): value for key, value in state.items()}
        total = [x[i] + own["bond.weight"][4] + own["direction.weight"][0] for i in range(len(x))]
        for start, end, (bond, direction) in zip(source, destination, bonds, strict=True):
            total[end] = total[end] + x[start] + own["bond.weight"][bond] + own["direction.weight"][direction]
        after = []
        for row in total:
            hidden = np.maximum(own["first.weight"] @ row + own["first.bias"], 0)
            hidden = own["second.weight"] @ hidden + own["second.bias"]
            scale = own["norm.weight"] / np.sqrt(own["norm.running_var"] + 1e-5)
            hidden = (hidden - own["norm.running_mean"]) * scale + own["norm.bias"]
            after.append(np.maximum(hidden, 0) if layer < 4 else hidden)
        x = after
    return np.mean(x, axis=0)


@pytest.mark.parametrize("smiles", ["CCO", ASPIRIN, "C/C=C/[C@H](F)Cl"])
def test_packaged_model_embeds_as_its_weights_say(embedder, smiles):
    np.testing.assert_allclose(embedder.transform([smiles])[0], by_loops(smiles), rtol=1e-3, atol=1e-4)


def test_packaged_model_does_not_depend_on_the_notation_of_a_molecule(embedder):
    one, other, none = embedder.transform([ASPIRIN, "O=C(C)Oc1c(C(=O)O)cccc1", "no molecule"])
    np.testing.assert_allclose(one, other, atol=1e-4)
    assert np.isnan(none).all()


def test_packaged_model_is_small_and_has_a_card():
    path = available_models()[NAME]
    assert path.stat().st_size < 8_000_000
    card = card_of(path)
    assert (card.name, card.method, card.data, card.dimensions) == (NAME, "graphsc", "MOSES", 300)
    assert card.seen == card.epochs * card.graphs
    assert len(card.losses) == card.epochs
    assert card.losses[-1] < card.losses[0]
    assert card.after > card.before > card.chance
    assert card.licence == "MIT"


def test_packaged_model_embeds_a_table_by_its_name(tmp_path, capsys):
    pytest.importorskip("rdkit")
    (tmp_path / "mols.csv").write_text(f"name,smiles\na,CCO\nb,nothing\nc,{ASPIRIN}\n")
    out = tmp_path / "e.csv"
    assert main.run(["embed", NAME, str(tmp_path / "mols.csv"), "--out", str(out)]) == 0
    with open(out, newline="") as file:
        good, bad, aspirin = csv.DictReader(file)
    expected = by_loops(ASPIRIN)
    found = [float(aspirin[f"v{i}"]) for i in range(300)]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert {bad[f"v{i}"] for i in range(300)} == {"nan"}
    assert bad["reason"] == "not a SMILES string"
    assert not good["reason"]


def test_packaged_model_is_trained():
    model = load_model(find_model(NAME))
    fresh = model.recipe.build(model.features, 0).encoder.state_dict()
    learned = model.method.encoder.state_dict()
    moved = [name for name in fresh if not torch.allclose(fresh[name].float(), learned[name].float())]
    assert {f"blocks.{layer}.first.weight" for layer in range(5)} <= set(moved)


PLUS = "graphsc-plus-molecules"


def test_the_model_with_descriptors_is_small_and_its_card_says_how_it_compares():
    path = available_models()[PLUS]
    assert path.stat().st_size < 2_000_000
    card = card_of(path)
    assert (card.name, card.method, card.preset) == (PLUS, "graphsc-plus", "descriptors")
    assert card.data == "zinc250k+hiv+muv"
    assert card.seen > 50_000
    notes = " ".join(card.notes)
    assert notes.count("of downstream test sets excluded by InChIKey") == 3
    for part in ("validation", "test"):
        assert f"{part} part: " in notes
    assert "of ECFP fingerprints" in notes


def test_the_model_with_descriptors_embeds_as_its_weights_say():
    """The first block, signed roots of counts of atoms and bonds, before and after it is scaled."""
    pytest.importorskip("rdkit")
    state = load_model(find_model(PLUS)).method.encoder.state_dict()
    (vector,) = GraphEmbedder.from_pretrained(PLUS).transform([ASPIRIN])
    assert len(vector) == 2 * (144 + 5 * 128)
    counts = np.zeros(144)
    counts[[5, 7]] = 9, 4  # carbons and oxygens, by their atomic numbers less one
    counts[[120, 124]] = 13  # atoms without chirality, and without charge
    counts[[130, 131, 133]] = 7, 5, 1  # atoms with no, one and three hydrogens
    counts[[135, 136, 138, 139]] = 2 * 5, 2 * 2, 2 * 6, 13  # single, double, aromatic bonds, self-loops
    counts[141] = 2 * 13 + 13  # without direction
    mean, variance = (state[f"balanced.norm.running_{name}"].double().numpy() for name in ("mean", "var"))
    scale = np.sqrt((144 + 5 * 128) / 6 / (variance[:144].sum() + 1e-5))
    np.testing.assert_allclose(vector[:144], (np.sqrt(1 + counts) - 1 - mean[:144]) * scale, atol=1e-3)
    assert np.isfinite(vector).all()
