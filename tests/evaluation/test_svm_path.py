"""Every solver meets the optimality conditions of the SVM, computed here from the weights alone."""

import numpy as np
import pytest
from sklearn.svm import SVC

from graphsc.evaluation.svm_path import initial_state, rescale, smo, solve_active_set, solve_path

GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def problem(clouds, sizes=(90, 60), seed=0, **options):
    values, labels = clouds(sizes, seed=seed, scale=1.0, **options)
    squares = ((values[:, None] - values[None]) ** 2).sum(-1)
    return np.exp(-squares / (values.shape[1] * values.var())), labels == 1


def violation(kernel, positive, c, weights, intercept):
    """The largest violation of 0 <= a <= c, of sum = 0, and of the margins for a = 0, between, and = c."""
    signs = np.where(positive, 1.0, -1.0)
    alpha = weights * signs
    margin = signs * (kernel @ weights + intercept)
    at_zero, at_bound = alpha <= 1e-9 * c, alpha >= c * (1 - 1e-9)
    free = ~(at_zero | at_bound)
    return max(
        -alpha.min() / c,
        alpha.max() / c - 1,
        abs(weights.sum()) / c,
        (1 - margin[at_zero]).max(initial=0.0),
        (margin[at_bound] - 1).max(initial=0.0),
        np.abs(margin[free] - 1).max(initial=0.0),
    )


@pytest.mark.parametrize(
    "sizes", [(75, 75), (120, 30), (30, 120)], ids=["balanced", "few second", "few first"]
)
@pytest.mark.parametrize("apart", [0.3, 1.0, 8.0])
def test_every_svm_is_optimal(clouds, sizes, apart):
    kernel, positive = problem(clouds, sizes, apart=apart)
    for c, svm in zip(GRID, solve_path(kernel, positive, GRID), strict=True):
        assert violation(kernel, positive, c, *svm) < 2e-3


def test_the_grid_may_have_any_order(clouds):
    kernel, positive = problem(clouds)
    up, down = solve_path(kernel, positive, GRID), solve_path(kernel, positive, GRID[::-1])
    for ascending, descending in zip(up, down[::-1], strict=True):
        assert ascending.weights.tolist() == descending.weights.tolist()


def test_the_active_set_finishes_an_unfinished_libsvm_exactly(clouds):
    """After too few steps libsvm is far from optimal; a few linear systems suffice to finish."""
    kernel, positive = problem(clouds, (250, 250), apart=0.3, seed=1)
    signs = np.where(positive, 1.0, -1.0)
    with pytest.warns(UserWarning, match="terminated early"):
        svm = SVC(C=100.0, kernel="precomputed", max_iter=1500).fit(kernel, positive)
    weights = np.zeros(500)
    weights[svm.support_] = svm.dual_coef_[0]
    assert violation(kernel, positive, 100.0, weights, svm.intercept_[0]) > 0.01
    finished = solve_active_set(kernel, signs, 100.0, weights)
    assert finished is not None
    assert violation(kernel, positive, 100.0, *finished) < 2e-4


def test_the_active_set_finishes_with_equal_rows(clouds):
    kernel, positive = problem(clouds, (60, 60), apart=0.5)
    twice = np.concatenate([np.arange(120), np.arange(60)])
    kernel, positive = kernel[np.ix_(twice, twice)], positive[twice]
    svm = SVC(C=10.0, kernel="precomputed", tol=0.05).fit(kernel, positive)
    weights = np.zeros(180)
    weights[svm.support_] = svm.dual_coef_[0]
    finished = solve_active_set(kernel, np.where(positive, 1.0, -1.0), 10.0, weights)
    assert finished is not None
    assert violation(kernel, positive, 10.0, *finished) < 2e-4


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_the_active_set_on_a_large_kernel_of_low_rank_is_exact_or_fails(clouds, size):
    values, labels = clouds((80, 80), apart=0.3, scale=1.0)
    kernel, positive, c = size * values @ values.T, labels == 1, 10.0 / size
    svm = SVC(C=c, kernel="precomputed", tol=0.05).fit(kernel, positive)
    weights = np.zeros(160)
    weights[svm.support_] = svm.dual_coef_[0]
    finished = solve_active_set(kernel, np.where(positive, 1.0, -1.0), c, weights)
    assert finished is None or violation(kernel, positive, c, *finished) < 2e-4


def test_the_active_set_fails_on_a_negative_definite_kernel(clouds):
    kernel, positive = problem(clouds)
    signs = np.where(positive, 1.0, -1.0)
    start = np.where(positive, 0.1 / positive.sum(), -0.1 / (~positive).sum())
    assert solve_active_set(-kernel, signs, 1.0, start) is None


def test_the_active_set_fails_without_free_weights(clouds):
    kernel, positive = problem(clouds)
    assert solve_active_set(kernel, np.where(positive, 1.0, -1.0), 1.0, np.zeros(150)) is None


def test_smo_starts_from_the_previous_solution(clouds):
    kernel, positive = problem(clouds, (80, 60))
    signs = np.where(positive, 1.0, -1.0)
    solution = smo(kernel, signs, 1e-3, initial_state(kernel, signs, 1e-3), 1000)
    for old, c in ((1e-3, 1e-2), (1e-2, 1e-1), (1e-1, 1.0)):
        solution = smo(kernel, signs, c, rescale(solution, old, c, signs), 1000)
        assert violation(kernel, positive, c, solution.weights, solution.intercept) < 2e-3
        np.testing.assert_allclose(solution.values, kernel @ solution.weights, atol=1e-9)


def test_smo_stops_at_its_limit(clouds):
    kernel, positive = problem(clouds, apart=0.3)
    signs = np.where(positive, 1.0, -1.0)
    assert smo(kernel, signs, 100.0, initial_state(kernel, signs, 100.0), 3) is None


def test_an_svm_without_weights_at_the_bound_is_reused_for_larger_c(clouds):
    kernel, positive = problem(clouds, apart=30.0)
    hundred, thousand = solve_path(kernel, positive, (1e2, 1e3))
    assert np.abs(hundred.weights).max() < 100
    assert thousand is hundred
