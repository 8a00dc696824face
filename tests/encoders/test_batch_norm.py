"""BatchNorm of one row, and WeightedBatchNorm against torch's BatchNorm on repeated rows."""

import pytest
import torch
from torch import nn

from graphsc.encoders.batch_norm import BatchNorm, WeightedBatchNorm

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


@pytest.mark.parametrize("kind", [BatchNorm, WeightedBatchNorm])
def test_a_single_row_is_normalised_by_the_running_statistics(kind):
    norm = kind(2).double()
    norm.load_state_dict(
        {
            "weight": torch.tensor([2.0, 1.0]), "bias": torch.tensor([0.0, 5.0]),
            "running_mean": torch.tensor([1.0, 0.0]), "running_var": torch.tensor([4.0, 1.0]),
            "num_batches_tracked": torch.tensor(3),
        }
    )  # fmt: skip
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    rows = torch.tensor([[7.0, -2.0]], dtype=torch.float64, requires_grad=True)
    for arguments in [()] if kind is BatchNorm else [(), (torch.tensor([1]),)]:
        rows.grad = None
        result = norm(rows, *arguments)
        # By hand: 2 (7 - 1) / sqrt(4) + 0 and (-2 - 0) / sqrt(1) + 5.
        torch.testing.assert_close(result, torch.tensor([[6.0, 3.0]], dtype=torch.float64), rtol=1e-4, atol=0)
        result.sum().backward()
        torch.testing.assert_close(rows.grad, torch.ones(1, 2, dtype=torch.float64), rtol=1e-4, atol=0)
    torch.testing.assert_close(norm.state_dict(), before, rtol=0, atol=0)
    assert norm(rows[:0]).shape == (0, 2)


def test_a_part_of_one_node_among_others():
    ours, plain = norms()
    rows = torch.randn(6, 4, dtype=torch.float64)
    counts = torch.tensor([1, 2, 1, 1, 3, 1])
    result = ours(rows, counts, [1, 4, 1])
    torch.testing.assert_close(result[:1], plain.eval()(rows[:1]))  # the running statistics so far
    expected = plain.train()(rows[1:5].repeat_interleave(counts[1:5], 0))
    torch.testing.assert_close(result[1:5].repeat_interleave(counts[1:5], 0), expected)
    torch.testing.assert_close(result[5:], plain.eval()(rows[5:]))
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())


def test_without_momentum_all_batches_are_averaged():
    ours, plain = WeightedBatchNorm(4, momentum=None), nn.BatchNorm1d(4, momentum=None)
    for _ in range(3):
        rows = torch.randn(6, 4)
        ours(rows, COUNTS)
        plain(rows.repeat_interleave(COUNTS, 0))
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())
