"""Measures of collapse on sets whose values are known, and against loops over pairs."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.losses import alignment, effective_rank, mean_cosine, uniformity


def rows(n, d, seed=0, dtype=torch.float32):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def normalised(h):
    result = []
    for row in h.double().tolist():
        length = math.sqrt(sum(x * x for x in row))
        result.append([x / length for x in row] if length else row)
    return result


def square(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("n", "d"), [(5, 3), (3, 5), (4, 4), (2, 6), (300, 20)])
def test_effective_rank_is_the_entropy_of_singular_values(n, d):
    h = rows(n, d) + 3
    x = h.double().numpy()
    s = np.linalg.svd(x - x.mean(0), compute_uv=False)
    share = s[s > 1e-10] / s.sum()
    assert effective_rank(h).item() == pytest.approx(math.exp(-(share * np.log(share)).sum()), rel=1e-5)


def test_a_cross_uses_all_its_directions():
    assert effective_rank(torch.cat([torch.eye(5), -torch.eye(5)])).item() == pytest.approx(5)


def test_a_line_is_of_rank_one():
    assert effective_rank(torch.arange(9.0)[:, None] * torch.randn(1, 6) + 2).item() == pytest.approx(
        1, abs=1e-2
    )


@pytest.mark.parametrize(
    "h", [torch.zeros(0, 4), torch.randn(1, 4), torch.zeros(5, 4), torch.full((7, 4), 0.1)]
)
def test_no_spread_is_rank_zero(h):
    assert effective_rank(h) == 0


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_has_no_rank(bad):
    h = rows(4, 3)
    h[1, 1] = bad
    assert effective_rank(h).isnan()


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 1000))
def test_pairs_are_those_of_a_loop(n, d, seed):
    h, positive = rows(n, d, seed), rows(n, d, seed + 1)
    u, v = normalised(h), normalised(positive)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    near = sum(square(a, b) for a, b in zip(u, v, strict=True)) / n
    even = math.log(sum(math.exp(-2 * square(u[i], u[j])) for i, j in pairs) / len(pairs))
    cosine = sum(sum(x * y for x, y in zip(u[i], u[j], strict=True)) for i, j in pairs) / len(pairs)
    assert alignment(h, positive).item() == pytest.approx(near)
    assert uniformity(h).item() == pytest.approx(even, abs=1e-9)
    assert mean_cosine(h).item() == pytest.approx(cosine, abs=1e-9)


def test_one_direction_is_collapse():
    h = torch.arange(1.0, 6.0)[:, None] * torch.tensor([[1.0, 2.0, 3.0]])
    assert uniformity(h).item() == pytest.approx(0, abs=1e-9)
    assert mean_cosine(h).item() == pytest.approx(1)
    assert alignment(h, 2 * h).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n", [0, 1])
def test_without_a_pair_the_values_are_those_of_one_point(n):
    h = rows(n, 3)
    assert uniformity(h) == 0
    assert mean_cosine(h) == 1


def test_zero_vectors_are_finite():
    h = torch.zeros(4, 3)
    assert alignment(h, h) == 0
    assert uniformity(h) == 0
    assert mean_cosine(h) == 0


def test_many_rows_are_taken_evenly_for_uniformity():
    h = rows(3001, 8)
    assert uniformity(h).item() == pytest.approx(uniformity(h[:: 3000 // 999]).item(), abs=0.02)
    # Half of the rows at one point, half at its opposite: a sample from one end would see one point only.
    poles = torch.ones(4000, 2)
    poles[2000:] = -1
    expected = math.log((499 + 500 * math.exp(-8)) / 999)
    assert uniformity(poles).item() == pytest.approx(expected)


@pytest.mark.parametrize("measure", [effective_rank, uniformity, mean_cosine])
def test_they_leave_no_gradient_and_are_in_double_precision(measure):
    value = measure(rows(6, 3).requires_grad_())
    assert not value.requires_grad
    assert value.dtype == torch.float64
    assert value.shape == ()


def test_alignment_leaves_no_gradient():
    h = rows(6, 3).requires_grad_()
    assert not alignment(h, h + 1).requires_grad
