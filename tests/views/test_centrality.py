"""Centralities of all graphs of a batch, against NetworkX graph by graph."""

import networkx
import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views.centrality import centrality, eigenvector_centrality, pagerank


def graphs(directed=False):
    """Connected graphs, one of them bipartite, and one with isolated nodes."""
    made = [
        networkx.star_graph(4),
        networkx.connected_watts_strogatz_graph(12, 4, 0.4, seed=1),
        networkx.path_graph(5),
    ]
    made.append(networkx.path_graph(3))
    made[-1].add_nodes_from([3, 4])
    if not directed:
        return made
    empty = [networkx.empty_graph(len(graph), networkx.DiGraph) for graph in made]
    return [
        networkx.compose(nodes, networkx.DiGraph(list(graph.edges)))
        for nodes, graph in zip(empty, made, strict=True)
    ]


def each(values, batch):
    return [part.tolist() for part in values.split(batch.ptr.diff().tolist())]


@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_is_that_of_networkx(directed):
    originals = graphs(directed)
    batch = GraphBatch.of(open_collection(originals))
    for found, graph in zip(each(pagerank(batch, steps=200), batch), originals, strict=True):
        expected = networkx.pagerank(graph, tol=1e-10, max_iter=1000)
        assert found == pytest.approx([expected[node] for node in sorted(graph)], abs=1e-5)


def test_personalised_pagerank_is_that_of_networkx():
    originals = graphs()
    batch = GraphBatch.of(open_collection(originals))
    restart = torch.zeros(batch.num_nodes)
    restart[batch.ptr[:-1] + 1] = 1.0
    for found, graph in zip(each(pagerank(batch, restart, steps=200), batch), originals, strict=True):
        expected = networkx.pagerank(graph, personalization={1: 1.0}, tol=1e-10, max_iter=1000)
        assert found == pytest.approx([expected[node] for node in sorted(graph)], abs=1e-5)


def test_several_walks_at_once_are_as_many_alone():
    batch = GraphBatch.of(open_collection(graphs()))
    restart = torch.zeros(batch.num_nodes, 2)
    restart[batch.ptr[:-1], 0] = 1.0
    restart[batch.ptr[1:] - 1, 1] = 1.0
    expected = torch.stack([pagerank(batch, column) for column in restart.T], dim=1)
    torch.testing.assert_close(pagerank(batch, restart), expected)


def test_few_steps_stay_near_the_start():
    batch = GraphBatch.of(open_collection([networkx.path_graph(6)]))
    restart = torch.tensor([1.0, 0, 0, 0, 0, 0])
    assert (pagerank(batch, restart, steps=2) > 0).tolist() == [True] * 3 + [False] * 3


def test_eigenvector_centrality_is_that_of_numpy():
    originals = graphs()[:3]  # connected
    batch = GraphBatch.of(open_collection(originals))
    for found, graph in zip(each(eigenvector_centrality(batch), batch), originals, strict=True):
        values, vectors = np.linalg.eigh(networkx.to_numpy_array(graph, nodelist=sorted(graph)))
        leading = np.abs(vectors[:, values.argmax()])
        assert found == pytest.approx((leading / leading.sum()).tolist(), abs=1e-3)


def test_a_graph_without_edges_is_uniform():
    batch = GraphBatch.of(open_collection([networkx.empty_graph(4), networkx.empty_graph(2)]))
    for values in (pagerank(batch), eigenvector_centrality(batch)):
        assert values.tolist() == pytest.approx([0.25] * 4 + [0.5] * 2)


def test_means_are_one_but_for_degrees():
    batch = GraphBatch.of(open_collection(graphs()))
    for kind in ("pagerank", "eigenvector"):
        assert [np.mean(part) for part in each(centrality(batch, kind), batch)] == pytest.approx([1.0] * 4)
    degrees = [degree for graph in graphs() for _, degree in sorted(graph.degree)]
    assert centrality(batch, "degree").tolist() == degrees
