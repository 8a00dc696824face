"""Nearest rows, against all pairs of distances, and rows without an embedding."""

import numpy as np
import pytest

from graphsc.core.errors import DataError, GraphscWarning
from graphsc.evaluation.neighbours import nearest, nearest_streamed, nearest_to, standardise


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


def test_a_row_of_nan_is_no_neighbour_and_has_none():
    """One invalid SMILES made molecules their own neighbours, at distances of infinity and NaN."""
    rows = np.random.default_rng(0).normal(size=(10, 4))
    rows[[2, 7]] = np.nan
    with pytest.warns(GraphscWarning, match="2 of 10 rows have no embedding"):
        neighbours, distances = nearest(rows, 3)
    valid = np.delete(np.arange(10), [2, 7])
    expected, apart = nearest(rows[valid], 3)
    assert np.array_equal(neighbours[valid], valid[expected])
    assert np.array_equal(distances[valid], apart)
    assert (neighbours[[2, 7]] == -1).all()
    assert np.isnan(distances[[2, 7]]).all()


def test_rows_of_nan_alone_have_no_neighbours():
    with pytest.warns(GraphscWarning, match="3 of 3"):
        neighbours, distances = nearest(np.full((3, 2), np.nan))
    assert neighbours.shape == distances.shape == (3, 0)


def test_rows_nearest_to_a_query_equal_those_of_all_pairs():
    generator = np.random.default_rng(1)
    rows, queries = generator.normal(size=(200, 3)) * [1, 10, 0.1], generator.normal(size=(5, 3))
    rows[50] = np.nan
    queries[3] = np.nan
    valid = np.delete(np.arange(200), 50)
    scale = rows[valid].std(axis=0)
    apart = np.linalg.norm((queries[:, None] - rows[valid]) / scale, axis=2)
    neighbours, distances = nearest_to(queries, rows, 4)
    for query in (0, 1, 2, 4):
        order = np.argsort(apart[query])[:4]
        assert neighbours[query].tolist() == valid[order].tolist()
        np.testing.assert_allclose(distances[query], apart[query][order], rtol=1e-6)
    assert neighbours[3].tolist() == [-1] * 4


def test_queries_of_another_width_are_refused():
    with pytest.raises(DataError, match="2 dimensions, the embeddings 3"):
        nearest_to(np.zeros((1, 2)), np.zeros((4, 3)))


def test_rows_in_chunks_give_the_same_neighbours_also_with_nan_and_ties():
    rng = np.random.default_rng(5)
    rows = (rng.normal(size=(103, 6)) * [1, 10, 0.1, 1, 1, 0] + 1000).astype(np.float32)
    rows[17] = np.nan
    rows[50:60] = rows[3]  # ties, over a border of chunks
    queries = np.concatenate([rows[[3, 40]], rng.normal(size=(3, 6)) + 1000]).astype(np.float32)
    whole = nearest_to(queries, rows, k=9)
    for size in (1, 10, 55, 200):
        found = nearest_streamed(
            queries, lambda size=size: (rows[at : at + size] for at in range(0, len(rows), size)), k=9
        )
        np.testing.assert_array_equal(found[0], whole[0])
        np.testing.assert_allclose(found[1], whole[1], rtol=1e-4, atol=1e-3)


def test_more_neighbours_than_rows_are_all_rows_and_no_row_is_none():
    rows = np.arange(6.0).reshape(3, 2)
    assert nearest_streamed(rows[:1], lambda: [rows], k=10)[0].tolist() == [[0, 1, 2]]
    assert nearest_streamed(rows[:1], lambda: [np.full((2, 2), np.nan)], k=10)[0].shape == (1, 0)


def test_a_constant_column_becomes_zero_whatever_the_rounding_of_its_mean():
    rows = np.full((40, 2), -3e4 / 7, np.float32)
    rows[:, 1] = np.arange(40)
    assert rows.std(axis=0)[0] > 0  # by rounding alone
    scaled = standardise(rows)
    assert not scaled[:, 0].any()
    np.testing.assert_allclose(scaled[:, 1], (np.arange(40) - 19.5) / np.arange(40).std(), rtol=1e-6)
