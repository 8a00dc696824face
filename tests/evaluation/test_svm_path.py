"""Every SVM meets the optimality conditions, computed here from the weights alone, and predicts as libsvm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from graphsc.core.compiled import use_compiled
from graphsc.evaluation import svm_path
from graphsc.evaluation.svm_path import (
    LinearSystems,
    Problem,
    exchange,
    newton_step,
    optimise,
    rescale,
    solve,
    solve_path,
)

GRID = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


def rbf(values):
    squares = ((values[:, None] - values[None]) ** 2).sum(-1)
    return np.exp(-squares / (values.shape[1] * (values.var() or 1.0)))


def problem(clouds, sizes=(90, 60), seed=0, **options):
    values, labels = clouds(sizes, seed=seed, scale=1.0, **options)
    return rbf(values), labels == 1


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


def cold(kernel, positive, c):
    """All weights zero."""
    signs = np.where(positive, 1.0, -1.0)
    return Problem(
        kernel.astype(np.float32),
        np.zeros(len(signs)),
        signs,
        np.minimum(c * signs, 0),
        np.maximum(c * signs, 0),
    )


pytestmark = pytest.mark.filterwarnings("ignore:Solver terminated early")  # libsvm stopped on purpose


def without_compiling(monkeypatch):
    monkeypatch.setattr(svm_path, "use_compiled", lambda: False)


@pytest.mark.parametrize(
    "sizes", [(75, 75), (120, 30), (30, 120)], ids=["balanced", "few second", "few first"]
)
@pytest.mark.parametrize("apart", [0.3, 1.0, 8.0])
def test_every_svm_is_optimal(clouds, sizes, apart):
    kernel, positive = problem(clouds, sizes, apart=apart)
    for c, svm in zip(GRID, solve_path(kernel, positive, GRID), strict=True):
        assert violation(kernel, positive, c, *svm) < 2e-3


def test_every_svm_is_optimal_if_newton_steps_are_needed(clouds, monkeypatch):
    monkeypatch.setattr(svm_path, "_PATIENCE", 1)
    monkeypatch.setattr(svm_path, "_SHORT", 100)
    kernel, positive = problem(clouds, (250, 250), apart=0.3, seed=1)
    for c, svm in zip(GRID, solve_path(kernel, positive, GRID), strict=True):
        assert violation(kernel, positive, c, *svm) < 2e-3


def test_the_grid_may_have_any_order(clouds):
    kernel, positive = problem(clouds)
    up, down = solve_path(kernel, positive, GRID), solve_path(kernel, positive, GRID[::-1])
    for ascending, descending in zip(up, down[::-1], strict=True):
        assert ascending.weights.tolist() == descending.weights.tolist()


@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
def test_steps_are_those_of_libsvm(clouds, c):
    """libsvm without rows left out: the same number of steps, and weights equal up to rounding."""
    kernel, positive = problem(clouds, (90, 60), apart=0.5)
    order = positive.argsort(kind="stable")
    kernel, positive = kernel[np.ix_(order, order)], positive[order]
    libsvm = SVC(C=c, kernel="precomputed", shrinking=False).fit(kernel, positive)
    start = cold(kernel, ~positive, c)
    steps, gap = exchange(start, 1e-3, 10**6)
    assert gap < 1e-3
    assert steps == libsvm.n_iter_[0]
    weights = np.zeros(len(kernel))
    weights[libsvm.support_] = -libsvm.dual_coef_[0]
    np.testing.assert_allclose(start.weights, weights, rtol=0, atol=1e-7 * c)


@pytest.mark.skipif(not use_compiled(), reason="numba is not available")
@pytest.mark.parametrize("rounded", [False, True], ids=["different rows", "many equal rows"])
def test_compiled_steps_equal_those_of_numpy(clouds, monkeypatch, rounded):
    """Every weight, with rows left out and Newton steps."""
    values, labels = clouds((300, 250), apart=0.3, seed=2, scale=1.0, width=3)
    kernel, positive = rbf(np.round(values) if rounded else values), labels == 1
    for c in (1.0, 100.0):
        fast, slow = cold(kernel, positive, c), cold(kernel, positive, c)
        steps = solve(fast, LinearSystems(fast.kernel), 3000, 500)
        with monkeypatch.context() as patch:
            without_compiling(patch)
            assert solve(slow, LinearSystems(slow.kernel), 3000, 500) == steps
        assert fast.weights.tolist() == slow.weights.tolist()
        assert fast.gradient.tolist() == slow.gradient.tolist()


def test_without_compiling_libsvm_starts(clouds, monkeypatch):
    """Its weights and steps are taken over, finished or not."""
    without_compiling(monkeypatch)
    kernel, positive = problem(clouds, (250, 250), apart=0.3, seed=1)
    for limit in (200, 10**6):
        start = cold(kernel, ~positive, 100.0)
        steps = svm_path.libsvm_steps(start, 100.0, limit)
        assert steps <= limit
        assert ((start.weights >= start.lower) & (start.weights <= start.upper)).all()
        signs = np.where(positive, -1.0, 1.0)
        np.testing.assert_allclose(
            start.gradient, signs - start.kernel.astype(np.float64) @ start.weights, atol=1e-8
        )
        gap = exchange(start, 1e-3, 0)[1]
        assert (gap < 2e-3) == (limit > 200)


def test_smo_stops_at_its_limit(clouds):
    kernel, positive = problem(clouds, apart=0.3)
    steps, gap = exchange(cold(kernel, positive, 100.0), 1e-3, 3)
    assert steps == 3
    assert gap > 1e-3


@pytest.mark.parametrize("limit", [2500, 10**6], ids=["stopped", "finished"])
def test_rows_left_out_are_taken_back(clouds, monkeypatch, limit):
    """The gradient belongs to the weights also for rows that were left out, and so does the gap."""
    monkeypatch.setattr(svm_path, "_CHUNK", 100)
    kernel, positive = problem(clouds, (300, 250), apart=1.0)
    kernel, weights, gradient, lower, upper = start = cold(kernel, positive, 100.0)
    sizes = []

    def counted(part, *rest):
        sizes.append(len(part.kernel))
        return exchange(part, *rest)

    monkeypatch.setattr(svm_path, "exchange", counted)
    steps, gap = optimise(start, 1e-3, limit)
    assert min(sizes) < 300
    assert (steps == limit) == (gap >= 1e-3)
    signs = np.where(positive, 1.0, -1.0)
    np.testing.assert_allclose(gradient, signs - kernel.astype(np.float64) @ weights, atol=1e-8)
    assert gap == gradient[weights < upper].max() - gradient[weights > lower].min()


def test_a_rescaled_start_keeps_weights_at_the_bound(clouds):
    kernel, positive = problem(clouds, (80, 60))
    kernel, weights, gradient, lower, upper = start = cold(kernel, positive, 0.1)
    exchange(start, 1e-3, 10**6)
    signs = np.where(positive, 1.0, -1.0)
    scaled, scaled_gradient = rescale(weights, gradient, signs, 0.1, 0.7)
    bound = (weights == lower) | (weights == upper)
    assert ((scaled == 0.7 * signs) == (np.abs(weights) == 0.1)).all()
    assert 0 < (bound & (weights != 0)).sum() < len(weights)
    np.testing.assert_allclose(scaled_gradient, signs - kernel.astype(np.float64) @ scaled, atol=1e-9)


def free_rows(kernel, positive):
    """Arguments of `newton_step` at weights between their bounds, without the systems."""
    generator = np.random.default_rng(3)
    free = np.sort(generator.permutation(len(kernel))[: len(kernel) // 2])
    weights = np.where(positive, 1.0, -1.0) * generator.uniform(0.1, 0.9, len(kernel))
    gradient = np.where(positive, 1.0, -1.0) - kernel @ weights
    return free, gradient[free]


def test_a_newton_step_is_the_solution_of_the_equations(clouds):
    """Without bounds: K step + b = gradient, and sum(step) = 0."""
    kernel, positive = problem(clouds, width=12)
    free, gradient = free_rows(kernel, positive)
    f = len(free)
    step = newton_step(
        LinearSystems(kernel.astype(np.float32)), free, gradient, np.full(f, -1e9), np.full(f, 1e9)
    )
    equations = np.ones((f + 1, f + 1))
    equations[:f, :f] = kernel[np.ix_(free, free)]
    equations[f, f] = 0
    expected = np.linalg.solve(equations, np.append(gradient, 0))[:f]
    np.testing.assert_allclose(step, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_a_newton_step_stays_within_its_bounds(clouds):
    """Rows between the bounds meet their equations with one intercept; the others are at a bound."""
    kernel, positive = problem(clouds, width=12)
    free, gradient = free_rows(kernel, positive)
    low, high = np.full(len(free), -1.5), np.full(len(free), 2.0)
    step = newton_step(LinearSystems(kernel.astype(np.float32)), free, gradient, low, high)
    inside = (step > low) & (step < high)
    assert 10 < inside.sum() < len(free)
    assert ((step == low) | (step == high))[~inside].all()
    assert abs(step.sum()) < 1e-9
    rest = (gradient - kernel[np.ix_(free, free)] @ step)[inside]
    assert np.ptp(rest) < 1e-4


def test_linear_systems_of_changing_sets(clouds, monkeypatch):
    """Also by the factor of an earlier set: with rows added, removed, both, and the same set."""
    monkeypatch.setattr(svm_path, "_SMALL", 0)
    kernel, _ = problem(clouds, width=12)
    systems = LinearSystems(kernel.astype(np.float32))
    generator = np.random.default_rng(0)
    order = generator.permutation(150)
    factors = []
    for rows in (order[:80], order[:85], order[3:80], order[3:84], order[:80], order[40:140]):
        right = generator.normal(size=(len(rows), 2))
        solution = systems.solve(rows, np.asfortranarray(right))
        block = kernel.astype(np.float32).astype(np.float64)[np.ix_(rows, rows)]
        expected = np.linalg.solve(block + systems.ridge * np.eye(len(rows)), right)
        np.testing.assert_allclose(solution, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
        factors.append(systems.factor)
    assert [factor is factors[0] for factor in factors] == [True] * 5 + [False]


def test_newton_steps_finish_an_unfinished_libsvm(clouds):
    """After too few steps libsvm is far from optimal; a few Newton steps suffice to finish."""
    kernel, positive = problem(clouds, (250, 250), apart=0.3, seed=1)
    with pytest.warns(UserWarning, match="terminated early"):
        svm = SVC(C=100.0, kernel="precomputed", max_iter=1500).fit(kernel, positive)
    weights = np.zeros(500)
    weights[svm.support_] = svm.dual_coef_[0]
    assert violation(kernel, positive, 100.0, weights, svm.intercept_[0]) > 0.01
    kernel, _, signs, lower, upper = cold(kernel, positive, 100.0)
    gradient = signs - kernel.astype(np.float64) @ weights
    taken = solve(Problem(kernel, weights, gradient, lower, upper), LinearSystems(kernel), 0, 500)
    free = (weights > lower) & (weights < upper)
    assert violation(kernel, positive, 100.0, weights, gradient[free].mean()) < 2e-4
    assert taken < 0.5 * SVC(C=100.0, kernel="precomputed").fit(kernel, positive).n_iter_[0]


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_a_large_kernel_of_low_rank(clouds, size, monkeypatch):
    monkeypatch.setattr(svm_path, "_PATIENCE", 1)
    monkeypatch.setattr(svm_path, "_SHORT", 50)
    values, labels = clouds((80, 80), apart=0.3, scale=1.0)
    kernel, positive, c = size * values @ values.T, labels == 1, 10.0 / size
    (svm,) = solve_path(kernel, positive, [c])
    assert violation(kernel, positive, c, *svm) < 2e-3


def test_a_negative_definite_kernel_is_left_to_smo(clouds, monkeypatch):
    kernel, positive = problem(clouds)
    systems = LinearSystems(-kernel.astype(np.float32))
    free, gradient = free_rows(kernel, positive)
    bound = np.ones(len(free))
    assert newton_step(systems, free, gradient, -bound, bound).tolist() == [0.0] * len(free)
    monkeypatch.setattr(svm_path, "_SHORT", 1)
    monkeypatch.setattr(svm_path, "_PATIENCE", 0)
    (svm,) = solve_path(-kernel, positive, [1.0])
    assert violation(-kernel, positive, 1.0, *svm) < 2e-3


def test_an_svm_without_weights_at_the_bound_is_reused_for_larger_c(clouds):
    kernel, positive = problem(clouds, apart=30.0)
    hundred, thousand = solve_path(kernel, positive, (1e2, 1e3))
    assert np.abs(hundred.weights).max() < 100
    assert thousand is hundred


@st.composite
def degenerate(draw):
    """Vectors with equal rows, constant columns, tiny classes or separable classes, and two classes."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    first, second = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    labels = np.repeat([0, 1], [first, second])
    values = generator.normal(size=(len(labels), draw(st.integers(1, 8))))
    values[labels == 1] += draw(st.sampled_from([0.0, 0.5, 3.0, 50.0]))
    if draw(st.booleans()):
        values = values[generator.integers(0, len(values), len(values))]  # equal rows, of both classes too
    if draw(st.booleans()):
        values = np.round(values)
    if draw(st.booleans()):
        values[:, 0] = 1.0
    return values, labels == 1, generator.normal(size=(20, values.shape[1]))


