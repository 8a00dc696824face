"""Eq. 6 with dense H matrices, Eq. 14 pair by pair, and the properties of HSIC."""

import math
from statistics import median

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import factor_dependence, hsic
from graphsc.losses.hsic import centred_kernel

KERNELS = ["rbf-median", "rbf", "linear"]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def kernel_by_loop(x, kernel, sigma):
    """K entry by entry; the median is a number, so no gradient flows through it."""
    m = len(x)
    if kernel == "rbf-median":
        sigma = math.sqrt(
            median(((x[i] - x[j]) ** 2).sum().item() for i in range(m) for j in range(m) if i != j)
        )
    rows = []
    for i in range(m):
        if kernel == "linear":
            row = [(x[i] * x[j]).sum() for j in range(m)]
        else:
            row = [torch.exp(-((x[i] - x[j]) ** 2).sum() / (2 * sigma**2)) for j in range(m)]
        rows.append(torch.stack(row))
    return torch.stack(rows)


def hsic_by_definition(x, y, kernel, sigma):
    m = len(x)
    h = torch.eye(m, dtype=x.dtype) - torch.ones(m, m, dtype=x.dtype) / m
    k, s = kernel_by_loop(x, kernel, sigma), kernel_by_loop(y, kernel, sigma)
    return torch.trace(k @ h @ s @ h) / (m - 1) ** 2


def dependence_by_loop(y, factors, kernel, sigma, samples):
    width = y.shape[1] // factors
    parts = [y[:, j * width : (j + 1) * width] for j in range(factors)]
    total = y.new_zeros(())
    for j in range(factors):
        for k in range(factors):
            if j == k:
                continue
            if samples == "batch":
                total = total + hsic_by_definition(parts[j], parts[k], kernel, sigma)
            else:
                for i in range(len(y)):
                    one, other = parts[j][i][:, None], parts[k][i][:, None]
                    total = total + hsic_by_definition(one, other, kernel, sigma) / len(y)
    return total


@given(st.integers(2, 9), st.sampled_from(KERNELS), st.floats(0.3, 3), st.integers(0, 1000))
def test_hsic_equals_its_definition(m, kernel, sigma, seed):
    x, y = normal(m, 3, seed=seed), normal(m, 2, seed=seed + 1)
    expected = hsic_by_definition(x, y, kernel, sigma)
    torch.testing.assert_close(hsic(x, y, kernel=kernel, sigma=sigma), expected, atol=1e-12, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("samples", ["batch", "coordinates"])
@pytest.mark.parametrize(("batch", "factors", "d"), [(2, 2, 4), (5, 3, 12), (6, 2, 10)])
def test_factor_dependence_and_its_gradient_equal_the_loop_over_pairs(kernel, samples, batch, factors, d):
    y = normal(batch, d).requires_grad_()
    got = factor_dependence(y, factors, kernel=kernel, sigma=0.8, samples=samples)
    expected = dependence_by_loop(y, factors, kernel, 0.8, samples)
    torch.testing.assert_close(got, expected)
    (mine,), (theirs,) = torch.autograd.grad(got, [y]), torch.autograd.grad(expected, [y])
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("samples", ["batch", "coordinates"])
def test_the_mean_is_over_ordered_pairs(samples):
    y = normal(6, 12)
    total = factor_dependence(y, 4, samples=samples)
    mean = factor_dependence(y, 4, samples=samples, reduction="mean")
    torch.testing.assert_close(mean, total / 12)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_hsic_and_factor_dependence_gradients(kernel):
    x, y = normal(5, 2).requires_grad_(), normal(5, 3, seed=1).requires_grad_()
    assert gradcheck(lambda x, y: hsic(x, y, kernel=kernel, sigma=1.3), [x, y])
    for samples in ("batch", "coordinates"):
        z = normal(4, 6, seed=2).requires_grad_()
        assert gradcheck(lambda z, s=samples: factor_dependence(z, 2, kernel=kernel, samples=s), [z])


@pytest.mark.parametrize("p", [1, 3])
def test_centred_kernel_gradient(p):
    x = normal(2, 4, p).requires_grad_()
    assert gradcheck(lambda x: centred_kernel(x, "rbf", 1.1), [x])


@pytest.mark.parametrize("kernel", ["rbf-median", "linear"])
@pytest.mark.parametrize("samples", ["batch", "coordinates"])
def test_factor_dependence_does_not_depend_on_batch_order(kernel, samples):
    y, order = normal(7, 8), torch.randperm(7)
    one = factor_dependence(y, 2, kernel=kernel, samples=samples)
    torch.testing.assert_close(one, factor_dependence(y[order], 2, kernel=kernel, samples=samples))


def test_hsic_is_symmetric():
    x, y = normal(8, 3), normal(8, 2, seed=1)
    torch.testing.assert_close(hsic(x, y), hsic(y, x))


@given(st.floats(0.01, 1000), st.floats(-10, 10))
def test_the_median_kernel_does_not_depend_on_scale_and_shift(scale, shift):
    x, y = normal(8, 3), normal(8, 2, seed=1)
    torch.testing.assert_close(hsic(scale * (x + shift), y), hsic(x, y))


@pytest.mark.parametrize("kernel", KERNELS)
def test_independent_factors_depend_less_than_related_and_related_less_than_equal(kernel):
    c = normal(200, 3)
    noise = normal(200, 3, seed=1)
    independent = factor_dependence(torch.cat([c, noise], 1), 2, kernel=kernel)
    related = factor_dependence(torch.cat([c, 0.7 * c + 0.7 * noise], 1), 2, kernel=kernel)
    equal = factor_dependence(torch.cat([c, c], 1), 2, kernel=kernel)
    assert 0 < 2 * independent < related < equal


def test_gradient_descent_makes_factors_less_dependent():
    c = normal(40, 2)
    y = torch.cat([c, c + 0.1 * normal(40, 2, seed=1)], 1).requires_grad_()
    first = factor_dependence(y, 2)
    optimiser = torch.optim.Adam([y], lr=0.1)
    for _ in range(30):
        optimiser.zero_grad()
        factor_dependence(y, 2).backward()
        optimiser.step()
    assert factor_dependence(y, 2) < first / 3


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("samples", ["batch", "coordinates"])
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e3])
def test_equal_rows_are_independent_and_finite(kernel, samples, batch, value):
    y = torch.full((batch, 8), value, requires_grad=True)
    loss = factor_dependence(y, 2, kernel=kernel, samples=samples)
    loss.backward()
    assert abs(loss.item()) < 1e-6
    assert y.grad.isfinite().all()
    assert y.grad.abs().max() < 1e-3


