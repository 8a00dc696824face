"""Joined batches against PyG's own batching, and against gathering all graphs at once."""

from dataclasses import replace

import numpy as np
import torch

from graphsc.data.batch import GraphBatch, join


def test_joining_parts_equals_gathering_all(mixed):
    collection = mixed
    rows = np.array([3, 0, 1, 4, 2, 0])
    whole = GraphBatch.gather(collection, rows)
    joined = join([GraphBatch.gather(collection, part) for part in np.split(rows, [1, 4])])
    for name in ("codes", "floats", "rowptr", "source", "ptr", "edge_codes", "edge_floats", "index"):
        assert torch.equal(getattr(whole, name), getattr(joined, name)), name
    assert torch.equal(torch.nan_to_num(whole.y, nan=-1), torch.nan_to_num(joined.y, nan=-1))
    assert torch.equal(whole.edge_index, joined.edge_index)


def test_replaced_rows_and_weights_move_with_their_graphs(three):
    batch = GraphBatch.of(three)
    noise = torch.randn(1, batch.features.width)
    noisy = replace(batch, replaced=torch.tensor([2]), replacement=noise)
    weighted = replace(batch, edge_weight=torch.full((batch.num_edges,), 0.5))
    joined = join([batch, noisy, weighted])
    assert torch.equal(joined.dense_x()[batch.num_nodes + 2], noise[0])
    assert torch.equal(joined.dense_x()[: batch.num_nodes], batch.dense_x())
    expected = torch.cat([torch.ones(2 * batch.num_edges), torch.full((batch.num_edges,), 0.5)])
    assert torch.equal(joined.edge_weight, expected)
