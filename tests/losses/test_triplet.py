"""Eq. 10, 13 and 15-17 against loops; the fast first layer against masking; the embedding spaces."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch.nn.functional import linear

from graphsc.losses import (
    active_triplet_fraction,
    factor_weights,
    mask_factors,
    masked_first_layer,
    masked_triplet,
    normalise_embeddings,
    split_factors,
    triplet,
)


def triplet_by_loop(anchor, positive, negative, margin):
    hinges = []
    for a, p, n in zip(anchor.tolist(), positive.tolist(), negative.tolist(), strict=True):
        near = sum((x - y) ** 2 for x, y in zip(a, p, strict=True))
        far = sum((x - y) ** 2 for x, y in zip(a, n, strict=True))
        hinges.append(max(near - far + margin, 0.0))
    return hinges


def random_triplets(batch, d, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=dtype) for _ in range(3)]


@given(st.integers(1, 7), st.integers(1, 5), st.floats(0, 4), st.integers(0, 1000))
def test_triplet_is_the_mean_hinge(batch, d, margin, seed):
    a, p, n = random_triplets(batch, d, seed)
    hinges = triplet_by_loop(a, p, n, margin)
    assert triplet(a, p, n, margin=margin).item() == pytest.approx(sum(hinges) / batch, abs=1e-12)
    active = sum(h > 0 for h in hinges) / batch
    assert active_triplet_fraction(a, p, n, margin=margin).item() == pytest.approx(active)


def test_triplet_distances_are_squared():
    a, p, n = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 2.0]])
    assert triplet(a, p, n).item() == pytest.approx(9 - 4 + 0.2)


def test_triplet_gradient():
    views = [v.requires_grad_() for v in random_triplets(6, 4)]
    assert 0 < active_triplet_fraction(*views, margin=0.2) < 1
    assert gradcheck(triplet, views)


def test_the_fraction_of_active_triplets_has_no_gradient():
    views = [v.requires_grad_() for v in random_triplets(6, 4)]
    assert not active_triplet_fraction(*views, margin=0.2).requires_grad


def test_triplet_does_not_depend_on_batch_order():
    views, order = random_triplets(9, 4), torch.randperm(9)
    torch.testing.assert_close(triplet(*views), triplet(*(v[order] for v in views)))


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_triplet_of_equal_views_is_the_margin_with_zero_gradient(batch, value):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(3)]
    loss = triplet(*views, margin=0.3)
    loss.backward()
    assert loss.item() == pytest.approx(0.3)
    for v in views:
        assert not v.grad.any()


def test_a_hinge_of_exactly_zero_is_not_active():
    a, p, n = torch.zeros(1, 1), torch.zeros(1, 1), torch.ones(1, 1)
    assert triplet(a, p, n, margin=1.0) == 0
    assert active_triplet_fraction(a, p, n, margin=1.0) == 0


def test_triplet_of_long_similar_vectors_keeps_its_precision():
    a = torch.full((1, 8), 1000.0)
    p, n = a.clone(), a.clone()
    p[0, 0] += 0.5
    n[0, 0] += 0.25
    assert triplet(a, p, n, margin=0.0).item() == pytest.approx(0.25 - 0.0625)


def masked_views(batch, n, d, seed=0):
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


def masked_by_loop(anchor, positive, negative, margin, weights):
    total = 0.0
    for i, q in enumerate(anchor.tolist()):
        for m, w in enumerate(weights[i]):
            near = square(q, positive[i, m].tolist())
            far = square(q, negative[i, m].tolist())
            total += w * max(near - far + margin, 0.0)
    return total / len(anchor)


def test_row_m_of_masked_factors_lacks_factor_m():
    y = torch.tensor([[1.0, 2, 3, 4, 5, 6]])
    expected = [[0.0, 0, 3, 4, 5, 6], [1, 2, 0, 0, 5, 6], [1, 2, 3, 4, 0, 0]]
    assert mask_factors(y, 3).tolist() == [expected]


def test_masking_gradient():
    y = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda y: mask_factors(y, 3), [y])


@pytest.mark.parametrize("factors", [0, -1, 4, 7])
def test_a_number_of_factors_that_does_not_divide_is_refused(factors):
    with pytest.raises(ValueError, match=f"6 dimensions cannot be split into {factors} equal factors"):
        split_factors(torch.zeros(2, 6), factors)
    with pytest.raises(ValueError, match="choose a number that divides 6"):
        mask_factors(torch.zeros(2, 6), factors)


@given(st.integers(1, 5), st.integers(2, 5), st.sampled_from([0.05, 0.1, 1.0]), st.integers(0, 1000))
def test_weights_and_masked_loss_are_those_of_the_paper(batch, n, temperature, seed):
    q, plus, minus = masked_views(batch, n, 4, seed)
    expected = weights_by_loop(q, plus, minus, temperature)
    got = factor_weights(q, plus, minus, temperature=temperature)
    torch.testing.assert_close(got, torch.tensor(expected, dtype=torch.float64))
    loss = masked_triplet(q, plus, minus, margin=0.4, temperature=temperature)
    assert loss.item() == pytest.approx(masked_by_loop(q, plus, minus, 0.4, expected))


@given(st.integers(1, 5), st.integers(2, 6), st.floats(0.01, 10), st.floats(0.01, 1000), st.integers(0, 1000))
def test_factor_weights_sum_to_one(batch, n, temperature, scale, seed):
    q, plus, minus = masked_views(batch, n, 4, seed)
    weights = factor_weights(scale * q, plus, minus, temperature=temperature)
    torch.testing.assert_close(weights.sum(1), torch.ones(batch, dtype=torch.float64))
    assert (weights >= 0).all()


def test_a_factor_that_separates_less_has_a_larger_weight():
    q = torch.tensor([[1.0, 0.0]])
    plus = torch.tensor([[[0.3, 0.0], [0.1, 0.0], [0.2, 0.0]]])  # e = 0.3, 0.1, 0.2
    weights = factor_weights(q, plus, torch.zeros(1, 3, 2))
    assert weights.argsort(descending=True).tolist() == [[1, 2, 0]]


def test_weights_of_a_single_factor_are_refused():
    with pytest.raises(ValueError, match="at least 2 factors, not 1"):
        factor_weights(torch.zeros(2, 3), torch.zeros(2, 1, 3), torch.zeros(2, 1, 3))


def test_masked_gradient_with_keep_gradient():
    inputs = [v.requires_grad_() for v in masked_views(4, 3, 4)]
    assert gradcheck(lambda *v: masked_triplet(*v, temperature=1.0, keep_gradient=True), inputs)
    assert gradcheck(lambda *v: factor_weights(*v, temperature=1.0, keep_gradient=True), inputs)


def test_factor_weights_are_constants_by_default():
    inputs = [v.requires_grad_() for v in masked_views(4, 3, 4)]
    weights = factor_weights(*inputs)
    assert not weights.requires_grad
    masked_triplet(*inputs).backward()

    def with_fixed_weights(q, plus, minus):
        total = q.new_zeros(())
        for i in range(4):
            for m in range(3):
                hinge = ((q[i] - plus[i, m]) ** 2).sum() - ((q[i] - minus[i, m]) ** 2).sum() + 0.2
                total = total + weights[i, m] * hinge.clamp(min=0) / 4
        return total

    for v, expected in zip(inputs, torch.autograd.grad(with_fixed_weights(*inputs), inputs), strict=True):
        torch.testing.assert_close(v.grad, expected)


def test_masked_triplet_does_not_depend_on_batch_order():
    inputs, order = masked_views(6, 3, 4), torch.randperm(6)
    torch.testing.assert_close(masked_triplet(*inputs), masked_triplet(*(v[order] for v in inputs)))


@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("value", [0.0, 2.0, 1e4])
@pytest.mark.parametrize("keep_gradient", [True, False])
def test_masked_triplet_of_equal_views_is_the_margin(batch, value, keep_gradient):
    inputs = [torch.full(s, value, requires_grad=True) for s in ((batch, 4), (batch, 3, 4), (batch, 3, 4))]
    loss = masked_triplet(*inputs, margin=0.3, keep_gradient=keep_gradient)
    loss.backward()
    assert loss.item() == pytest.approx(0.3)
    assert all(v.grad.isfinite().all() for v in inputs)


@pytest.mark.parametrize("batch", [1, 2, 33])
@pytest.mark.parametrize("factors", [1, 2, 4, 12])
@pytest.mark.parametrize("with_bias", [True, False])
def test_masked_first_layer_equals_masking_and_multiplying(batch, factors, with_bias):
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


@given(st.lists(st.lists(st.floats(-100, 100), min_size=3, max_size=3), min_size=1, max_size=6))
def test_unit_space_divides_by_the_length(rows):
    y = torch.tensor(rows, dtype=torch.float64)
    for row, got in zip(rows, normalise_embeddings(y, "unit").tolist(), strict=True):
        length = math.sqrt(sum(x * x for x in row))
        assume(abs(length - 1e-6) > 1e-9)
        expected = [x / length for x in row] if length > 1e-6 else [0.0] * 3
        assert got == pytest.approx(expected, abs=1e-12)


def test_unit_space_of_masked_views():
    y = torch.randn(4, 3, 5)
    torch.testing.assert_close(normalise_embeddings(y, "unit").norm(dim=-1), torch.ones(4, 3))


def test_raw_space_changes_nothing():
    y = torch.randn(4, 3)
    assert normalise_embeddings(y, "raw") is y


@pytest.mark.parametrize("shape", [(7, 3), (7, 2, 3)])
def test_bn_space_standardises_each_coordinate(shape):
    y = torch.randn(shape, dtype=torch.float64) * 5 + 2
    expected = torch.nn.BatchNorm1d(3, affine=False, eps=1e-6).double()(y.reshape(-1, 3)).reshape(shape)
    torch.testing.assert_close(normalise_embeddings(y, "bn"), expected)


@pytest.mark.parametrize("space", ["unit", "raw", "bn"])
def test_normalisation_gradient(space):
    y = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda y: normalise_embeddings(y, space), [y])


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 1e-30])
def test_a_zero_vector_stays_zero_with_zero_gradient(eps):
    y = torch.randn(3, 4)
    y[1] = 0
    y.requires_grad_()
    result = normalise_embeddings(y, "unit", eps)
    (result * torch.randn(3, 4)).sum().backward()
    assert not result[1].any()
    assert not y.grad[1].any()
    assert y.grad[[0, 2]].isfinite().all()


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize("value", [0.0, 0.1, 1234.5])
def test_bn_space_of_equal_rows_is_zero(batch, value):
    y = torch.full((batch, 3), value, requires_grad=True)
    result = normalise_embeddings(y, "bn")
    (result * torch.randn(batch, 3)).sum().backward()
    torch.testing.assert_close(result, torch.zeros(batch, 3), atol=0.2, rtol=0)
    assert y.grad.isfinite().all()


def test_bn_space_of_one_row_is_exactly_zero():
    assert not normalise_embeddings(torch.randn(1, 3), "bn").any()


def test_an_unknown_space_is_refused():
    with pytest.raises(ValueError, match="'sphere' is unknown; choose unit, raw or bn"):
        normalise_embeddings(torch.zeros(1, 1), "sphere")
