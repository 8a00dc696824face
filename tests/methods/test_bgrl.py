"""BGRL: the loss against its equation, and the moving average that is its target."""

import math

import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.bgrl import BGRL


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:9]


def build(graphs, **settings):
    return make_recipe("bgrl", graphs, settings).build(graphs.features, 0)


def views_of(method, graphs, seed=0):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("count", [None, 25])
def test_the_loss_is_the_equation_written_out(graphs, count):
    method = build(graphs, max_nodes=count)
    with torch.no_grad():
        for parameter in method.target.parameters():
            parameter += 0.1  # another network than the encoder
    views = views_of(method, graphs)
    loss = method.objective(method.encode(views))["bootstrap"]
    first, second = views["anchor"], views["positive"]
    chosen = views.sampled["chosen"]
    with torch.no_grad():
        predictions = [method.predictor(method.encoder.nodes(view)[chosen]) for view in (first, second)]
        targets = [method.target(view) for view in (second, first)]
    graph = first.batch[chosen].tolist()
    total = 0.0
    for rows, graphs_ in zip(predictions, targets, strict=True):
        for row, g in zip(rows, graph, strict=True):
            total += 1 - float(row @ graphs_[g]) / float(row.norm() * graphs_[g].norm())
    assert loss.item() == pytest.approx(total / len(graph), rel=1e-4)
    assert len(graph) == (count or first.num_nodes)


def test_the_target_begins_as_the_encoder_and_learns_nothing_by_gradient(graphs):
    method = build(graphs)
    batch = GraphBatch.of(graphs)
    torch.testing.assert_close(method.target(batch), method.encoder(batch))
    [player] = method.players()
    own = {id(parameter) for parameter in method.target.parameters()}
    assert own
    assert not own & {id(parameter) for parameter in player.parameters}


@pytest.mark.parametrize(
    ("rising", "progress", "kept"),
    [(True, 0.0, 0.9), (True, 0.5, 0.95), (True, 1.0, 1.0), (False, 1.0, 0.9)],
)
def test_a_step_moves_the_target_by_the_momentum(graphs, rising, progress, kept):
    method = build(graphs, momentum=0.9, rising=rising)
    before = [parameter.clone() for parameter in method.target.parameters()]
    with torch.no_grad():
        for parameter in method.encoder.parameters():
            parameter += 1.0
    method.after_step({}, progress)
    for own, old in zip(method.target.parameters(), before, strict=True):
        torch.testing.assert_close(own, old + (1 - kept))


def test_the_momentum_rises_as_a_cosine(graphs, monkeypatch):
    method, given = build(graphs), []
    monkeypatch.setattr(method.target, "update", lambda encoder, momentum: given.append(momentum))
    for progress in (0.1, 0.3, 0.8):
        method.after_step({}, progress)
    expected = [1 - 0.01 * (math.cos(math.pi * progress) + 1) / 2 for progress in (0.1, 0.3, 0.8)]
    assert given == pytest.approx(expected)


def test_embeddings_are_those_of_the_encoder_not_of_the_target(graphs):
    method = build(graphs).eval()
    batch = GraphBatch.of(graphs)
    with torch.no_grad():
        for parameter in method.target.parameters():
            parameter.zero_()
    torch.testing.assert_close(method.embed(batch), method.encoder(batch))


def test_the_predictor_has_batch_norm_and_prelu(graphs):
    parts = [type(part).__name__ for part in build(graphs).predictor]
    assert parts == ["Linear", "BatchNorm", "PReLU", "Linear"]


def test_the_published_preset(graphs):
    recipe = make_recipe("bgrl", graphs, preset="published")
    assert recipe.settings["edge_rates"] == (0.2, 0.2)
    assert training_settings("bgrl", "published", graphs.name)["epochs"] == 100


@pytest.mark.parametrize("settings", [{"momentum": 1.5}, {"edge_rates": [0.1, 1.0]}, {"max_nodes": 0}])
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        BGRL(nn.Linear(3, 3))
