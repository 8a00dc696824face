"""Eq. 10 and 15-17 against loops, and the cheap first layer against masking and multiplying."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import linear

from graphsc.losses import factor_weights, mask_factors, masked_first_layer, masked_triplet, split_factors


def views(batch, n, d, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = (batch, d), (batch, n, d), (batch, n, d)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def square(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def weights_by_loop(anchor, positive, negative, temperature):
    rows = []
    for q, plus, minus in zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True):
        e = [dot(q, p) - dot(q, m) for p, m in zip(plus, minus, strict=True)]
        top = max(e)
        exps = [math.exp((x - top) / temperature) for x in e]
        rows.append([(1 - x / sum(exps)) / (len(e) - 1) for x in exps])
    return rows


def loss_by_loop(anchor, positive, negative, margin, weights):
    total = 0.0
    for i, q in enumerate(anchor.tolist()):
        for m, w in enumerate(weights[i]):
            near = square(q, positive[i, m].tolist())
            far = square(q, negative[i, m].tolist())
            total += w * max(near - far + margin, 0.0)
    return total / len(anchor)


def test_row_m_lacks_factor_m():
    y = torch.tensor([[1.0, 2, 3, 4, 5, 6]])
    expected = [[0.0, 0, 3, 4, 5, 6], [1, 2, 0, 0, 5, 6], [1, 2, 3, 4, 0, 0]]
    assert mask_factors(y, 3).tolist() == [expected]


def test_masking_has_the_right_gradient():
    y = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda y: mask_factors(y, 3), [y])


@pytest.mark.parametrize("factors", [0, -1, 4, 7])
def test_factors_that_do_not_fit_are_refused_in_a_sentence(factors):
    with pytest.raises(ValueError, match=f"6 dimensions cannot be cut into {factors} equal factors"):
        split_factors(torch.zeros(2, 6), factors)
    with pytest.raises(ValueError, match="choose a number that divides 6"):
        mask_factors(torch.zeros(2, 6), factors)


@given(st.integers(1, 5), st.integers(2, 5), st.sampled_from([0.05, 0.1, 1.0]), st.integers(0, 1000))
def test_weights_and_loss_are_those_of_the_paper(batch, n, temperature, seed):
    q, plus, minus = views(batch, n, 4, seed)
    expected = weights_by_loop(q, plus, minus, temperature)
    got = factor_weights(q, plus, minus, temperature=temperature)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))
    loss = masked_triplet(q, plus, minus, margin=0.4, temperature=temperature)
    assert loss.item() == pytest.approx(loss_by_loop(q, plus, minus, 0.4, expected))


@given(st.integers(1, 5), st.integers(2, 6), st.floats(0.01, 10), st.floats(0.01, 1000), st.integers(0, 1000))
def test_weights_of_a_graph_sum_to_one(batch, n, temperature, scale, seed):
    q, plus, minus = views(batch, n, 4, seed)
    weights = factor_weights(scale * q, plus, minus, temperature=temperature)
    torch.testing.assert_close(weights.sum(1), torch.ones(batch, dtype=torch.float64))
    assert (weights >= 0).all()


def test_the_factor_that_separates_less_weighs_more():
    q = torch.tensor([[1.0, 0.0]])
    plus = torch.tensor([[[0.3, 0.0], [0.1, 0.0], [0.2, 0.0]]])  # e = 0.3, 0.1, 0.2
    weights = factor_weights(q, plus, torch.zeros(1, 3, 2))
    assert weights.argsort(descending=True).tolist() == [[1, 2, 0]]


def test_one_factor_has_no_weights():
    with pytest.raises(ValueError, match="at least 2 factors, not 1"):
        factor_weights(torch.zeros(2, 3), torch.zeros(2, 1, 3), torch.zeros(2, 1, 3))


def test_with_the_weights_gradient_kept_it_is_right():
    inputs = [v.requires_grad_() for v in views(4, 3, 4)]
    assert gradcheck(lambda *v: masked_triplet(*v, temperature=1.0, keep_gradient=True), inputs)
    assert gradcheck(lambda *v: factor_weights(*v, temperature=1.0, keep_gradient=True), inputs)


def test_by_default_weights_are_constants():
    inputs = [v.requires_grad_() for v in views(4, 3, 4)]
    weights = factor_weights(*inputs)
    assert not weights.requires_grad
    masked_triplet(*inputs).backward()

    def with_fixed_weights(q, plus, minus):
        total = q.new_zeros(())
        for i in range(4):
            for m in range(3):
                gap = ((q[i] - plus[i, m]) ** 2).sum() - ((q[i] - minus[i, m]) ** 2).sum() + 0.2
                total = total + weights[i, m] * gap.clamp(min=0) / 4
        return total

    for v, expected in zip(inputs, torch.autograd.grad(with_fixed_weights(*inputs), inputs), strict=True):
        torch.testing.assert_close(v.grad, expected)


def test_the_order_of_the_batch_does_not_matter():
    inputs, order = views(6, 3, 4), torch.randperm(6)
    torch.testing.assert_close(masked_triplet(*inputs), masked_triplet(*(v[order] for v in inputs)))


@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("value", [0.0, 2.0, 1e4])
@pytest.mark.parametrize("keep_gradient", [True, False])
def test_equal_views_cost_the_margin(batch, value, keep_gradient):
    inputs = [torch.full(s, value, requires_grad=True) for s in ((batch, 4), (batch, 3, 4), (batch, 3, 4))]
    loss = masked_triplet(*inputs, margin=0.3, keep_gradient=keep_gradient)
    loss.backward()
    assert loss.item() == pytest.approx(0.3)
    assert all(v.grad.isfinite().all() for v in inputs)


@pytest.mark.parametrize("batch", [1, 2, 33])
@pytest.mark.parametrize("factors", [1, 2, 4, 12])
@pytest.mark.parametrize("with_bias", [True, False])
def test_the_cheap_first_layer_equals_masking_and_multiplying(batch, factors, with_bias):
    generator = torch.Generator().manual_seed(batch)
    y = torch.randn(batch, 24, generator=generator, requires_grad=True)
    weight = (torch.randn(7, 24, generator=generator) / 5).requires_grad_()
    bias = torch.randn(7, generator=generator, requires_grad=True) if with_bias else None
    leaves = [y, weight, *([bias] if with_bias else [])]
    towards = torch.randn(batch, factors, 7, generator=generator)

    width = 24 // factors
    versions = []
    for m in range(factors):
        mask = torch.ones(24)
        mask[m * width : (m + 1) * width] = 0
        versions.append(linear(y * mask, weight, bias))
    expected = torch.stack(versions, dim=1)
    got = masked_first_layer(y, weight, bias, factors)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(
        torch.autograd.grad((got * towards).sum(), leaves),
        torch.autograd.grad((expected * towards).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got, linear(mask_factors(y, factors), weight, bias), atol=1e-5, rtol=1e-5)
