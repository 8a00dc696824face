import math

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import ordered_contrast


def by_loop(anchor, weak, strong, temperature):
    """The definition, a graph at a time."""

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    total = 0.0
    for i, a in enumerate(anchor):
        to_weak = [math.exp(cosine(a, w) / temperature) for w in weak]
        to_own = math.exp(cosine(a, strong[i]) / temperature)
        total -= math.log(to_weak[i] / (sum(to_weak) + to_own))
    return total / len(anchor)


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_it_is_the_definition(rows):
    views = torch.randn(3, rows, 4, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    expected = by_loop(*views.tolist(), 0.3)
    assert float(ordered_contrast(*views, temperature=0.3)) == pytest.approx(expected)


def test_gradient():
    views = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert gradcheck(ordered_contrast, [view.clone().requires_grad_() for view in views])


def test_a_strong_view_as_near_as_the_weak_one_costs():
    anchor = torch.eye(3)
    far = -anchor
    assert ordered_contrast(anchor, anchor, anchor) > ordered_contrast(anchor, anchor, far) + 0.5


@pytest.mark.parametrize("rows", [torch.zeros(3, 2), torch.ones(3, 2)])
def test_equal_or_zero_rows_are_finite(rows):
    rows = rows.clone().requires_grad_()
    loss = ordered_contrast(rows, rows, rows)
    loss.backward()
    assert float(loss) == pytest.approx(math.log(4))
    assert torch.isfinite(rows.grad).all()
