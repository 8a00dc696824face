"""RGCL's losses against a loop over graphs."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import independence, log_of_sum


def three(batch, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=torch.float64) for _ in range(3)]


def similarity(a, b, temperature):
    a, b = a.tolist(), b.tolist()
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return math.exp(product / math.hypot(*a) / math.hypot(*b) / temperature)


@pytest.mark.parametrize("batch", [1, 2, 6])
def test_independence_is_the_mean_over_graphs(batch):
    anchor, positive, complement = three(batch)
    expected = 0.0
    for i in range(batch):
        own = similarity(anchor[i], positive[i], 0.3)
        others = sum(similarity(anchor[i], complement[j], 0.3) for j in range(batch))
        expected -= math.log(own / (own + others)) / batch
    found = independence(anchor, positive, complement, temperature=0.3)
    assert found.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize("weight", [0.0, 0.1, 2.0])
def test_log_of_sum_is_the_mean_over_graphs(batch, weight):
    anchor, positive, complement = three(batch, seed=1)
    expected = 0.0
    for i in range(batch):
        own = similarity(anchor[i], positive[i], 0.2)
        rationales = sum(similarity(anchor[i], positive[j], 0.2) for j in range(batch))
        others = sum(similarity(anchor[i], complement[j], 0.2) for j in range(batch))
        expected -= math.log(own / rationales + weight * own / (others + own)) / batch
    found = log_of_sum(anchor, positive, complement, weight=weight)
    assert found.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", [independence, log_of_sum])
def test_gradients_pass_gradcheck(loss):
    views = [view.requires_grad_() for view in three(5, seed=2)]
    assert gradcheck(loss, views)


@pytest.mark.parametrize("loss", [independence, log_of_sum])
@pytest.mark.parametrize("batch", [1, 4])
def test_zero_rows_and_identical_views_are_finite(loss, batch):
    for rows in (torch.zeros(batch, 3), torch.ones(batch, 3)):
        views = [rows.clone().requires_grad_() for _ in range(3)]
        found = loss(*views)
        found.backward()
        assert torch.isfinite(found)
        assert all(torch.isfinite(view.grad).all() for view in views)


@pytest.mark.parametrize("loss", [independence, log_of_sum])
def test_a_temperature_of_zero_is_refused(loss):
    with pytest.raises(ValueError, match="temperature"):
        loss(*three(2), temperature=0.0)
