"""MSE of one-hot codes against the dense target, and RMSE with a gradient of 0 at 0."""

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import one_hot_mse, rmse


def prediction(n, w, seed=0):
    return torch.randn(n, w, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_one_hot_mse_by_hand():
    """Targets (1, 0, 0 | 1, 0) and (0, 0, 1 | 0, 1) against ones: 3 of 5 wrong by 1 in each row."""
    columns = torch.tensor([[0, 3], [2, 4]])
    assert one_hot_mse(torch.ones(2, 5), columns).item() == pytest.approx(6 / 10)


def test_one_hot_mse_equals_the_dense_mse():
    codes = torch.tensor([[0, 1], [2, 0], [1, 1], [2, 1]])
    floats = torch.tensor([[0.5, -2.0], [0.0, 3.0], [1.5, 0.25], [-1.0, 4.0]], dtype=torch.float64)
    predicted = prediction(4, 7).requires_grad_()
    dense = torch.zeros(4, 7, dtype=torch.float64)
    for row in range(4):
        dense[row, codes[row, 0]] = 1
        dense[row, 3 + codes[row, 1]] = 1
        dense[row, 5:] = floats[row]
    expected = ((predicted - dense) ** 2).mean()
    loss = one_hot_mse(predicted, codes + torch.tensor([0, 3]), floats)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, predicted), torch.autograd.grad(expected, predicted))


def test_one_hot_mse_of_floats_alone():
    columns = torch.zeros(2, 0, dtype=torch.int64)
    floats = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert one_hot_mse(torch.zeros(2, 2), columns, floats).item() == pytest.approx((1 + 4 + 9 + 16) / 4)


def test_one_hot_mse_of_the_target_is_zero():
    assert one_hot_mse(torch.eye(3), torch.arange(3)[:, None]).item() == 0


def test_one_hot_mse_does_not_modify_the_prediction():
    predicted = torch.ones(2, 3)
    one_hot_mse(predicted, torch.tensor([[0], [1]]), torch.ones(2, 1))
    assert (predicted == 1).all()


def test_one_hot_mse_of_no_rows_is_zero():
    assert one_hot_mse(torch.zeros(0, 3), torch.zeros(0, 1, dtype=torch.int64)).item() == 0


def test_rmse_by_hand():
    one = torch.tensor([[3.0, 0.0], [0.0, 5.0]])
    other = torch.tensor([[0.0, 4.0], [0.0, 5.0]])
    assert rmse(one, other).item() == pytest.approx((25 / 4) ** 0.5)
    assert rmse(one, other, torch.tensor([True, False])).item() == pytest.approx((25 / 2) ** 0.5)


def test_rmse_gradient():
    pair = [prediction(3, 2, seed).requires_grad_() for seed in (0, 1)]
    rows = torch.tensor([True, False, True])
    assert gradcheck(lambda one, other: rmse(one, other, rows), pair)


@pytest.mark.parametrize("rows", [None, torch.zeros(3, dtype=torch.bool)])
def test_rmse_of_equal_rows_or_no_rows_has_zero_gradient(rows):
    one = torch.ones(3, 2, requires_grad=True)
    loss = rmse(one, torch.ones(3, 2), rows)
    loss.backward()
    assert loss.item() == 0
    assert not one.grad.any()
