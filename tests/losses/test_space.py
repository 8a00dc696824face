"""The three spaces, and the points where a direction or a spread is missing."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import to_space


@given(st.lists(st.lists(st.floats(-100, 100), min_size=3, max_size=3), min_size=1, max_size=6))
def test_unit_divides_by_the_length(rows):
    y = torch.tensor(rows, dtype=torch.float64)
    for row, got in zip(rows, to_space(y, "unit").tolist(), strict=True):
        length = math.sqrt(sum(x * x for x in row))
        assume(abs(length - 1e-6) > 1e-9)
        expected = [x / length for x in row] if length > 1e-6 else [0.0] * 3
        assert got == pytest.approx(expected, abs=1e-12)


def test_unit_works_on_masked_views_too():
    y = torch.randn(4, 3, 5)
    torch.testing.assert_close(to_space(y, "unit").norm(dim=-1), torch.ones(4, 3))


def test_raw_changes_nothing():
    y = torch.randn(4, 3)
    assert to_space(y, "raw") is y


@pytest.mark.parametrize("shape", [(7, 3), (7, 2, 3)])
def test_bn_standardises_each_coordinate(shape):
    y = torch.randn(shape, dtype=torch.float64) * 5 + 2
    expected = torch.nn.BatchNorm1d(3, affine=False, eps=1e-6).double()(y.reshape(-1, 3)).reshape(shape)
    torch.testing.assert_close(to_space(y, "bn"), expected)


@pytest.mark.parametrize("space", ["unit", "raw", "bn"])
def test_its_gradient_is_right(space):
    y = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda y: to_space(y, space), [y])


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 1e-30])
def test_a_zero_vector_stays_zero_with_a_zero_gradient(eps):
    y = torch.randn(3, 4)
    y[1] = 0
    y.requires_grad_()
    result = to_space(y, "unit", eps)
    (result * torch.randn(3, 4)).sum().backward()
    assert not result[1].any()
    assert not y.grad[1].any()
    assert y.grad[[0, 2]].isfinite().all()


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize("value", [0.0, 0.1, 1234.5])
def test_bn_makes_equal_rows_zero(batch, value):
    y = torch.full((batch, 3), value, requires_grad=True)
    result = to_space(y, "bn")
    (result * torch.randn(batch, 3)).sum().backward()
    torch.testing.assert_close(result, torch.zeros(batch, 3), atol=0.2, rtol=0)
    assert y.grad.isfinite().all()


def test_bn_of_one_row_is_exactly_zero():
    assert not to_space(torch.randn(1, 3), "bn").any()


def test_an_unknown_space_is_named():
    with pytest.raises(ValueError, match="'sphere' is unknown; choose unit, raw or bn"):
        to_space(torch.zeros(1, 1), "sphere")
