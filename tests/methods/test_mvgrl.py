"""MVGRL: what is scored against what, and what the embedding is."""

import math

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders.inference import embed
from graphsc.encoders.readout import pool
from graphsc.methods import make_recipe
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:12")


def build(graphs, **settings):
    return make_recipe("mvgrl", graphs, settings).build(graphs.features, 0)


def views_of(method, graphs):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))


def softplus(value):
    return math.log1p(math.exp(-abs(value))) + max(value, 0)


def information(nodes, graphs, graph):
    """InfoGraph's loss, one pair of a node and a graph at a time."""
    positive = negative = 0.0
    for i, row in enumerate(nodes):
        for b, other in enumerate(graphs):
            score = float(row @ other)
            if b == int(graph[i]):
                positive += math.log(2) - softplus(-score)
            else:
                negative += softplus(-score) + score - math.log(2)
    return negative / (len(nodes) * (len(graphs) - 1)) - positive / len(nodes)


def test_nodes_of_each_view_are_scored_against_graphs_of_the_other(graphs):
    method = build(graphs).double()
    views = views_of(method, graphs)
    encoded = method.encode(views)
    found = method.objective(encoded)
    graph = views["anchor"].batch
    with torch.no_grad():
        nodes, diffused = (method.local_head(encoded[name]) for name in ("local", "diffused"))
        first, second = (method.global_head(encoded[name]) for name in ("anchor", "positive"))
    assert float(found["nodes"].detach()) == pytest.approx(information(nodes, second, graph))
    assert float(found["diffused"].detach()) == pytest.approx(information(diffused, first, graph))


def test_each_view_has_its_own_encoder_and_its_last_layer_is_local(graphs):
    method = build(graphs)
    views = views_of(method, graphs)
    encoded = method.encode(views)
    layers = [
        encoder.node_layers(views[name])
        for encoder, name in ((method.encoder, "anchor"), (method.diffusion_encoder, "diffusion"))
    ]
    torch.testing.assert_close(encoded["local"], layers[0][-1])
    torch.testing.assert_close(encoded["diffused"], layers[1][-1])
    pooled = torch.cat([pool(views["diffusion"], nodes, "sum") for nodes in layers[1]], dim=1)
    torch.testing.assert_close(encoded["positive"], pooled)
    weights = [each.blocks[0].second.weight for each in (method.encoder, method.diffusion_encoder)]
    assert not torch.equal(*weights)


@pytest.mark.parametrize(("embedding", "width"), [("projected", 32), ("encoders", 96)])
def test_the_embedding_is_the_sum_over_both_views(graphs, embedding, width):
    method = build(graphs, embedding=embedding).eval()
    views = views_of(method, graphs)
    with torch.no_grad():
        encoded = method.encode(views)
        rows = [encoded["anchor"], encoded["positive"]]
        if embedding == "projected":
            rows = [method.global_head(each) for each in rows]
    np.testing.assert_allclose(embed(method, graphs), rows[0] + rows[1], rtol=1e-4, atol=1e-4)
    assert method.dimensions(graphs.features) == width


def test_as_published_only_the_heads_learn(graphs):
    run = train(graphs, "mvgrl", settings={"train_encoders": False}, training=TrainSettings(epochs=2))
    before = build(graphs, train_encoders=False)
    changed = {
        name.split(".")[0]
        for (name, value), start in zip(run.model.method.named_parameters(), before.parameters(), strict=True)
        if not torch.equal(value, start)
    }
    assert changed == {"local_head", "global_head"}


def test_the_published_preset_does_not_train_encoders(graphs):
    assert make_recipe("mvgrl", graphs, preset="published").settings["train_encoders"] is False


def test_the_score_is_how_often_own_nodes_are_above_others(graphs):
    method = build(graphs)
    method.local_head = method.global_head = torch.nn.Identity()
    encoded = {
        "anchor": torch.zeros(2, 2),
        "positive": torch.eye(2),
        "local": torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
        "size": torch.tensor([2, 1]),
    }
    # Own pairs score 1, 0 and 0.5; the others 0, 1 and 0.5. Of nine comparisons 3 hold and 3 are ties.
    assert method.pretext(encoded).score == pytest.approx((3 + 3 / 2) / 9)


def test_an_encoder_without_a_second_of_its_kind_is_refused(graphs):
    class Single(torch.nn.Module):
        dimensions, readout = 4, "sum"

        def nodes(self, batch):
            return torch.zeros(batch.num_nodes, 4)

    from graphsc.methods.mvgrl import MVGRL

    with pytest.raises(ConfigError, match="second encoder"):
        MVGRL(Single())
