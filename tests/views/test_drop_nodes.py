from __future__ import annotations

from dataclasses import replace

import torch

from graphsc.views import DropNodes, MaskAttributes
from graphsc.views.base import Change, materialise

GRAPHS = [(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (2, 2)]), (2, [(0, 1)]), (3, [])]


def test_what_is_left_is_the_induced_subgraph(make, check):
    batch = make(GRAPHS)
    keep = [1, 2, 4, 6, 7, 9]  # nodes 1, 2, 4 | 1 | 0, 2
    mask = torch.zeros(10, dtype=torch.bool)
    mask[keep] = True
    weighted = replace(batch, edge_weight=torch.arange(batch.num_edges, dtype=torch.float32))
    result = materialise(weighted, Change(nodes=mask))
    check(result)
    expected = []
    for position, (u, v) in enumerate(batch.edge_index.T.tolist()):
        if u in keep and v in keep:
            expected.append((keep.index(u), keep.index(v), position))
    assert result.edge_index.T.tolist() == [[u, v] for u, v, _ in expected]
    positions = [position for *_, position in expected]
    assert result.edge_weight.tolist() == positions
    assert torch.equal(result.edge_codes, batch.edge_codes[positions])
    assert torch.equal(result.edge_floats, batch.edge_floats[positions])
    assert torch.equal(result.codes, batch.codes[keep])
    assert torch.equal(result.floats, batch.floats[keep])
    assert result.ptr.tolist() == [0, 3, 4, 6]
    assert result.y is batch.y
    assert torch.equal(result.index, batch.index)


def test_replaced_rows_follow_their_nodes(make, seeded):
    batch = MaskAttributes()(make(GRAPHS), 0.7, seeded(0))
    result = DropNodes()(batch, 0.5, seeded(1))
    before, after = batch.dense_x(), result.dense_x()
    # The noise makes masked rows unlike any other, and codes tell the other nodes of a graph apart.
    for row, graph in zip(after, result.batch.tolist(), strict=True):
        same = (before[batch.batch == graph] == row).all(1)
        assert same.sum() == 1


def test_dropped_nodes_are_drawn_uniformly(make, seeded):
    batch = make([(4, [])] * 2000, plain=True)
    batch = replace(batch, floats=torch.arange(8000.0)[:, None])
    left = DropNodes()(batch, 0.25, seeded(0)).floats.flatten() % 4
    assert all(abs(int((left == i).sum()) - 1500) < 90 for i in range(4))


def test_gradients_reach_edge_weights(make, seeded):
    batch = make(GRAPHS)
    weight = torch.ones(batch.num_edges, requires_grad=True)
    view = DropNodes()(replace(batch, edge_weight=weight), 0.3, seeded(0))
    view.edge_weight.sum().backward()
    assert weight.grad.sum() == view.num_edges
