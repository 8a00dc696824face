"""Projections, maps and nearest neighbours, against all pairs and at their edge cases."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.projection import draw_map, draw_maps, kernel_pca, map_figure, nearest, project


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 40])
def test_projection_gives_two_finite_coordinates_per_row(rows):
    embeddings = np.random.default_rng(0).normal(size=(rows, 6))
    positions = project(embeddings)
    assert positions.shape == (rows, 2)
    assert np.isfinite(positions).all()


def test_constant_embeddings_have_positions():
    assert np.isfinite(project(np.ones((10, 4)))).all()


def test_two_distant_groups_stay_apart():
    rng = np.random.default_rng(0)
    embeddings = np.concatenate([rng.normal(0, 1, (30, 8)), rng.normal(20, 1, (30, 8))])
    positions = project(embeddings)
    gap = np.linalg.norm(positions[:30].mean(0) - positions[30:].mean(0))
    spread = max(positions[:30].std(), positions[30:].std())
    assert gap > 2 * spread


def test_a_map_is_written(tmp_path):
    draw_map(np.random.default_rng(0).normal(size=(9, 2)), list("abcabcabc"), "t", tmp_path / "a" / "m.png")
    assert (tmp_path / "a" / "m.png").stat().st_size > 5000


def test_maps_side_by_side_have_one_legend(tmp_path):
    positions = np.random.default_rng(0).normal(size=(9, 2))
    figure = map_figure({"untrained": positions, "trained": positions + 1}, list("abcabcabc"))
    assert [axis.get_title() for axis in figure.axes] == ["untrained", "trained"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a (3)", "b (3)", "c (3)"]
    draw_maps({"untrained": positions, "trained": positions}, list("abcabcabc"), tmp_path / "m.svg")
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")


def test_a_group_looks_the_same_in_every_map():
    positions = np.random.default_rng(0).normal(size=(4, 2))
    first, second = map_figure({"a": positions, "b": positions}, list("xyxy")).axes
    for left, right in zip(first.collections, second.collections, strict=True):
        np.testing.assert_array_equal(left.get_facecolor(), right.get_facecolor())


def test_three_maps_leave_the_fourth_panel_empty():
    positions = np.zeros((2, 2))
    axes = map_figure({"a": positions, "b": positions, "c": positions}, list("xy")).axes
    assert [axis.axison for axis in axes] == [True, True, True, False]


def test_positions_of_another_number_of_graphs_are_refused():
    with pytest.raises(DataError, match="trained"):
        map_figure({"trained": np.zeros((3, 2))}, list("ab"))


def test_neighbours_and_distances_equal_those_of_all_pairs():
    rows = np.random.default_rng(0).normal(size=(1500, 5)) * [1, 10, 100, 0.1, 1]
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    apart = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    np.fill_diagonal(apart, np.inf)
    expected = np.argsort(apart, axis=1, kind="stable")[:, :8]
    neighbours, distances = nearest(rows, 8)
    assert np.array_equal(neighbours, expected)
    np.testing.assert_allclose(distances, np.take_along_axis(apart, expected, axis=1), rtol=1e-6)


def test_equally_near_rows_are_in_their_own_order():
    corners = np.array([[x, y] for x in (0.0, 1.0) for y in (0.0, 1.0)])
    neighbours, distances = nearest(np.tile(corners, (3, 1)), 5)
    # Two copies at distance 0, then the three copies of two corners at a side's length.
    assert neighbours[0].tolist() == [4, 8, 1, 2, 5]
    np.testing.assert_allclose(distances[0], [0, 0, 2, 2, 2])


def test_no_row_is_its_own_neighbour_even_among_duplicates():
    neighbours, distances = nearest(np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 30, axis=0), 8)
    assert (neighbours != np.arange(90)[:, None]).all()
    assert (distances == 0).all()
    assert (neighbours // 30 == np.arange(90)[:, None] // 30).all()


@pytest.mark.parametrize(("rows", "expected"), [(1, 0), (2, 1), (5, 4), (12, 8)])
def test_there_are_no_more_neighbours_than_other_rows(rows, expected):
    neighbours, distances = nearest(np.random.default_rng(0).normal(size=(rows, 3)), 8)
    assert neighbours.shape == distances.shape == (rows, expected)


def test_kernel_pca_keeps_the_distances_of_the_kernel():
    points = np.random.default_rng(0).normal(size=(30, 5))
    gram = points @ points.T
    vectors = kernel_pca(gram)
    square = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(square, np.diag(gram)[:, None] + np.diag(gram) - 2 * gram, atol=1e-3)
