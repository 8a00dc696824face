"""Rival-penalised competitive learning on clusters that can be seen."""

import math

import torch

from graphsc.methods.graphlog import nearest, place_centres


def clusters(each=80):
    """Three narrow directions of the plane."""
    generator = torch.Generator().manual_seed(0)
    angles = torch.tensor([0.0, 2.0, 4.0]).repeat_interleave(each)
    angles = angles + 0.05 * torch.randn(3 * each, generator=generator)
    return torch.stack([angles.cos(), angles.sin()], 1)


def test_every_cluster_has_a_centre_and_every_centre_a_point():
    points = clusters()
    found = place_centres(points, 8, 10, passes=5, rate=0.05, generator=torch.Generator().manual_seed(1))
    for angle in (0.0, 2.0, 4.0):
        direction = torch.tensor([math.cos(angle), math.sin(angle)])
        assert (found.rows[found.alive] @ direction).max() > 0.99
    assert set(nearest(points, found.rows, found.alive).tolist()) == set(
        found.alive.nonzero().flatten().tolist()
    )
    assert not found.rows[~found.alive].any()
    torch.testing.assert_close(found.rows[found.alive].norm(dim=1), torch.ones(int(found.alive.sum())))


def test_one_step_draws_the_winner_and_pushes_the_rival():
    """Two points, each a centre at first: each wins itself and has the other for its rival."""
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = place_centres(points, 2, 2, passes=1, rate=0.1, generator=torch.Generator().manual_seed(0))
    # A centre stays where it won and moves away from the other by 0.1 * 0.05 of the way, then to length one.
    moved = torch.tensor([1.0, 0.0]) - 0.005 * (torch.tensor([0.0, 1.0]) - torch.tensor([1.0, 0.0]))
    expected = moved / moved.norm()
    assert any(torch.allclose(row, expected) for row in found.rows)
    assert any(torch.allclose(row, expected.flip(0)) for row in found.rows)


def test_fewer_points_than_centres():
    points = torch.eye(3)
    found = place_centres(points, 50, 50, passes=2, rate=0.05, generator=torch.Generator().manual_seed(0))
    assert found.rows.shape == (50, 3)
    assert int(found.alive.sum()) == 3
    one = place_centres(points[:1], 50, 50, passes=2, rate=0.05, generator=torch.Generator())
    assert one.alive.nonzero().tolist() == [[0]]
    torch.testing.assert_close(one.rows[0], points[0])
