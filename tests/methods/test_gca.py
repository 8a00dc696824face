"""GCA: probabilities of drops against the paper's equation, edge by edge and column by column."""

import math

import networkx
import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.gca import column_centrality, drop_weights
from graphsc.views.operations import edge_pairs


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:10]


def build(graphs, **settings):
    return make_recipe("gca", graphs, settings).build(graphs.features, 0)


def weights_by_hand(importance):
    scores = [math.log(1 + value) for value in importance]
    largest, mean = max(scores), sum(scores) / len(scores)
    return [(largest - score) / (largest - mean) if largest > mean + 1e-9 else 1.0 for score in scores]


def test_edges_are_weighted_by_the_mean_degree_of_their_ends(graphs):
    batch = GraphBatch.of(graphs)
    found, _ = build(graphs)._weights(batch)
    pairs = edge_pairs(batch)
    for g in range(len(graphs)):
        own = slice(int(pairs.ptr[g]), int(pairs.ptr[g + 1]))
        ends = zip(pairs.source[own].tolist(), pairs.destination[own].tolist(), strict=True)
        importance = [(int(batch.in_degree[u]) + int(batch.in_degree[v])) / 2 for u, v in ends]
        assert found[own].tolist() == pytest.approx(weights_by_hand(importance), rel=1e-5)


def test_columns_are_weighted_by_the_degrees_of_their_nodes(graphs):
    batch = GraphBatch.of(graphs)
    _, found = build(graphs)._weights(batch)
    for g in range(len(graphs)):
        own = range(int(batch.ptr[g]), int(batch.ptr[g + 1]))
        importance = {}
        for node in own:
            column = int(batch.codes[node, 0])
            importance[column] = importance.get(column, 0) + int(batch.in_degree[node])
        expected = weights_by_hand(list(importance.values()))
        assert found[g, list(importance)].tolist() == pytest.approx(expected, rel=1e-5)
        absent = set(range(batch.features.width)) - set(importance)
        assert not found[g, list(absent)].any()


def test_floats_count_by_their_size():
    graph = networkx.path_graph(3)
    for node, value in zip(graph, (-2.0, 0.5, 1.0), strict=True):
        graph.nodes[node]["charge"] = value
    batch = GraphBatch.of(open_collection([graph], features="attributes"))
    assert column_centrality(batch, torch.tensor([1.0, 2.0, 1.0])).tolist() == [[4.0]]


def test_the_mean_weight_of_a_graph_is_one_and_its_most_important_has_none():
    found = drop_weights(torch.tensor([1.0, 5.0, 2.0, 7.0, 7.0]), torch.tensor([0, 0, 0, 1, 1]), 3)
    assert found[:3].mean().item() == pytest.approx(1.0)
    assert found[1] == 0
    assert found[3:].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["degree", "pagerank", "eigenvector"])
def test_central_edges_are_dropped_less_often(kind):
    """A hub with leaves, at the end of a long path."""
    graph = networkx.path_graph(8)
    graph.add_edges_from((0, leaf) for leaf in range(8, 14))
    graphs = open_collection([graph])
    batch = GraphBatch.of(graphs)
    method = build(graphs, centrality=kind, edge_rates=[0.4, 0.4])
    pairs, lost = edge_pairs(batch), {"hub": 0, "path": 0}
    for seed in range(300):
        view = method.views(batch, torch.Generator().manual_seed(seed))["anchor"]
        left = set(map(tuple, view.edge_index.T.tolist()))
        lost["hub"] += (0, 9) not in left
        lost["path"] += (6, 7) not in left
    assert lost["path"] > 2 * lost["hub"] + 30
    assert len(pairs.source) == 13


def test_no_probability_is_above_the_cut(graphs, monkeypatch):
    given = []
    monkeypatch.setattr(
        "graphsc.methods.gca.drop_edges_and_features",
        lambda batch, edges, features, generator: given.append((edges, features)) or batch,
    )
    build(graphs, cut=0.5, edge_rates=[0.4, 0.4], feature_rates=[0.4, 0.4]).views(
        GraphBatch.of(graphs), torch.Generator()
    )
    for edges, features in given:
        assert edges.max() == features.max() == 0.5


def test_the_share_of_edges_is_the_rate_where_nothing_is_cut(graphs):
    method = build(graphs, edge_rates=[0.1, 0.3], cut=1.0)
    batch = GraphBatch.of(graphs)
    lost = np.zeros(2)
    for seed in range(200):
        views = method.views(batch, torch.Generator().manual_seed(seed))
        lost += [1 - views[name].num_edges / batch.num_edges for name in ("anchor", "positive")]
    assert lost / 200 == pytest.approx([0.1, 0.3], abs=0.015)


def test_the_published_preset(graphs):
    assert make_recipe("gca", graphs, preset="published").encoder_settings["width"] == 256
    assert training_settings("gca", "published", graphs.name)["epochs"] == 3000


@pytest.mark.parametrize("settings", [{"cut": 0.0}, {"cut": 1.1}, {"centrality": "luck"}])
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)
