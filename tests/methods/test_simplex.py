"""Projections on the simplex against the inequality that only the nearest point meets."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.methods.joao import project, project_by_bisection

POINTS = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


@given(POINTS)
def test_projection_is_the_nearest_probabilities(values):
    """x is nearest to y in a convex set where no corner lies on y's side: (y - x) . (corner - x) <= 0."""
    point = torch.tensor(values, dtype=torch.float64)
    found = project(point)
    assert (found >= 0).all()
    assert found.sum().item() == pytest.approx(1)
    for corner in torch.eye(len(values), dtype=torch.float64):
        assert (point - found) @ (corner - found) <= 1e-9


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([1.2, 1.3, 1.5], [0.2, 0.3, 0.5]),
        ([2.0, 0.0], [1.0, 0.0]),
        ([0.9, 0.5, -3.0], [0.7, 0.3, 0.0]),
        ([7.0], [1.0]),
    ],
)
def test_projections_worked_out_by_hand(point, expected):
    assert project(torch.tensor(point, dtype=torch.float64)).tolist() == pytest.approx(expected)


@given(POINTS)
def test_bisection_comes_near_the_exact_projection(values):
    point = torch.tensor(values, dtype=torch.float64)
    found = project_by_bisection(point)
    assert found.sum().item() == pytest.approx(1)
    assert (found >= 0).all()
    assert (found - project(point)).abs().max() <= 0.02


def test_point_is_not_altered():
    point = torch.tensor([3.0, 1.0])
    project(point)
    project_by_bisection(point)
    assert point.tolist() == [3.0, 1.0]
