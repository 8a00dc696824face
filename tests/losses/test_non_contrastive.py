"""VICReg and BYOL's loss against plain loops over rows and columns."""

import math
from statistics import covariance, mean, variance

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import byol_cosine, vicreg


def random_views(batch, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=torch.float64) for _ in range(2)]


def vicreg_by_loop(first, second, invariance, of_variance, of_covariance):
    distance = mean(
        (float(a) - float(b)) ** 2 for a, b in zip(first.flatten(), second.flatten(), strict=True)
    )
    spread = redundancy = 0.0
    for view in (first, second):
        columns = view.mT.tolist()
        spread += mean(max(0.0, 1 - math.sqrt(variance(column) + 1e-4)) for column in columns) / 2
        for i, one in enumerate(columns):
            for j, other in enumerate(columns):
                redundancy += covariance(one, other) ** 2 / len(columns) if i != j else 0.0
    return invariance * distance + of_variance * spread + of_covariance * redundancy


@given(st.integers(2, 7), st.integers(1, 5), st.floats(0.1, 3), st.integers(0, 1000))
def test_vicreg_equals_the_loop(batch, d, scale, seed):
    first, second = (scale * view for view in random_views(batch, d, seed))
    loss = vicreg(first, second, invariance=3.0, variance=5.0, covariance=0.5)
    assert loss.item() == pytest.approx(vicreg_by_loop(first, second, 3.0, 5.0, 0.5))


def test_vicreg_has_the_published_weights():
    first, second = random_views(6)
    assert vicreg(first, second).item() == pytest.approx(vicreg_by_loop(first, second, 25, 25, 1))


def test_vicreg_gradient():
    assert gradcheck(vicreg, [view.requires_grad_() for view in random_views(5, 3)])


def test_vicreg_of_one_row_has_variance_zero():
    first, second = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 4.0]])
    assert vicreg(first, second).item() == pytest.approx(25 * 2 + 25 * 0.99)


@pytest.mark.parametrize("loss", [vicreg, byol_cosine])
@pytest.mark.parametrize("value", [0.0, 2.0])
@pytest.mark.parametrize("batch", [0, 1, 4])
def test_equal_zero_and_no_rows_are_finite(loss, value, batch):
    views = [torch.full((batch, 3), value, requires_grad=True) for _ in range(2)]
    result = loss(*views)
    result.backward()
    assert torch.isfinite(result)
    assert torch.isfinite(views[0].grad).all()


@pytest.mark.parametrize("loss", [vicreg, byol_cosine])
def test_views_of_different_shape_are_refused(loss):
    with pytest.raises(ValueError, match=r"\(3, 2\) and \(2, 2\)"):
        loss(torch.ones(3, 2), torch.ones(2, 2))


def test_byol_cosine_by_hand():
    prediction = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 0.0]])
    target = torch.tensor([[3.0, 0.0], [0.0, -2.0], [0.0, 5.0], [1.0, 1.0]])
    # Cosines 1, -1, 0, and 0 of a zero row.
    assert byol_cosine(prediction, target).item() == pytest.approx((0 + 4 + 2 + 2) / 4)


def test_byol_cosine_is_the_squared_distance_of_unit_vectors():
    prediction, target = random_views(6)
    one, other = (view / view.norm(dim=1, keepdim=True) for view in (prediction, target))
    expected = sum(float((a - b).square().sum()) for a, b in zip(one, other, strict=True)) / 6
    assert byol_cosine(prediction, target).item() == pytest.approx(expected)


def test_no_gradient_flows_to_the_target_of_byol_cosine():
    prediction, target = (view.requires_grad_() for view in random_views(3))
    byol_cosine(prediction, target).backward()
    assert prediction.grad.any()
    assert target.grad is None


def test_byol_cosine_gradient():
    prediction, target = random_views(4)
    assert gradcheck(lambda rows: byol_cosine(rows, target), prediction.requires_grad_())
