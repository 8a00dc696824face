"""SUBG-CON: neighbourhoods against NetworkX's PageRank, and the loss against its equation."""

import math
from dataclasses import replace

import networkx
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.subgcon import SubgCon
from graphsc.views.subgraph import random_nodes


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:7]


def build(graphs, **settings):
    return make_recipe("subgcon", graphs, settings).build(graphs.features, 0)


def views_of(method, graphs, seed=0):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize("scaled", [True, False])
def test_the_loss_is_the_equation_written_out(graphs, scaled):
    method = build(graphs, centres=2, scaled=scaled, **{"encoder.width": 4})
    views = views_of(method, graphs)
    loss = method.objective(method.encode(views))["margin"]
    batch, is_centre = views["anchor"], views.sampled["centre"]
    with torch.no_grad():
        nodes = method.encoder.nodes(batch)
    rows = [slice(int(a), int(b)) for a, b in zip(batch.ptr[:-1], batch.ptr[1:], strict=True)]
    assert len(rows) == 14
    centres = [nodes[own][is_centre[own]][0] for own in rows]
    summaries = [nodes[own].mean(0).sigmoid() for own in rows]
    total = 0.0
    for i, centre in enumerate(centres):
        own, other = (
            sigmoid(float(centre @ summaries[k]) / (math.sqrt(12) if scaled else 1))
            for k in (i, (i + 1) % 14)
        )
        total += max(0.0, 0.75 - own + other)
    assert loss.item() == pytest.approx(total / 14, rel=1e-4)


def test_a_neighbourhood_are_the_nodes_of_highest_rank():
    """All nodes have another rank over degree; NetworkX ranks them."""
    graph = networkx.random_labeled_tree(30, seed=4)
    graphs = open_collection([graph], features="degree:30")
    method = build(graphs, size=7, centres=1, walk_steps=200)
    found = 0
    for seed in range(10):
        batch = GraphBatch.of(graphs)
        centre = int(random_nodes(batch, torch.Generator().manual_seed(seed)))
        view = views_of(method, graphs, seed)
        ranks = networkx.pagerank(graph, personalization={centre: 1.0}, tol=1e-12, max_iter=1000)
        scores = {node: rank / graph.degree[node] for node, rank in ranks.items() if node != centre}
        best = sorted(scores, key=scores.get, reverse=True)
        if scores[best[5]] - scores[best[6]] < 1e-6:
            continue  # a tie
        expected = graph.subgraph([centre, *best[:6]])
        assert view["anchor"].num_nodes == 7
        assert view["anchor"].num_edges == 2 * expected.number_of_edges()
        degrees = sorted(graph.degree[node] for node in expected)
        assert sorted(view["anchor"].codes[:, 0].tolist()) == degrees
        found += 1
    assert found >= 3


def test_neighbourhoods_have_one_centre_and_are_small(graphs):
    batch = GraphBatch.of(graphs)
    for settings, largest in (({"size": 4, "share": 1.0}, 4), ({"size": 99, "share": 0.25}, None)):
        views = views_of(build(graphs, centres=3, **settings), graphs)
        sub, centre = views["anchor"], views.sampled["centre"]
        assert sub.num_graphs == 3 * len(graphs)
        assert torch.bincount(sub.batch[centre], minlength=sub.num_graphs).tolist() == [1] * sub.num_graphs
        bound = torch.full((len(graphs),), largest) if largest else (batch.ptr.diff() * 0.25).ceil()
        assert (sub.ptr.diff() <= bound.repeat(3)).all()


def test_centres_are_drawn_uniformly():
    graphs = open_collection([networkx.star_graph(4)], features="degree")
    method = build(graphs, size=1, centres=500)
    view = views_of(method, graphs)["anchor"]
    assert view.num_nodes == 500
    hubs = int((view.codes[:, 0] == view.codes[:, 0].max()).sum())
    assert abs(hubs - 100) < 5 * math.sqrt(500 * 0.2 * 0.8)


def test_nodes_that_no_walk_reaches_stay_out():
    graph = networkx.disjoint_union(networkx.path_graph(3), networkx.path_graph(7))
    graphs = open_collection([graph])
    method = build(graphs, size=10, share=1.0, centres=30)
    sizes = set(views_of(method, graphs)["anchor"].ptr.diff().tolist())
    assert sizes == {3, 7}


def test_graphs_without_nodes_have_no_neighbourhood():
    graphs = open_collection([networkx.path_graph(4), networkx.path_graph(5)])
    method = build(graphs, centres=2)
    batch = GraphBatch.of(graphs)
    batch = replace(batch, ptr=torch.tensor([0, 4, 4, 9]), y=None, index=None)
    encoded = method.encode(method.views(batch, torch.Generator().manual_seed(0)))
    assert len(encoded["anchor"]) == len(encoded["centre"]) == 4


def test_a_single_neighbourhood_has_no_loss_but_a_gradient(graphs):
    method = build(graphs, centres=1)
    loss = method.objective(method.encode(views_of(method, graphs[:1])))["margin"]
    assert loss.item() == 0
    loss.backward()
    assert all(parameter.grad is not None for parameter in method.parameters())


def test_the_published_preset(graphs):
    assert make_recipe("subgcon", graphs, preset="published").encoder_settings["width"] == 1024
    assert training_settings("subgcon", "published", graphs.name)["learning_rate"] == 1e-3


@pytest.mark.parametrize(
    "settings",
    [{"size": 0}, {"share": 0.0}, {"centres": 0}, {"margin": 0.0}, {"damping": 1.0}, {"walk_steps": 0}],
)
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        SubgCon(nn.Linear(3, 3))
