"""Edges and feature columns dropped by probability: what is lost, what stays, and how often."""

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views.dropping import check_drop_rate, drop_edges_and_features, node_columns
from graphsc.views.operations import edge_pairs


@pytest.fixture(scope="module")
def batch():
    return GraphBatch.gather(open_collection("mutag"), np.arange(40))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def entries(batch):
    return set(map(tuple, batch.edge_index.T.tolist()))


def test_no_rates_change_nothing(batch):
    view = drop_edges_and_features(batch, 0.0, 0.0, seeded())
    assert torch.equal(view.edge_index, batch.edge_index)
    assert torch.equal(view.dense_x(), batch.dense_x())


def test_nodes_stay_and_edges_go_in_both_directions(batch):
    view = drop_edges_and_features(batch, 0.3, 0.0, seeded())
    assert torch.equal(view.ptr, batch.ptr)
    left = entries(view)
    assert left < entries(batch)
    assert {(b, a) for a, b in left} == left
    assert view.undirected


def test_the_share_of_edges_is_the_rate_on_average(batch):
    lost = [
        1 - drop_edges_and_features(batch, 0.3, 0.0, seeded(k)).num_edges / batch.num_edges for k in range(50)
    ]
    # 50 times about 800 edges: three standard errors are 0.007.
    assert np.mean(lost) == pytest.approx(0.3, abs=0.007)
    assert np.std(lost) > 0


def test_each_edge_has_its_own_probability(batch):
    probability = torch.zeros(len(edge_pairs(batch).source))
    probability[7] = 1.0
    pairs = edge_pairs(batch)
    edge = int(pairs.source[7]), int(pairs.destination[7])
    view = drop_edges_and_features(batch, probability, 0.0, seeded())
    assert entries(batch) - entries(view) == {edge, edge[::-1]}


def test_edge_attributes_go_with_their_edges(batch):
    assert batch.edge_codes is not None
    code = dict(zip(map(tuple, batch.edge_index.T.tolist()), batch.edge_codes.tolist(), strict=True))
    view = drop_edges_and_features(batch, 0.5, 0.0, seeded())
    found = zip(map(tuple, view.edge_index.T.tolist()), view.edge_codes.tolist(), strict=True)
    assert all(code[edge] == value for edge, value in found)


def test_a_column_is_lost_by_all_nodes_of_its_graph(batch):
    probability = torch.zeros(batch.num_graphs, batch.features.width)
    probability[3, 0] = 1.0
    view = drop_edges_and_features(batch, 0.0, probability, seeded())
    expected = batch.dense_x()
    expected[batch.ptr[3] : batch.ptr[4], 0] = 0.0
    assert not torch.equal(expected, batch.dense_x())
    assert torch.equal(view.dense_x(), expected)


def test_a_graph_never_loses_all_its_features(batch):
    view = drop_edges_and_features(batch, 0.0, torch.ones(batch.num_graphs, batch.features.width), seeded())
    assert torch.equal(view.dense_x(), batch.dense_x())


def test_constant_features_stay():
    batch = GraphBatch.of(open_collection("motifs:8", features="constant"))
    assert drop_edges_and_features(batch, 0.0, 0.5, seeded()).replaced is None


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two categorical columns and two floats."""
    import networkx

    graph = networkx.path_graph(5)
    rng = np.random.default_rng(0)
    for node in graph:
        graph.nodes[node]["label"] = node % 2
        graph.nodes[node]["size"] = float(rng.normal())
        graph.nodes[node]["weight"] = float(rng.normal())
    return graph


def test_floats_and_several_columns(mixed):
    batch = GraphBatch.of(open_collection([mixed, mixed], features="labels+degree:3+attributes"))
    assert batch.floats.shape[1] == 2
    for column in range(batch.features.width):
        probability = torch.zeros(2, batch.features.width)
        probability[1, column] = 1.0
        expected = batch.dense_x()
        expected[5:, column] = 0.0
        view = drop_edges_and_features(batch, 0.0, probability, seeded())
        assert torch.equal(view.dense_x(), expected), column


def test_columns_are_those_of_dense_features(mixed):
    batch = GraphBatch.of(open_collection([mixed], features="labels+degree:3+attributes"))
    assert torch.equal(batch.dense_x().gather(1, node_columns(batch)), torch.ones(5, 2))


def test_graphs_without_edges_or_nodes():
    import networkx

    batch = GraphBatch.of(open_collection([networkx.empty_graph(3), networkx.path_graph(2)]))
    view = drop_edges_and_features(batch, 0.5, 0.5, seeded())
    assert view.num_nodes == 5


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rates_out_of_range_are_refused(rate):
    with pytest.raises(ConfigError, match="dropped"):
        check_drop_rate(rate)
