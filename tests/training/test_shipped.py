"""The model that comes with the package: small, offline, and its vectors are those of its weights."""

import csv

import numpy as np
import pytest
import torch

pytest.importorskip("rdkit")

from graphsc import GraphEmbedder
from graphsc.cli import main
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.training.model_io import card_of, find_model, load_model, shipped_models

NAME = "graphsc-moses"
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.fixture(scope="module")
def embedder():
    return GraphEmbedder.from_pretrained(NAME)


def by_loops(smiles):
    """Hu et al.'s network in evaluation mode, an atom and a bond at a time, from the file's weights."""
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
def test_vectors_are_those_of_its_weights(embedder, smiles):
    np.testing.assert_allclose(embedder.transform([smiles])[0], by_loops(smiles), rtol=1e-3, atol=1e-4)


def test_a_molecule_has_one_vector_however_it_is_written(embedder):
    one, other, none = embedder.transform([ASPIRIN, "O=C(C)Oc1c(C(=O)O)cccc1", "no molecule"])
    np.testing.assert_allclose(one, other, atol=1e-4)
    assert np.isnan(none).all()


def test_it_is_small_and_says_how_far_it_went():
    path = shipped_models()[NAME]
    assert path.stat().st_size < 8_000_000
    card = card_of(path)
    assert (card.name, card.method, card.data, card.dimensions) == (NAME, "graphsc", "MOSES", 300)
    assert card.seen == card.epochs * card.graphs
    assert len(card.losses) == card.epochs
    assert card.losses[-1] < card.losses[0]
    assert card.after > card.before > card.chance
    assert card.licence == "MIT"


def test_it_embeds_a_table_by_its_name(tmp_path, capsys):
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


def test_its_weights_are_not_its_first_ones():
    model = load_model(find_model(NAME))
    fresh = model.recipe.build(model.features, 0).encoder.state_dict()
    learned = model.method.encoder.state_dict()
    moved = [name for name in fresh if not torch.allclose(fresh[name].float(), learned[name].float())]
    assert {f"blocks.{layer}.first.weight" for layer in range(5)} <= set(moved)
