import numpy as np
import pytest
import torch

from graphsc import open_collection
from graphsc.data.batch import GraphBatch
from graphsc.encoders import BalancedGin, embed, reestimate_batchnorm
from graphsc.encoders.balanced import BlockNorm, compress


@pytest.fixture
def motifs():
    return open_collection("motifs:20")


@pytest.fixture
def encoder(motifs):
    torch.manual_seed(0)
    return BalancedGin(motifs.features, depth=2, width=8)


def test_compressing_is_a_smooth_square_root():
    values = torch.tensor([-8.0, -3.0, 0.0, 3.0, 15.0], requires_grad=True)
    found = compress(values)
    assert found.tolist() == [-2.0, -1.0, 0.0, 1.0, 3.0]
    found.sum().backward()
    # 1 / (2 sqrt(1 + |x|)) away from zero; at zero the sign has no slope, and neither has this.
    assert values.grad[[0, 1, 3, 4]].tolist() == pytest.approx([1 / 6, 1 / 4, 1 / 4, 1 / 8])
    assert torch.isfinite(values.grad).all()


def test_blocks_have_mean_zero_and_a_total_variance_of_one(motifs, encoder):
    reestimate_batchnorm(encoder, motifs)
    rows = embed(encoder, motifs).astype(np.float64)
    widths = [motifs.features.width, 8, 8]
    assert rows.shape == (len(motifs), sum(widths)) == (len(motifs), encoder.dimensions)
    for block in np.split(rows, np.cumsum(widths)[:-1], axis=1):
        assert np.abs(block.mean(0)).max() < 1e-4
        assert block.var(0, ddof=1).sum() == pytest.approx(1, abs=1e-3)


def test_the_first_block_is_the_pooled_input(motifs, encoder):
    batch = GraphBatch.of(motifs)
    encoder.train()
    width = motifs.features.width
    sums = torch.stack([batch.dense_x()[batch.batch == g].sum(0) for g in range(batch.num_graphs)])
    assert torch.allclose(encoder(batch)[:, :width], (1 + sums).sqrt() - 1, atol=1e-6)


def test_a_row_does_not_depend_on_its_batch(motifs, encoder):
    reestimate_batchnorm(encoder, motifs)
    assert np.allclose(embed(encoder, motifs), embed(encoder, motifs, batch_size=3), atol=1e-5)


def test_one_pass_over_several_batches_is_a_pass_over_each(motifs, encoder):
    batches = [GraphBatch.of(motifs[:4]), GraphBatch.of(motifs[4:9])]
    encoder.train()
    with torch.no_grad():
        together = encoder.each(batches)
        apart = [encoder(batch) for batch in batches]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(together, apart, strict=True))


def test_training_leaves_rows_as_they_are():
    norm = BlockNorm(3).train()
    rows = torch.randn(5, 3)
    assert norm(rows) is rows
    assert norm.running_mean.tolist() == [0, 0, 0]


def test_fresh_is_made_alike_with_other_weights(encoder):
    other = encoder.fresh()
    assert other.dimensions == encoder.dimensions
    assert not torch.equal(other.gin.blocks[1].second.weight, encoder.gin.blocks[1].second.weight)
