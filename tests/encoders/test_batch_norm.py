"""WeightedBatchNorm against torch's BatchNorm on repeated rows."""

import pytest
import torch
from torch import nn

from graphsc.encoders.batch_norm import WeightedBatchNorm

COUNTS = torch.tensor([3, 1, 2, 1, 4, 2])


def norms() -> tuple[WeightedBatchNorm, nn.BatchNorm1d]:
    torch.manual_seed(0)
    ours, plain = WeightedBatchNorm(4).double(), nn.BatchNorm1d(4).double()
    nn.init.normal_(ours.weight)
    nn.init.normal_(ours.bias)
    plain.load_state_dict(ours.state_dict())
    return ours, plain


@pytest.mark.parametrize("parts", [[6], [2, 4], [3, 1, 2]])
def test_equals_batchnorm_of_repeated_rows(parts):
    ours, plain = norms()
    rows = torch.randn(6, 4, dtype=torch.float64) + 3
    left, right = rows.clone().requires_grad_(), rows.clone().requires_grad_()
    # torch refuses a part of a single node, which has no variance.
    counts = COUNTS + 1
    result = ours(left, counts, parts)
    expected = torch.cat(
        [
            plain(part.repeat_interleave(count, 0))
            for part, count in zip(right.split(parts), counts.split(parts), strict=True)
        ]
    )
    torch.testing.assert_close(result.repeat_interleave(counts, 0), expected)
    factors = torch.randn(expected.shape, dtype=torch.float64)
    (result.repeat_interleave(counts, 0) * factors).sum().backward()
    (expected * factors).sum().backward()
    torch.testing.assert_close(left.grad, right.grad)
    torch.testing.assert_close(ours.weight.grad, plain.weight.grad)
    torch.testing.assert_close(ours.bias.grad, plain.bias.grad)
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())


@pytest.mark.parametrize("parts", [None, [2, 4]])
def test_without_counts_every_row_is_one_node(parts):
    ours, plain = norms()
    rows = torch.randn(6, 4, dtype=torch.float64)
    expected = torch.cat([plain(part) for part in rows.split(parts or [6])])
    torch.testing.assert_close(ours(rows, None, parts), expected)
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())


def test_counts_have_no_effect_in_evaluation():
    ours, plain = norms()
    rows = torch.randn(6, 4, dtype=torch.float64)
    torch.testing.assert_close(ours.eval()(rows, COUNTS), plain.eval()(rows))


def test_a_single_node_becomes_the_bias_with_zero_gradient():
    ours, _ = norms()
    rows = torch.randn(1, 4, dtype=torch.float64, requires_grad=True)
    result = ours(rows, torch.tensor([1]))
    torch.testing.assert_close(result[0], ours.bias)
    result.sum().backward()
    assert not rows.grad.any()
    assert torch.isfinite(ours.running_var).all()


def test_without_momentum_all_batches_are_averaged():
    ours, plain = WeightedBatchNorm(4, momentum=None), nn.BatchNorm1d(4, momentum=None)
    for _ in range(3):
        rows = torch.randn(6, 4)
        ours(rows, COUNTS)
        plain(rows.repeat_interleave(COUNTS, 0))
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())