def test_rows_equal_up_to_rounding_count_as_equal():
    y = 1000 * (1 + 1e-7 * torch.randn(16, 8, generator=torch.Generator().manual_seed(0)))
    y.requires_grad_()
    loss = factor_dependence(y, 2)
    loss.backward()
    assert abs(loss.item()) < 1e-6
    assert y.grad.isfinite().all()


@pytest.mark.parametrize("batch", [2, 6])
def test_more_than_half_the_rows_equal_is_finite(batch):
    y = torch.zeros(batch, 8)
    y[0] = torch.randn(8)
    y.requires_grad_()
    loss = factor_dependence(y, 4)
    loss.backward()
    assert loss.isfinite()
    assert y.grad.isfinite().all()


@pytest.mark.parametrize(
    ("shape", "factors", "samples"), [((1, 8), 2, "batch"), ((4, 2), 2, "coordinates"), ((4, 8), 1, "batch")]
)
def test_one_sample_or_factor_is_zero_with_zero_gradient(shape, factors, samples):
    y = torch.randn(shape, requires_grad=True)
    loss = factor_dependence(y, factors, samples=samples, reduction="mean")
    loss.backward()
    assert loss == 0
    assert not y.grad.any()


def test_hsic_of_one_pair_of_samples_is_zero_with_zero_gradient():
    x, y = torch.randn(1, 3, requires_grad=True), torch.randn(1, 2, requires_grad=True)
    loss = hsic(x, y)
    loss.backward()
    assert loss == 0
    assert not x.grad.any()
    assert not y.grad.any()


def test_single_precision_is_close_to_double():
    y = normal(128, 96) + 20  # far from zero, where products of raw vectors lose precision
    single, double = y.float().requires_grad_(), y.requires_grad_()
    one, other = factor_dependence(single, 4), factor_dependence(double, 4)
    one.backward()
    other.backward()
    torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=0)
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=1e-3, atol=1e-8)


def test_invalid_settings_are_refused():
    y = torch.randn(4, 8)
    with pytest.raises(ValueError, match="8 dimensions cannot be split into 3"):
        factor_dependence(y, 3)
    with pytest.raises(ValueError, match="'cosine' is unknown; choose rbf-median, rbf or linear"):
        factor_dependence(y, 2, kernel="cosine")
    with pytest.raises(ValueError, match="'graphs' are unknown; choose batch or coordinates"):
        factor_dependence(y, 2, samples="graphs")
    with pytest.raises(ValueError, match="'max' is unknown; choose sum or mean"):
        factor_dependence(y, 2, reduction="max")
    with pytest.raises(ValueError, match="4 of x and 3 of y"):
        hsic(y, y[:3])
    with pytest.raises(ValueError, match="sigma must be above zero, not 0"):
        hsic(y, y, kernel="rbf", sigma=0)


@pytest.mark.parametrize("samples", ["batch", "coordinates"])
def test_stacked_views_are_summed(samples):
    views = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    apart = sum(factor_dependence(view, 3, samples=samples) for view in views)
    torch.testing.assert_close(factor_dependence(views, 3, samples=samples), apart)
