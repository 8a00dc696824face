"""Pooling against explicit loops over graphs."""

from dataclasses import replace

import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.encoders.readout import pool


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_equals_a_loop_over_graphs(make_collection, how):
    batch = GraphBatch.of(make_collection(1))
    nodes = torch.randn(batch.num_nodes, 3)
    expected = torch.zeros(batch.num_graphs, 3)
    for graph in range(batch.num_graphs):
        rows = nodes[batch.ptr[graph] : batch.ptr[graph + 1]]
        expected[graph] = {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.max(0).values}[how]
    torch.testing.assert_close(pool(batch, nodes, how), expected)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_gradcheck(make_collection, how):
    batch = GraphBatch.of(make_collection(1, graphs=3))
    nodes = torch.randn(batch.num_nodes, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda nodes: pool(batch, nodes, how), (nodes,))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_graph_without_nodes_gives_zeros(make_collection, how):
    batch = GraphBatch.of(make_collection(1, graphs=2))
    ptr = torch.cat([batch.ptr[:1], batch.ptr])
    with_empty = replace(batch, ptr=ptr)
    pooled = pool(with_empty, torch.ones(batch.num_nodes, 2), how)
    assert pooled.shape == (3, 2)
    assert not pooled[0].any()
