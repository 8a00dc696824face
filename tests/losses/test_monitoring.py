"""Measures of collapse on sets with known values and against loops; accuracies of pretext tasks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.losses import (
    alignment,
    effective_rank,
    mean_cosine,
    retrieval_accuracy,
    triplet_accuracy,
    uniformity,
)


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


def test_effective_rank_of_a_cross_is_its_dimension():
    assert effective_rank(torch.cat([torch.eye(5), -torch.eye(5)])).item() == pytest.approx(5)


def test_effective_rank_of_a_line_is_one():
    assert effective_rank(torch.arange(9.0)[:, None] * torch.randn(1, 6) + 2).item() == pytest.approx(
        1, abs=1e-2
    )


@pytest.mark.parametrize(
    "h", [torch.zeros(0, 4), torch.randn(1, 4), torch.zeros(5, 4), torch.full((7, 4), 0.1)]
)
def test_effective_rank_of_equal_rows_is_zero(h):
    assert effective_rank(h) == 0


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_effective_rank_of_non_finite_values_is_nan(bad):
    h = rows(4, 3)
    h[1, 1] = bad
    assert effective_rank(h).isnan()


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 1000))
def test_alignment_uniformity_and_cosine_equal_loops_over_pairs(n, d, seed):
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
def test_fewer_than_two_rows_count_as_one_point(n):
    h = rows(n, 3)
    assert uniformity(h) == 0
    assert mean_cosine(h) == 1


def test_zero_vectors_are_finite():
    h = torch.zeros(4, 3)
    assert alignment(h, h) == 0
    assert uniformity(h) == 0
    assert mean_cosine(h) == 0


def test_uniformity_samples_rows_evenly():
    h = rows(3001, 8)
    assert uniformity(h).item() == pytest.approx(uniformity(h[:: 3000 // 999]).item(), abs=0.02)
    # Half of the rows at one point, half at its opposite: a sample from one end would see one point only.
    poles = torch.ones(4000, 2)
    poles[2000:] = -1
    expected = math.log((499 + 500 * math.exp(-8)) / 999)
    assert uniformity(poles).item() == pytest.approx(expected)


@pytest.mark.parametrize("measure", [effective_rank, uniformity, mean_cosine])
def test_measures_have_no_gradient_and_double_precision(measure):
    value = measure(rows(6, 3).requires_grad_())
    assert not value.requires_grad
    assert value.dtype == torch.float64
    assert value.shape == ()


def test_alignment_has_no_gradient():
    h = rows(6, 3).requires_grad_()
    assert not alignment(h, h + 1).requires_grad


def test_retrieval_accuracy_by_hand():
    anchor = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    # Lengths must not matter; the third looks for (1, 1) which is row 1's view.
    other = torch.tensor([[5.0, 0.1], [0.9, 1.1], [-1.0, 0.0]])
    assert retrieval_accuracy(anchor, other) == pytest.approx(2 / 3)
    assert retrieval_accuracy(anchor, anchor) == 1


def test_retrieval_accuracy_of_collapsed_rows_is_chance():
    rows = torch.ones(8, 3)
    assert retrieval_accuracy(rows, rows) == pytest.approx(1 / 8)


def test_retrieval_accuracy_equals_the_loop():
    generator = torch.Generator().manual_seed(0)
    anchor, other = torch.randn(2, 20, 5, generator=generator)
    correct = 0
    for i in range(20):
        similarity = [float(torch.cosine_similarity(anchor[i], other[j], dim=0)) for j in range(20)]
        correct += similarity.index(max(similarity)) == i
    assert retrieval_accuracy(anchor, other) == pytest.approx(correct / 20)


def test_triplet_accuracy_counts_ties_half():
    anchor = torch.zeros(4, 2)
    positive = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    negative = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    # Nearer, farther, as near, nearer.
    assert triplet_accuracy(anchor, positive, negative) == (1 + 0 + 0.5 + 1) / 4