def test_three_rows_on_which_newton_steps_do_not_help_end(monkeypatch):
    """Then SMO does the work, however few steps it was to take between two Newton steps."""
    without_compiling(monkeypatch)
    monkeypatch.setattr(svm_path, "_PATIENCE", 0)
    monkeypatch.setattr(svm_path, "_SHORT", 5)
    values = np.array([[-1, -1, 0, 0, 0, 1, 1, 0], [1, 3, 3, 2, 2, 2, 4, 3], [0, -1, -1, 0, 0, -1, -1, 0]])
    kernel, positive = rbf(values.astype(float)), np.array([False, False, True])
    for c, svm in zip(GRID, solve_path(kernel, positive, GRID), strict=True):
        assert violation(kernel, positive, c, *svm) < 2e-3


@pytest.mark.parametrize("patience", [0, 16], ids=["newton steps", "as usual"])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
@settings(max_examples=30, deadline=None)
@given(data=degenerate())
def test_degenerate_data(patience, compiled, data):
    """Optimal, and predicts as libsvm wherever libsvm's own tolerance decides nothing."""
    values, positive, tested = data
    kernel = rbf(values)
    squares = ((tested[:, None] - values[None]) ** 2).sum(-1)
    test_kernel = np.exp(-squares / (values.shape[1] * (values.var() or 1.0)))
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            without_compiling(patch)
        patch.setattr(svm_path, "_PATIENCE", patience)
        if patience == 0:
            patch.setattr(svm_path, "_SHORT", 5)
        svms = solve_path(kernel, positive, GRID)
    for c, svm in zip(GRID, svms, strict=True):
        assert violation(kernel, positive, c, *svm) < 2e-3
        libsvm = SVC(C=c, kernel="precomputed").fit(kernel, positive).decision_function(test_kernel)
        ours = test_kernel @ svm.weights + svm.intercept
        clear = np.abs(libsvm) > 0.01
        assert ((ours > 0) == (libsvm > 0))[clear].all()
