"""A look-up against the one-hot product it stands for."""

import pytest
import torch

from graphsc.encoders.gin import look_up


@pytest.mark.parametrize("columns", [1, 3])
def test_equals_the_one_hot_product_in_value_and_gradient(columns):
    generator = torch.Generator().manual_seed(0)
    # Column k has codes 5 k to 5 k + 4, and none uses its last.
    codes = torch.randint(0, 4, (20, columns), generator=generator) + 5 * torch.arange(columns)
    weight = torch.randn(5 * columns, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    factor = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    expected = torch.nn.functional.one_hot(codes, 5 * columns).double().sum(1) @ weight
    found = look_up(codes, weight)
    torch.testing.assert_close(found, expected)
    (ours,) = torch.autograd.grad((found * factor).sum(), weight)
    (theirs,) = torch.autograd.grad((expected * factor).sum(), weight)
    torch.testing.assert_close(ours, theirs)
    assert not ours[4].any()


@pytest.mark.parametrize(("nodes", "columns"), [(0, 1), (3, 0), (0, 0)])
def test_nothing_to_look_up_gives_zeros(nodes, columns):
    weight = torch.ones(5, 4, requires_grad=True)
    found = look_up(torch.zeros(nodes, columns, dtype=torch.int64), weight)
    assert found.shape == (nodes, 4)
    found.sum().backward()
    assert not found.any()
    assert not weight.grad.any()
