"""Errors of codes against the dense target, and the root whose gradient at 0 is 0."""

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import code_error, root_mean_square


def prediction(n, w, seed=0):
    return torch.randn(n, w, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_codes_by_hand():
    """Targets (1, 0, 0 | 1, 0) and (0, 0, 1 | 0, 1) against ones: 3 of 5 wrong by 1 in each row."""
    columns = torch.tensor([[0, 3], [2, 4]])
    assert code_error(torch.ones(2, 5), columns).item() == pytest.approx(6 / 10)


def test_codes_and_floats_are_the_dense_mean_square():
    codes = torch.tensor([[0, 1], [2, 0], [1, 1], [2, 1]])
    floats = torch.tensor([[0.5, -2.0], [0.0, 3.0], [1.5, 0.25], [-1.0, 4.0]], dtype=torch.float64)
    found = prediction(4, 7).requires_grad_()
    dense = torch.zeros(4, 7, dtype=torch.float64)
    for row in range(4):
        dense[row, codes[row, 0]] = 1
        dense[row, 3 + codes[row, 1]] = 1
        dense[row, 5:] = floats[row]
    expected = ((found - dense) ** 2).mean()
    loss = code_error(found, codes + torch.tensor([0, 3]), floats)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, found), torch.autograd.grad(expected, found))


def test_floats_alone():
    columns = torch.zeros(2, 0, dtype=torch.int64)
    floats = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert code_error(torch.zeros(2, 2), columns, floats).item() == pytest.approx((1 + 4 + 9 + 16) / 4)


def test_a_prediction_that_is_the_target_costs_nothing():
    assert code_error(torch.eye(3), torch.arange(3)[:, None]).item() == 0


def test_the_prediction_is_left_as_it_is():
    found = torch.ones(2, 3)
    code_error(found, torch.tensor([[0], [1]]), torch.ones(2, 1))
    assert (found == 1).all()


def test_no_rows_cost_nothing():
    assert code_error(torch.zeros(0, 3), torch.zeros(0, 1, dtype=torch.int64)).item() == 0


def test_root_mean_square_by_hand():
    one = torch.tensor([[3.0, 0.0], [0.0, 5.0]])
    other = torch.tensor([[0.0, 4.0], [0.0, 5.0]])
    assert root_mean_square(one, other).item() == pytest.approx((25 / 4) ** 0.5)
    assert root_mean_square(one, other, torch.tensor([True, False])).item() == pytest.approx((25 / 2) ** 0.5)


def test_root_mean_square_has_the_right_gradient():
    pair = [prediction(3, 2, seed).requires_grad_() for seed in (0, 1)]
    rows = torch.tensor([True, False, True])
    assert gradcheck(lambda one, other: root_mean_square(one, other, rows), pair)


@pytest.mark.parametrize("rows", [None, torch.zeros(3, dtype=torch.bool)])
def test_equal_rows_and_no_rows_have_no_gradient(rows):
    one = torch.ones(3, 2, requires_grad=True)
    loss = root_mean_square(one, torch.ones(3, 2), rows)
    loss.backward()
    assert loss.item() == 0
    assert not one.grad.any()
