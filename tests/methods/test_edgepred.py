"""EdgePred: the absent pairs it draws, and the loss against its equation."""

import math

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:10")


def build(graphs, **settings):
    return make_recipe("edgepred", graphs, settings).build(graphs.features, 0)


def pairs_of(batch, undirected=True):
    result = list(zip(batch.source.tolist(), batch.destination.tolist(), strict=True))
    return [tuple(sorted(pair)) for pair in result] if undirected else result


def test_absent_pairs_are_distinct_within_graphs_and_as_many_as_edges(graphs):
    method, batch = build(graphs), GraphBatch.of(graphs)
    absent = method.views(batch, torch.Generator().manual_seed(0))["absent"]
    edges, result = set(pairs_of(batch)), pairs_of(absent)
    assert len(set(result)) == len(result)
    assert not edges & set(result)
    counts = [0] * 10
    for u, v in result:
        assert u != v
        assert batch.batch[u] == batch.batch[v]
        counts[int(batch.batch[u])] += 1
    for g, count in enumerate(counts):
        nodes = int(batch.ptr[g + 1] - batch.ptr[g])
        own = int(batch.edge_ptr[g + 1] - batch.edge_ptr[g]) // 2
        assert count == min(own, nodes * (nodes - 1) // 2 - own)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_loss_is_the_equation_written_out(graphs, scaled):
    method = build(graphs, scaled=scaled, **{"encoder.depth": 2, "encoder.width": 4})
    batch = GraphBatch.of(graphs)
    views = method.views(batch, torch.Generator().manual_seed(0))
    result = method.objective(method.encode(views))["edges"]
    with torch.no_grad():
        nodes = method.encoder.nodes(batch).double()
    if scaled:
        nodes = nodes / nodes.shape[1] ** 0.25
    edges = set(pairs_of(batch))
    positive = [math.log1p(math.exp(-float(nodes[u] @ nodes[v]))) for u, v in edges]
    negative = [math.log1p(math.exp(float(nodes[u] @ nodes[v]))) for u, v in pairs_of(views["absent"])]
    expected = np.mean(positive) + np.mean(negative)
    assert result.item() == pytest.approx(expected, rel=1e-4)


def test_directed_edges_are_pairs_of_their_own():
    networkx = pytest.importorskip("networkx")
    graphs = open_collection([networkx.gnp_random_graph(8, 0.2, seed=s, directed=True) for s in range(4)])
    batch = GraphBatch.of(graphs)
    assert not batch.undirected
    method = build(graphs)
    views = method.views(batch, torch.Generator().manual_seed(0))
    assert not set(pairs_of(batch, undirected=False)) & set(pairs_of(views["absent"], undirected=False))
    assert len(method.encode(views)["edges"]) == batch.num_edges


def test_negatives_multiply_the_absent_pairs(graphs):
    one, three = (
        build(graphs, negatives=k).views(GraphBatch.of(graphs), torch.Generator())["absent"]
        for k in (1.0, 3.0)
    )
    assert three.num_edges == 3 * one.num_edges  # these graphs are sparse enough


def test_a_complete_graph_has_edges_only(make):
    triangle = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
    graphs = make([(3, triangle), (3, [])])
    method = build(graphs)
    encoded = method.encode(method.views(GraphBatch.of(graphs), torch.Generator()))
    assert (len(encoded["edges"]), len(encoded["absent"])) == (3, 0)
    method.objective(encoded)["edges"].backward()


def test_a_loop_is_no_pair(make):
    graphs = make([(3, [(0, 0), (0, 1), (1, 0)]), (2, [])])
    method = build(graphs)
    assert len(method.encode(method.views(GraphBatch.of(graphs), torch.Generator()))["edges"]) == 1


def test_pretext_is_the_area_under_the_curve(graphs):
    result = build(graphs).pretext({"edges": torch.tensor([3.0, 1.0]), "absent": torch.tensor([2.0, 0.0])})
    assert (result.score, result.chance) == (0.75, 0.5)


def test_no_negatives_are_refused(graphs):
    with pytest.raises(ConfigError, match="negatives"):
        build(graphs, negatives=0.0)
