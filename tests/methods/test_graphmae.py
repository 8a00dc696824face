"""GraphMAE: which nodes are masked by what, and what the decoder may see."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:30")


def build(graphs, **settings):
    return make_recipe("graphmae", graphs, settings).build(graphs.features, 0)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.75])
def test_the_share_of_every_graph_is_masked(graphs, rate):
    batch = GraphBatch.of(graphs)
    views = build(graphs, rate=rate).views(batch, seeded())
    found = torch.bincount(batch.batch, views.sampled["masked"].double(), minlength=30)
    expected = [max(1, round(rate * size)) for size in batch.ptr.diff().tolist()]
    assert found.tolist() == expected


def test_a_tenth_of_the_masked_nodes_gets_features_of_other_nodes_and_the_rest_the_token(graphs):
    batch = GraphBatch.of(graphs)
    method = build(graphs, replace_rate=0.1)
    views = method.views(batch, seeded())
    masked, view = views.sampled["masked"], views["masked"]
    total, tokens = int(masked.sum()), len(view.replaced)
    assert total - tokens == int(0.1 * total)
    assert masked[view.replaced].all()
    rest = torch.ones_like(masked)
    rest[view.replaced] = False
    assert torch.equal(view.codes[rest & ~masked], batch.codes[rest & ~masked])
    assert torch.equal(views["anchor"].codes, GraphBatch.of(graphs).codes)


def test_nodes_with_another_nodes_features_have_the_frequencies_of_the_batch(graphs):
    batch = GraphBatch.of(graphs)
    method = build(graphs, rate=1.0, replace_rate=1.0)
    drawn = torch.cat([method.views(batch, seeded(seed))["masked"].codes[:, 0] for seed in range(30)])
    found, expected = (
        torch.bincount(codes, minlength=9) / len(codes) for codes in (drawn, batch.codes[:, 0])
    )
    assert (found - expected).abs().max() < 0.02


def test_features_with_a_code_for_masked_nodes_get_that_code(made_up_molecules):
    molecules = made_up_molecules[:8]
    method = build(molecules, replace_rate=0.0)
    views = method.views(GraphBatch.of(molecules), seeded())
    hidden = views["masked"].codes[:, 0] == molecules.features.hidden
    assert torch.equal(hidden, views.sampled["masked"])
    assert method.token is None


def test_masked_features_do_not_reach_the_reconstruction(graphs):
    method = build(graphs, replace_rate=0.0).eval()
    batch = GraphBatch.of(graphs)
    views = method.views(batch, seeded())
    changed = batch.codes.clone()
    changed[views.sampled["masked"]] = 1
    other = method.views(replace(batch, codes=changed), seeded())
    one, two = method.encode(views), method.encode(other)
    assert not torch.equal(one["target"], two["target"])
    torch.testing.assert_close(one["decoded"], two["decoded"])


def test_the_decoder_sees_neighbours_that_are_not_masked_alone(graphs):
    method = build(graphs).eval()
    batch = GraphBatch.of(graphs)
    views = method.views(batch, seeded())
    masked = views.sampled["masked"]
    with torch.no_grad():
        found = method.encode(views)["decoded"]
        token = method.token.expand(len(views["masked"].replaced), -1)
        nodes = method.encoder.node_layers(replace(views["masked"], replacement=token))[-1]
        mapped = nodes @ method.to_decoder.weight.T
        first, second = method.decoder.first.weight, method.decoder.second
        rows = []
        for node in masked.nonzero().flatten().tolist():
            around = batch.source[batch.rowptr[node] : batch.rowptr[node + 1]].long().tolist()
            total = sum((mapped[i] for i in around if not masked[i]), torch.zeros(32))
            hidden = (first @ total + method.decoder.bias).relu()
            rows.append(second.weight @ hidden + second.bias)
    torch.testing.assert_close(found, torch.stack(rows), rtol=1e-4, atol=1e-4)


def test_targets_are_the_original_features(graphs):
    method, batch = build(graphs), GraphBatch.of(graphs)
    views = method.views(batch, seeded())
    found = method.encode(views)["target"]
    np.testing.assert_array_equal(found, batch.dense_x()[views.sampled["masked"]])


def test_the_token_is_learned(graphs):
    method = build(graphs)
    views = method.views(GraphBatch.of(graphs), seeded())
    method.objective(method.encode(views))["reconstruction"].backward()
    assert method.token.grad.abs().sum() > 0


def test_the_score_counts_categories_found(graphs):
    target = torch.eye(graphs.features.width)[[0, 0, 1, 2]]
    decoded = torch.eye(graphs.features.width)[[0, 1, 1, 3]]
    found = build(graphs).pretext({"target": target, "decoded": decoded})
    assert (found.score, found.chance) == (0.5, 0.5)


def test_published_settings_depend_on_the_data_set(graphs):
    renamed = replace(graphs, name="PROTEINS")
    recipe = make_recipe("graphmae", renamed, preset="published")
    assert recipe.settings["gamma"] == 1.0
    assert recipe.encoder_settings["depth"] == 3
    assert recipe.encoder_settings["readout"] == "max"


@pytest.mark.parametrize("wrong", [{"rate": 1.5}, {"replace_rate": -0.1}, {"gamma": 0.5}])
def test_values_out_of_range_are_refused(graphs, wrong):
    with pytest.raises(ConfigError):
        build(graphs, **wrong)


def test_features_that_never_vary_are_refused():
    graphs = open_collection("motifs:4", features="constant")
    with pytest.raises(ConfigError, match="none that vary"):
        build(graphs)
