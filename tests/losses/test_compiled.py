"""The compiled loops (single precision on a CPU) against torch's operations in double precision.

Those are tested against the equations in the other files.
"""

import importlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.losses import factor_dependence, masked_triplet, normalise_embeddings, triplet
from graphsc.losses.compiled import median

triplet_module = importlib.import_module("graphsc.losses.triplet")

shapes = st.tuples(st.integers(1, 20), st.integers(2, 5), st.integers(1, 33), st.integers(0, 10**6))


def normal(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def check(loss, *inputs, atol=1e-5):
    """The loss and its gradients are those of double precision, up to the rounding of single precision."""
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        value = loss(*leaves)
        # A factor: gradients must be scaled by what comes from above.
        (0.5 * value).sum().backward()
        results.append((value.detach().double(), [leaf.grad.double() for leaf in leaves]))
    (one, gradients), (other, expected) = results
    torch.testing.assert_close(one, other, atol=atol, rtol=1e-4)
    for gradient, reference in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, reference, atol=atol, rtol=1e-3)


@given(shapes)
def test_triplet(shape):
    graphs, _, width, seed = shape
    a, p, n = (normal(seed + k, graphs, width) for k in range(3))
    check(lambda a, p, n: triplet(a, p, n, margin=0.2), a, p, n)


@given(shapes, st.floats(0.05, 2))
def test_masked_triplet(shape, temperature):
    graphs, factors, width, seed = shape
    a = normal(seed, graphs, width)
    # As GraphSC has them: views over factors of a joint tensor, not contiguous.
    both = normal(seed + 1, factors, 2 * graphs, width)

    def loss(a, both):
        p, n = both.transpose(0, 1).chunk(2)
        return masked_triplet(a, p, n, margin=0.2, temperature=temperature)

    check(loss, a, both)


@given(shapes)
def test_unit_length(shape):
    graphs, factors, width, seed = shape
    y = normal(seed, graphs, factors, width)
    y[0, 0] = 0  # a vector without a direction
    weights = normal(seed + 1, graphs, factors, width)
    check(lambda y: (normalise_embeddings(y, "unit") * weights.to(y.dtype)).sum(), y)


@pytest.mark.parametrize("views", [(), (2,)])
@pytest.mark.parametrize("graphs", [2, 3, 17, 128])
def test_dependence_of_factors(views, graphs):
    y = normal(graphs, *views, graphs, 24)
    y[..., 5] = y[..., 1] ** 2  # the factors depend on each other
    check(lambda y: factor_dependence(y, 4), y)


def test_dependence_of_equal_graphs_is_zero():
    y = torch.ones(6, 8, requires_grad=True)
    value = factor_dependence(y, 2)
    value.backward()
    assert float(value) == pytest.approx(0.0, abs=1e-6)
    assert y.grad.abs().max() < 1e-6


@given(
    st.lists(st.floats(0, 2.0**60, width=32) | st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=60),
    st.sampled_from([0.5, 1.0, 30.0]),
)
def test_median(values, share):
    array = np.array(values, dtype=np.float32)
    middle = np.sort(array)[[(len(array) - 1) // 2, len(array) // 2]]
    assert median(array, share * float(array.max())) == pytest.approx((middle[0] + middle[1]) / 2, rel=1e-6)


@pytest.mark.parametrize("bound", [np.nan, np.inf])
def test_median_without_a_finite_bound(bound):
    assert np.isnan(median(np.array([1, 2, 3], dtype=np.float32), bound))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e25])
def test_dependence_of_factors_that_are_not_finite(value):
    """A diverging run ends with a loss that is not finite, not with a write outside an array."""
    y = normal(0, 128, 96).float()
    y[3] = value
    assert not torch.isfinite(factor_dependence(y, 4))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_median_of_values_that_are_not_finite_stays_in_its_array(value):
    assert median(np.array([1, 2, 3, 4, value], dtype=np.float32), 4.0) == 3.0


def test_the_loops_are_used_and_can_be_switched_off(monkeypatch):
    a, p, n = (normal(k, 5, 8).float().requires_grad_() for k in range(3))
    assert "_Triplets" in triplet(a, p, n).grad_fn.name()
    monkeypatch.setattr(triplet_module, "use_compiled", lambda: False)
    assert "_Triplets" not in triplet(a, p, n).grad_fn.name()
