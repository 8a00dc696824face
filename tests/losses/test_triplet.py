"""Eq. 13 against a loop over the batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import active_share, triplet


def by_loop(anchor, positive, negative, margin):
    hinges = []
    for a, p, n in zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True):
        near = sum((x - y) ** 2 for x, y in zip(a, p, strict=True))
        far = sum((x - y) ** 2 for x, y in zip(a, n, strict=True))
        hinges.append(max(near - far + margin, 0.0))
    return hinges


def three(batch, d, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=dtype) for _ in range(3)]


@given(st.integers(1, 7), st.integers(1, 5), st.floats(0, 4), st.integers(0, 1000))
def test_it_is_the_mean_hinge(batch, d, margin, seed):
    a, p, n = three(batch, d, seed)
    hinges = by_loop(a, p, n, margin)
    assert triplet(a, p, n, margin=margin).item() == pytest.approx(sum(hinges) / batch, abs=1e-12)
    active = sum(h > 0 for h in hinges) / batch
    assert active_share(a, p, n, margin=margin).item() == pytest.approx(active)


def test_the_distances_are_squared():
    a, p, n = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    assert triplet(a, p, n).item() == pytest.approx(9 - 4 + 0.2)


def test_its_gradient_is_right():
    views = [v.requires_grad_() for v in three(6, 4)]
    assert 0 < active_share(*views, margin=0.2) < 1
    assert gradcheck(triplet, views)


def test_the_share_of_active_triplets_has_no_gradient():
    views = [v.requires_grad_() for v in three(6, 4)]
    assert not active_share(*views, margin=0.2).requires_grad


def test_the_order_of_the_batch_does_not_matter():
    views, order = three(9, 4), torch.randperm(9)
    torch.testing.assert_close(triplet(*views), triplet(*(v[order] for v in views)))


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_views_cost_the_margin_and_move_nothing(batch, value):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(3)]
    loss = triplet(*views, margin=0.3)
    loss.backward()
    assert loss.item() == pytest.approx(0.3)
    for v in views:
        assert not v.grad.any()


def test_a_hinge_of_exactly_zero_is_not_active():
    a, p, n = torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1)
    assert triplet(a, p, n, margin=1.0) == 0
    assert active_share(a, p, n, margin=1.0) == 0


def test_long_vectors_that_differ_little_keep_their_digits():
    a = torch.full((1, 8), 1000.0)
    p, n = a.clone(), a.clone()
    p[0, 0] += 0.5
    n[0, 0] += 0.25
    assert triplet(a, p, n, margin=0.0).item() == pytest.approx(0.25 - 0.0625)
