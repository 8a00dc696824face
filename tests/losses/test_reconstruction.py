"""MSE of one-hot codes against the dense target, RMSE with a gradient of 0 at 0, scaled cosine error."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import one_hot_mse, rmse, scaled_cosine_error


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


@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0])
def test_scaled_cosine_error_is_the_mean_over_rows(gamma):
    torch.manual_seed(0)
    prediction, target = torch.randn(5, 3), torch.randn(5, 3)
    errors = []
    for one, other in zip(prediction.tolist(), target.tolist(), strict=True):
        product = sum(a * b for a, b in zip(one, other, strict=True))
        errors.append((1 - product / (math.hypot(*one) * math.hypot(*other))) ** gamma)
    found = scaled_cosine_error(prediction, target, gamma=gamma)
    assert float(found) == pytest.approx(sum(errors) / 5, rel=1e-5)


def test_scaled_cosine_error_is_zero_for_equal_directions_and_without_rows():
    rows = torch.randn(4, 3, requires_grad=True)
    loss = scaled_cosine_error(rows, 7 * rows.detach(), gamma=1.5)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(rows.grad).all()
    assert float(scaled_cosine_error(torch.zeros(0, 3), torch.zeros(0, 3))) == 0


def test_scaled_cosine_error_of_a_zero_row_is_one_with_a_finite_gradient():
    rows = torch.zeros(1, 3, requires_grad=True)
    loss = scaled_cosine_error(rows, torch.ones(1, 3))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(1)
    assert torch.isfinite(rows.grad).all()


def test_scaled_cosine_error_needs_a_gamma_of_at_least_one():
    with pytest.raises(ValueError, match="gamma"):
        scaled_cosine_error(torch.ones(1, 2), torch.ones(1, 2), gamma=0.5)
