"""Maps of embeddings at their edges."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.projection import draw_map, draw_maps, flatten, map_figure


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 40])
def test_two_finite_coordinates_a_row(rows):
    embeddings = np.random.default_rng(0).normal(size=(rows, 6))
    places = flatten(embeddings)
    assert places.shape == (rows, 2)
    assert np.isfinite(places).all()


def test_constant_embeddings_still_have_places():
    assert np.isfinite(flatten(np.ones((10, 4)))).all()


def test_two_distant_groups_stay_apart():
    rng = np.random.default_rng(0)
    embeddings = np.concatenate([rng.normal(0, 1, (30, 8)), rng.normal(20, 1, (30, 8))])
    places = flatten(embeddings)
    gap = np.linalg.norm(places[:30].mean(0) - places[30:].mean(0))
    spread = max(places[:30].std(), places[30:].std())
    assert gap > 2 * spread


def test_map_is_written(tmp_path):
    draw_map(np.random.default_rng(0).normal(size=(9, 2)), list("abcabcabc"), "t", tmp_path / "a" / "m.png")
    assert (tmp_path / "a" / "m.png").stat().st_size > 5000


def test_maps_side_by_side_have_one_legend(tmp_path):
    places = np.random.default_rng(0).normal(size=(9, 2))
    figure = map_figure({"untrained": places, "trained": places + 1}, list("abcabcabc"))
    assert [axis.get_title() for axis in figure.axes] == ["untrained", "trained"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a (3)", "b (3)", "c (3)"]
    draw_maps({"untrained": places, "trained": places}, list("abcabcabc"), tmp_path / "m.svg")
    assert (tmp_path / "m.svg").read_text().startswith("<?xml")


def test_a_group_looks_the_same_in_every_map():
    places = np.random.default_rng(0).normal(size=(4, 2))
    one, other = map_figure({"a": places, "b": places}, list("xyxy")).axes
    for mine, yours in zip(one.collections, other.collections, strict=True):
        np.testing.assert_array_equal(mine.get_facecolor(), yours.get_facecolor())


def test_three_maps_leave_the_fourth_place_empty():
    places = np.zeros((2, 2))
    axes = map_figure({"a": places, "b": places, "c": places}, list("xy")).axes
    assert [axis.axison for axis in axes] == [True, True, True, False]


def test_places_of_other_graphs_are_refused():
    with pytest.raises(DataError, match="trained"):
        map_figure({"trained": np.zeros((3, 2))}, list("ab"))
