"""Maps of embeddings at their edges."""

import numpy as np
import pytest

from graphsc.report.map import draw_map, flatten


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
