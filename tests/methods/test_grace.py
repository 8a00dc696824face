"""GRACE: which nodes are contrasted with which, and the loss against its equation."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.grace import GRACE


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:12]


def build(graphs, name="grace", **settings):
    return make_recipe(name, graphs, settings).build(graphs.features, 0)


def views_of(method, graphs, seed=0):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("negatives", ["batch", "graph"])
def test_the_loss_is_the_equation_written_out(graphs, negatives):
    method = build(graphs, negatives=negatives, temperature=0.3, **{"encoder.width": 4})
    views = views_of(method, graphs)
    loss = method.objective(method.encode(views))["contrast"]
    with torch.no_grad():
        u, v = (
            [nn.functional.normalize(method.head(row), dim=0).tolist() for row in method.encoder.nodes(view)]
            for view in (views["anchor"], views["positive"])
        )
    graph = views["anchor"].batch.tolist()

    def score(a, b):
        return math.exp(sum(x * y for x, y in zip(a, b, strict=True)) / 0.3)

    total = 0.0
    for one, other in ((u, v), (v, u)):
        for i, row in enumerate(one):
            own = below = score(row, other[i])
            for k in range(len(one)):
                if k != i and (negatives == "batch" or graph[k] == graph[i]):
                    below += score(row, other[k]) + score(row, one[k])
            total -= math.log(own / below)
    assert loss.item() == pytest.approx(total / (2 * len(u)), rel=1e-4)


def test_the_head_has_an_elu_between_two_layers(graphs):
    head = build(graphs).head
    assert [type(part) for part in head] == [nn.Linear, nn.ELU, nn.Linear]
    assert head[2].out_features == 32


def test_both_views_keep_all_nodes(graphs):
    views = views_of(build(graphs), graphs)
    assert views["anchor"].num_nodes == views["positive"].num_nodes == graphs.num_nodes
    assert views["anchor"].num_edges != views["positive"].num_edges


def test_at_most_so_many_nodes_are_contrasted(graphs):
    for count, expected in ((30, 30), (10_000, graphs.num_nodes), (None, graphs.num_nodes)):
        encoded = build(graphs, max_nodes=count)
        encoded = encoded.encode(views_of(encoded, graphs))
        assert len(encoded["nodes"]) == len(encoded["copies"]) == expected == int(encoded["size"].sum())


def test_within_graphs_nodes_of_a_graph_are_drawn_together(graphs):
    method = build(graphs, max_nodes=60, negatives="graph")
    size = method.encode(views_of(method, graphs))["size"]
    assert int(((size > 0) & (size < GraphBatch.of(graphs).ptr.diff())).sum()) <= 1


def test_the_chosen_nodes_are_the_same_in_both_views(graphs):
    method = build(graphs, max_nodes=20, edge_rates=[0.0, 0.0], feature_rates=[0.0, 0.0]).eval()
    encoded = method.encode(views_of(method, graphs))
    torch.testing.assert_close(encoded["nodes"], encoded["copies"])


def test_embeddings_are_the_encoders_readout(graphs):
    method = build(graphs).eval()
    batch = GraphBatch.of(graphs)
    torch.testing.assert_close(method.embed(batch), method.encoder(batch))


def test_pretext_is_certain_without_perturbation(graphs):
    # Different molecules, and of each only the nodes that differ; nodes alike share the score.
    method = build(graphs, edge_rates=[0.0, 0.0], feature_rates=[0.0, 0.0]).eval()
    encoded = method.encode(views_of(method, graphs))
    rows = np.unique(encoded["nodes"].detach().round(decimals=3).numpy(), axis=0)
    score = method.pretext({"nodes": torch.from_numpy(rows), "copies": torch.from_numpy(rows)})
    assert score.score == pytest.approx(1.0)
    assert score.chance == 1 / len(rows)


def test_the_published_preset(graphs):
    recipe = make_recipe("grace", graphs, preset="published")
    assert (recipe.encoder_settings["depth"], recipe.encoder_settings["width"]) == (2, 128)
    assert recipe.settings["max_nodes"] is None
    assert training_settings("grace", "published", graphs.name)["epochs"] == 200


@pytest.mark.parametrize(
    "settings",
    [{"edge_rates": [0.2, 1.0]}, {"feature_rates": [-0.1, 0.2]}, {"temperature": 0.0}, {"max_nodes": 1},
     {"projection_width": 0}],
)  # fmt: skip
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        GRACE(nn.Linear(3, 3))
