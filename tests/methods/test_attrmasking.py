"""AttrMasking: the loss of masked atoms and bonds, and its pretext score."""

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.methods import make_recipe
from graphsc.methods.pretraining import masked_nodes

SMALL = {"encoder.depth": 2, "encoder.width": 8}


@pytest.fixture(scope="module")
def molecules(made_up_molecules):
    return made_up_molecules[:20]


def build(molecules, **settings):
    return make_recipe("attrmasking", molecules, SMALL | settings, encoder="molecule-gin").build(
        molecules.features, 0
    )


def test_the_loss_is_the_cross_entropy_of_the_true_categories(molecules):
    method, batch = build(molecules), GraphBatch.of(molecules)
    views = method.views(batch, torch.Generator().manual_seed(0))
    result = method.objective(method.encode(views))["atoms"]
    with torch.no_grad():
        rows = method.encoder.nodes(views["masked"])
    total, count = 0.0, 0
    for node, code in enumerate(views["masked"].codes[:, 0].tolist()):
        if code == 119:
            logits = (method.kinds.weight @ rows[node] + method.kinds.bias).double()
            total -= (logits[batch.codes[node, 0]] - logits.exp().sum().log()).item()
            count += 1
    assert method.kinds.out_features == 119
    assert result.item() == pytest.approx(total / count, rel=1e-4)


def test_bonds_of_masked_atoms_are_masked_and_predicted_from_both_ends(molecules):
    method, batch = build(molecules, mask_bonds=True), GraphBatch.of(molecules)
    views = method.views(batch, torch.Generator().manual_seed(0))
    masked = views["masked"]
    atoms = set(masked_nodes(masked).tolist())
    with torch.no_grad():
        rows = method.encoder.nodes(masked)
    total, count = 0.0, 0
    for edge, (u, v) in enumerate(batch.edge_index.T.tolist()):
        if u in atoms or v in atoms:
            assert masked.edge_codes[edge].tolist() == [5, 0]
            if u < v:
                logits = (method.bonds.weight @ (rows[u] + rows[v]) + method.bonds.bias).double()
                total -= (logits[batch.edge_codes[edge, 0]] - logits.exp().sum().log()).item()
                count += 1
        else:
            assert masked.edge_codes[edge].tolist() == batch.edge_codes[edge].tolist()
    result = method.objective(method.encode(views))["bonds"]
    assert result.item() == pytest.approx(total / count, rel=1e-4)


def test_pretext_is_accuracy_and_chance_the_most_common_category(molecules):
    method = build(molecules)
    with torch.no_grad():
        method.kinds.weight.zero_()
        method.kinds.bias.zero_()
        method.kinds.bias[7] = 1.0  # always says 7
    encoded = {"hidden": torch.zeros(5, 8), "kind": torch.tensor([7.0, 5.0, 5.0, 5.0, 7.0])}
    result = method.pretext(encoded)
    assert (result.score, result.chance) == (0.4, 0.6)


@pytest.mark.parametrize("features", ["constant", "attributes"])
def test_graphs_without_a_category_are_refused(make, features):
    import numpy as np

    from graphsc.data.columns import FeatureTable

    table = FeatureTable.of(3, floats=np.ones((3, 1)), float_names=["mass"])
    graphs = make([(3, [])], nodes=table, features=features)
    with pytest.raises(ConfigError, match="categorical column"):
        make_recipe("attrmasking", graphs).build(graphs.features, 0)


def test_masked_bonds_need_an_encoder_that_uses_bonds(molecules):
    with pytest.raises(ConfigError, match="uses bonds"):
        make_recipe("attrmasking", molecules, {"mask_bonds": True}).build(molecules.features, 0)


def test_a_rate_of_one_is_refused(molecules):
    with pytest.raises(ConfigError, match="rate"):
        build(molecules, rate=1.0)
