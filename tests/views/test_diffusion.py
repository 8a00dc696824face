"""Personalised PageRank against matrix inverses, one graph at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views import diffusion
from graphsc.views.diffusion import Diffusion

networkx = pytest.importorskip("networkx")


def batch_of(graphs):
    return GraphBatch.of(open_collection(graphs))


def matrices(batch):
    """The dense adjacency of each graph: entry (i, j) is the weight of the edge from j to i."""
    weight = torch.ones(batch.num_edges) if batch.edge_weight is None else batch.edge_weight
    whole = np.zeros((batch.num_nodes, batch.num_nodes))
    np.add.at(whole, (batch.destination.numpy(), batch.source.numpy()), weight.double().numpy())
    bounds = batch.ptr.tolist()
    return [whole[a:b, a:b] for a, b in pairwise(bounds)]


def pagerank(adjacency, alpha):
    size = len(adjacency)
    looped = adjacency + np.eye(size)
    scale = np.diag(looped.sum(1) ** -0.5)
    return alpha * np.linalg.inv(np.eye(size) - (1 - alpha) * scale @ looped @ scale)


@pytest.fixture(scope="module")
def graphs():
    """Small, larger, disconnected, without edges, of one node."""
    random = [networkx.gnp_random_graph(size, 0.2, seed=size) for size in (3, 7, 20, 40)]
    return [*random, networkx.empty_graph(4), networkx.path_graph(1), networkx.star_graph(12)]


@pytest.mark.parametrize("alpha", [0.05, 0.2, 1.0])
def test_every_graph_is_the_inverse_of_its_own_matrix(graphs, alpha):
    batch = batch_of(graphs)
    found = matrices(Diffusion(alpha=alpha)(batch))
    for one, adjacency in zip(found, matrices(batch), strict=True):
        np.testing.assert_allclose(one, pagerank(adjacency, alpha), atol=1e-6)


def test_a_directed_graph_is_followed_from_destination_to_source():
    graph = networkx.gnp_random_graph(9, 0.3, seed=1, directed=True)
    batch = batch_of([graph])
    assert not batch.undirected
    np.testing.assert_allclose(matrices(Diffusion()(batch))[0], pagerank(matrices(batch)[0], 0.2), atol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
def test_power_iteration_gives_the_same(monkeypatch, graphs, directed):
    random = [networkx.gnp_random_graph(size, 0.1, seed=size, directed=directed) for size in (20, 33, 50)]
    batch = batch_of(random)
    expected = [pagerank(adjacency, 0.2) for adjacency in matrices(batch)]
    monkeypatch.setattr(diffusion, "MAX_INVERTED", 8)
    monkeypatch.setattr(diffusion, "COLUMNS", 16)  # several blocks
    for one, reference in zip(matrices(Diffusion()(batch)), expected, strict=True):
        np.testing.assert_allclose(one, reference, atol=2e-6)


@pytest.mark.parametrize("largest", [8, 512])  # power iteration and inverse
def test_only_the_largest_weights_of_a_node_are_kept(monkeypatch, largest):
    monkeypatch.setattr(diffusion, "MAX_INVERTED", largest)
    batch = batch_of([networkx.gnp_random_graph(40, 0.2, seed=3)])
    whole = pagerank(matrices(batch)[0], 0.2)
    found = matrices(Diffusion(neighbours=6)(batch))[0]
    least = np.sort(whole, axis=1)[:, -6][:, None]
    np.testing.assert_allclose(found, np.where(whole >= least, whole, 0), atol=2e-6)


def test_equal_weights_are_left_out_together_so_that_node_order_does_not_matter():
    star = Diffusion(neighbours=5)(batch_of([networkx.star_graph(12)]))
    # A leaf keeps itself and the centre; of the eleven other leaves five would be too many.
    assert star.in_degree[1:].tolist() == [2] * 12
    assert star.in_degree[0] == 1  # the centre alone: all twelve leaves are equal


@pytest.mark.parametrize("largest", [16, 512])
def test_a_graph_is_the_same_bit_for_bit_in_every_batch(monkeypatch, graphs, largest):
    monkeypatch.setattr(diffusion, "MAX_INVERTED", largest)
    collection = open_collection(graphs)
    together = Diffusion()(GraphBatch.of(collection))
    for row in range(len(collection)):
        alone = Diffusion()(GraphBatch.gather(collection, np.array([row])))
        edges = slice(int(together.edge_ptr[row]), int(together.edge_ptr[row + 1]))
        assert torch.equal(alone.edge_weight, together.edge_weight[edges])
        assert torch.equal(alone.source, together.source[edges] - together.ptr[row])


def test_graphs_seen_before_are_not_computed_again(monkeypatch, graphs):
    collection = open_collection(graphs)
    diffuse = Diffusion()
    expected = diffuse(GraphBatch.of(collection))
    monkeypatch.setattr(Diffusion, "_add_missing", lambda *_: pytest.fail("computed again"))
    order = np.array([5, 2, 2, 0, 6])
    found = matrices(diffuse(GraphBatch.gather(collection, order)))
    for one, row in zip(found, order, strict=True):
        np.testing.assert_array_equal(one, matrices(expected)[row])
    again = batch_of(
        [networkx.relabel_nodes(graph, dict(zip(graph, graph, strict=True))) for graph in graphs]
    )
    assert torch.equal(diffuse(again).edge_weight, expected.edge_weight)  # of another collection


def test_a_full_cache_starts_anew(monkeypatch, graphs):
    monkeypatch.setattr(diffusion, "MAX_CACHED", 10)
    collection = open_collection(graphs)
    diffuse = Diffusion()
    for _ in range(2):
        for row in range(len(collection)):
            batch = GraphBatch.gather(collection, np.array([row]))
            assert torch.equal(diffuse(batch).edge_weight, Diffusion()(batch).edge_weight)


def test_graphs_that_differ_in_one_edge_or_in_isolated_nodes_are_told_apart():
    paths = [networkx.path_graph(6) for _ in range(4)]
    paths[1].add_edge(0, 2)
    paths[2].add_edge(3, 5)
    paths[3].add_node(6)
    batch = batch_of(paths)
    found = matrices(Diffusion()(batch))
    for one, adjacency in zip(found, matrices(batch), strict=True):
        np.testing.assert_allclose(one, pagerank(adjacency, 0.2), atol=1e-6)


def test_features_and_graphs_stay(graphs):
    batch = batch_of(graphs)
    found = Diffusion()(batch)
    assert found.codes is batch.codes
    assert found.ptr is batch.ptr
    assert found.rowptr.dtype == found.source.dtype == torch.int32


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"alpha": 1.5}, {"neighbours": 0}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError):
        Diffusion(**wrong)
