"""AttrMasking: what is hidden, how many, and what is predicted."""

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.methods.masking import hidden_nodes, hide_nodes

SMALL = {"encoder.depth": 2, "encoder.width": 8}


@pytest.fixture(scope="module")
def molecules(made_up_molecules):
    return made_up_molecules[:20]


def made(molecules, **settings):
    return make_recipe("attrmasking", molecules, SMALL | settings, encoder="molecule-gin").build(
        molecules.features, 0
    )


@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_so_many_nodes_are_hidden_by_the_token(molecules, rate):
    batch = GraphBatch.of(molecules)
    masked = hide_nodes(batch, rate, torch.Generator().manual_seed(0))
    hidden = masked.codes[:, 0] == 119
    for g in range(20):
        size = int(batch.ptr[g + 1] - batch.ptr[g])
        assert int(hidden[batch.ptr[g] : batch.ptr[g + 1]].sum()) == int(rate * size + 1)
    assert not masked.codes[hidden, 1].any()
    assert torch.equal(masked.codes[~hidden], batch.codes[~hidden])
    assert torch.equal(hidden_nodes(masked), hidden.nonzero().flatten())


def test_without_a_token_the_row_is_empty():
    batch = GraphBatch.of(open_collection("motifs:5"))
    masked = hide_nodes(batch, 0.15, torch.Generator().manual_seed(0))
    where = hidden_nodes(masked)
    assert len(where) == sum(int(0.15 * size + 1) for size in batch.ptr.diff().tolist())
    assert not masked.dense_x()[where].any()
    assert len(hidden_nodes(batch)) == 0


def test_a_lone_node_is_hidden_and_no_more(make):
    batch = GraphBatch.of(make([(1, []), (2, [])]))
    masked = hide_nodes(batch, 0.9, torch.Generator().manual_seed(0))
    assert hidden_nodes(masked).tolist() == [0, 1, 2]


def test_the_loss_is_the_cross_entropy_of_the_true_kinds(molecules):
    method, batch = made(molecules), GraphBatch.of(molecules)
    views = method.views(batch, torch.Generator().manual_seed(0))
    found = method.objective(method.encode(views))["atoms"]
    with torch.no_grad():
        rows = method.encoder.nodes(views["masked"])
    total, count = 0.0, 0
    for node, code in enumerate(views["masked"].codes[:, 0].tolist()):
        if code == 119:
            logits = (method.kinds.weight @ rows[node] + method.kinds.bias).double()
            total -= (logits[batch.codes[node, 0]] - logits.exp().sum().log()).item()
            count += 1
    assert method.kinds.out_features == 119
    assert found.item() == pytest.approx(total / count, rel=1e-4)


def test_bonds_of_hidden_atoms_are_hidden_and_predicted_from_both_ends(molecules):
    method, batch = made(molecules, mask_bonds=True), GraphBatch.of(molecules)
    views = method.views(batch, torch.Generator().manual_seed(0))
    masked = views["masked"]
    atoms = set(hidden_nodes(masked).tolist())
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
    found = method.objective(method.encode(views))["bonds"]
    assert found.item() == pytest.approx(total / count, rel=1e-4)


def test_pretext_is_accuracy_beside_the_commonest_kind(molecules):
    method = made(molecules)
    with torch.no_grad():
        method.kinds.weight.zero_()
        method.kinds.bias.zero_()
        method.kinds.bias[7] = 1.0  # always says 7
    encoded = {"hidden": torch.zeros(5, 8), "kind": torch.tensor([7.0, 5.0, 5.0, 5.0, 7.0])}
    found = method.pretext(encoded)
    assert (found.score, found.chance) == (0.4, 0.6)


@pytest.mark.parametrize("features", ["constant", "attributes"])
def test_graphs_without_a_kind_are_refused_in_words(make, features):
    import numpy as np

    from graphsc.data.columns import FeatureTable

    table = FeatureTable.of(3, floats=np.ones((3, 1)), float_names=["mass"])
    graphs = make([(3, [])], nodes=table, features=features)
    with pytest.raises(ConfigError, match="categorical column"):
        make_recipe("attrmasking", graphs).build(graphs.features, 0)


def test_bonds_need_an_encoder_that_sees_them(molecules):
    with pytest.raises(ConfigError, match="sees bonds"):
        make_recipe("attrmasking", molecules, {"mask_bonds": True}).build(molecules.features, 0)


def test_a_rate_of_one_is_refused(molecules):
    with pytest.raises(ConfigError, match="rate"):
        made(molecules, rate=1.0)
