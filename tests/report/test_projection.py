"""Projections and maps, at their edge cases."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.projection import draw_map, draw_maps, kernel_pca, map_figure, project


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


def test_kernel_pca_keeps_the_distances_of_the_kernel():
    points = np.random.default_rng(0).normal(size=(30, 5))
    gram = points @ points.T
    vectors = kernel_pca(gram)
    square = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(square, np.diag(gram)[:, None] + np.diag(gram) - 2 * gram, atol=1e-3)


@pytest.mark.parametrize("value", [0.1, 12345.678, -3e4 / 7])
def test_equal_rows_are_one_point(value):
    """The mean of equal 32-bit numbers may be rounded; t-SNE of such rows ended in a crash."""
    rows = np.full((40, 96), value, np.float32)
    assert not project(rows).any()
