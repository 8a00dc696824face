"""Pooling against loops over graphs, and the multi-scale readout."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from graphsc import open_collection
from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders import Gin, MultiScaleReadout, embed, reestimate_batchnorm
from graphsc.encoders.readout import BalancedNorm, pool, signed_sqrt


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pool_equals_a_loop_over_graphs(make_collection, how):
    batch = GraphBatch.of(make_collection(1))
    nodes = torch.randn(batch.num_nodes, 3)
    expected = torch.zeros(batch.num_graphs, 3)
    for graph in range(batch.num_graphs):
        rows = nodes[batch.ptr[graph] : batch.ptr[graph + 1]]
        expected[graph] = {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.max(0).values}[how]
    torch.testing.assert_close(pool(batch, nodes, how), expected)


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pool_gradient(make_collection, how):
    batch = GraphBatch.of(make_collection(1, graphs=3))
    nodes = torch.randn(batch.num_nodes, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda nodes: pool(batch, nodes, how), (nodes,))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pool_of_a_graph_without_nodes_is_zero(make_collection, how):
    batch = GraphBatch.of(make_collection(1, graphs=2))
    ptr = torch.cat([batch.ptr[:1], batch.ptr])
    with_empty = replace(batch, ptr=ptr)
    pooled = pool(with_empty, torch.ones(batch.num_nodes, 2), how)
    assert pooled.shape == (3, 2)
    assert not pooled[0].any()


class MultiScaleGin(nn.Module):
    """A GIN with a multi-scale readout."""

    def __init__(self, features):
        super().__init__()
        self.gin = Gin(features, depth=2, width=8)
        self.readout = MultiScaleReadout(self.gin)

    def forward(self, batch):
        return self.readout(batch, self.gin.node_layers(batch))


@pytest.fixture
def motifs():
    return open_collection("motifs:20")


@pytest.fixture
def encoder(motifs):
    torch.manual_seed(0)
    return MultiScaleGin(motifs.features)


def test_signed_sqrt_is_a_smooth_square_root():
    values = torch.tensor([-8.0, -3.0, 0.0, 3.0, 15.0], requires_grad=True)
    result = signed_sqrt(values)
    assert result.tolist() == [-2.0, -1.0, 0.0, 1.0, 3.0]
    result.sum().backward()
    assert values.grad[[0, 1, 3, 4]].tolist() == pytest.approx([1 / 6, 1 / 4, 1 / 4, 1 / 8])
    assert torch.isfinite(values.grad).all()


def test_multi_scale_blocks_have_mean_zero_and_a_total_variance_of_one(motifs, encoder):
    reestimate_batchnorm(encoder, motifs)
    rows = embed(encoder, motifs).astype(np.float64)
    widths = [motifs.features.width, 8, 8]
    assert rows.shape == (len(motifs), sum(widths)) == (len(motifs), encoder.readout.dimensions)
    for block in np.split(rows, np.cumsum(widths)[:-1], axis=1):
        assert np.abs(block.mean(0)).max() < 1e-4
        assert block.var(0, ddof=1).sum() == pytest.approx(1, abs=1e-3)


def test_the_first_multi_scale_block_is_the_pooled_input(motifs, encoder):
    batch = GraphBatch.of(motifs)
    width = motifs.features.width
    sums = torch.stack([batch.dense_x()[batch.batch == g].sum(0) for g in range(batch.num_graphs)])
    # Initially running means are 0 and variances 1.
    expected = ((1 + sums).sqrt() - 1) / (width + 1e-5) ** 0.5
    assert torch.allclose(encoder(batch)[:, :width], expected, atol=1e-6)


def test_a_multi_scale_embedding_does_not_depend_on_its_batch(motifs, encoder):
    reestimate_batchnorm(encoder, motifs)
    assert np.allclose(embed(encoder, motifs), embed(encoder, motifs, batch_size=3), atol=1e-5)


def test_a_multi_scale_readout_of_another_encoder_is_refused():
    with pytest.raises(ConfigError, match="not Linear"):
        MultiScaleReadout(nn.Linear(2, 2))


def test_balanced_blocks_have_equal_variance_in_both_modes():
    torch.manual_seed(0)
    norm = BalancedNorm([3, 1, 5])
    rows = torch.randn(40, 9) * torch.arange(1, 10) + 7
    trained = norm(rows)
    norm.momentum = None  # its statistics are now those of the only batch
    for result in (trained, norm.eval()(rows)):
        torch.testing.assert_close(result.mean(0), torch.zeros(9), atol=1e-4, rtol=0)
        totals = [float(block.var(0).sum()) for block in result.split([3, 1, 5], dim=1)]
        assert totals == pytest.approx([3, 3, 3], rel=1e-3)  # nine columns in three blocks
    # One number per block: the columns of a block keep their proportions.
    torch.testing.assert_close(trained.std(0)[1] / trained.std(0)[0], rows.std(0)[1] / rows.std(0)[0])


def test_a_single_row_is_normalised_by_the_running_statistics():
    norm = BalancedNorm([2])
    norm(torch.tensor([[0.0, 2.0], [2.0, 6.0]]))
    before = norm.running_mean.clone()
    row = norm(torch.tensor([[3.0, 4.0]]))
    assert torch.equal(norm.running_mean, before)
    # The mean is (1, 4), the variances 2 and 8, and the total variance of the block becomes 2.
    torch.testing.assert_close(row, torch.tensor([[2.0, 0.0]]) / 5**0.5, atol=1e-4, rtol=0)
