"""Masked nodes: how many, and what stands in their place."""

import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods.pretraining import mask_nodes, masked_nodes


@pytest.fixture(scope="module")
def molecules(made_up_molecules):
    return made_up_molecules[:20]


@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_rate_sets_the_number_of_masked_nodes(molecules, rate):
    batch = GraphBatch.of(molecules)
    masked = mask_nodes(batch, rate, torch.Generator().manual_seed(0))
    hidden = masked.codes[:, 0] == 119
    for g in range(20):
        size = int(batch.ptr[g + 1] - batch.ptr[g])
        assert int(hidden[batch.ptr[g] : batch.ptr[g + 1]].sum()) == int(rate * size + 1)
    assert not masked.codes[hidden, 1].any()
    assert torch.equal(masked.codes[~hidden], batch.codes[~hidden])
    assert torch.equal(masked_nodes(masked), hidden.nonzero().flatten())


def test_without_a_mask_token_masked_rows_are_zero():
    batch = GraphBatch.of(open_collection("motifs:5"))
    masked = mask_nodes(batch, 0.15, torch.Generator().manual_seed(0))
    where = masked_nodes(masked)
    assert len(where) == sum(int(0.15 * size + 1) for size in batch.ptr.diff().tolist())
    assert not masked.dense_x()[where].any()
    assert len(masked_nodes(batch)) == 0


def test_a_single_node_is_masked_once(make):
    batch = GraphBatch.of(make([(1, []), (2, [])]))
    masked = mask_nodes(batch, 0.9, torch.Generator().manual_seed(0))
    assert masked_nodes(masked).tolist() == [0, 1, 2]
