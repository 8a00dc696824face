"""Eq. 18-20 against loops, in the printed and in the original form."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import barlow_twins, mean_squared_distance

FORMS = ["original", "paper"]


def random_pair(batch, d, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=torch.float64) + 0.5 for _ in range(2)]


def barlow_by_loop(z, z_positive, beta, form):
    batch, d = z.shape
    one, other = z.T.tolist(), z_positive.T.tolist()
    if form == "original":
        one = [[x - sum(column) / batch for x in column] for column in one]
        other = [[x - sum(column) / batch for x in column] for column in other]
    agreement = redundancy = 0.0
    for i in range(d):
        for j in range(d):
            product = sum(x * y for x, y in zip(one[i], other[j], strict=True))
            c = product / math.sqrt(sum(x * x for x in one[i])) / math.sqrt(sum(x * x for x in other[j]))
            if i == j:
                agreement += (1 - c) ** 2
            else:
                redundancy += c**2
    return (agreement / batch if form == "paper" else agreement) + beta * redundancy


@given(st.integers(2, 8), st.integers(1, 5), st.floats(0, 2), st.sampled_from(FORMS), st.integers(0, 1000))
def test_barlow_twins_equals_the_loop(batch, d, beta, form, seed):
    z, z_positive = random_pair(batch, d, seed)
    expected = barlow_by_loop(z, z_positive, beta, form)
    assert barlow_twins(z, z_positive, beta=beta, form=form).item() == pytest.approx(expected, abs=1e-10)


def test_the_default_beta_is_the_paper_value():
    views = random_pair(6, 4)
    assert barlow_twins(*views).item() == pytest.approx(barlow_by_loop(*views, 0.013, "original"))


@pytest.mark.parametrize("form", FORMS)
def test_barlow_twins_gradient(form):
    views = [v.requires_grad_() for v in random_pair(5, 3)]
    assert gradcheck(lambda *v: barlow_twins(*v, beta=0.3, form=form), views)


@pytest.mark.parametrize("form", FORMS)
def test_equal_views_with_uncorrelated_coordinates_have_zero_loss(form):
    z = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert barlow_twins(z, z, form=form).item() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_scaling_a_view_changes_nothing(form):
    z, z_positive = random_pair(6, 4)
    torch.testing.assert_close(
        barlow_twins(z, z_positive, form=form), barlow_twins(1000 * z, 0.01 * z_positive, form=form)
    )


@pytest.mark.parametrize("form", FORMS)
def test_barlow_twins_does_not_depend_on_batch_order(form):
    views, order = random_pair(7, 4), torch.randperm(7)
    torch.testing.assert_close(
        barlow_twins(*views, form=form), barlow_twins(*(v[order] for v in views), form=form)
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 2, 7])
@pytest.mark.parametrize("value", [0.0, 0.1, 1234.5])
def test_equal_rows_are_finite(form, batch, value):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(2)]
    loss = barlow_twins(*views, form=form)
    loss.backward()
    assert loss.isfinite()
    assert all(v.grad.isfinite().all() for v in views)
    if form == "original":
        assert loss == 4  # no column varies, so all correlations are 0
        assert all(not v.grad.any() for v in views)


@pytest.mark.parametrize("form", FORMS)
def test_a_zero_column_does_not_affect_the_others(form):
    z, z_positive = random_pair(6, 3)
    without = barlow_twins(z, z_positive, form=form)
    dead = torch.zeros(6, 1, dtype=torch.float64)
    views = [torch.cat([v, dead], 1).requires_grad_() for v in (z, z_positive)]
    loss = barlow_twins(*views, form=form)
    loss.backward()
    torch.testing.assert_close(loss, without + (1 / 6 if form == "paper" else 1))
    assert all(not v.grad[:, 3].any() for v in views)
    assert all(v.grad.isfinite().all() for v in views)


def test_a_column_constant_up_to_rounding_is_constant():
    z = torch.full((50, 1), 0.1) * (1 + 1e-7 * torch.randn(50, 1))
    assert barlow_twins(z, z) == 1


def test_one_graph_in_the_printed_form_has_correlations_of_one():
    z = torch.tensor([[1.0, -2.0]], requires_grad=True)
    loss = barlow_twins(z, z.detach().clone(), form="paper", beta=0.5)
    loss.backward()
    assert loss.item() == pytest.approx(1.0)  # C_12 = C_21 = -1
    assert z.grad.isfinite().all()


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="'printed' of the Barlow Twins loss is unknown"):
        barlow_twins(torch.zeros(2, 2), torch.zeros(2, 2), form="printed")


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_mean_squared_distance_equals_the_loop(batch, d, seed):
    y, y_positive = random_pair(batch, d, seed)
    total = sum(
        (a - b) ** 2 for a, b in zip(y.flatten().tolist(), y_positive.flatten().tolist(), strict=True)
    )
    assert mean_squared_distance(y, y_positive).item() == pytest.approx(total / batch)


def test_mean_squared_distance_gradient():
    assert gradcheck(mean_squared_distance, [v.requires_grad_() for v in random_pair(4, 3)])


def test_mean_squared_distance_of_equal_views_has_zero_gradient():
    y = torch.randn(1, 3, requires_grad=True)
    loss = mean_squared_distance(y, y.detach().clone())
    loss.backward()
    assert loss == 0
    assert not y.grad.any()
