"""Nearest rows, against scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from graphsc.report.projection import nearest, vectors_of_gram


def test_neighbours_and_distances_are_those_of_a_search_of_all_pairs():
    rows = np.random.default_rng(0).normal(size=(1500, 5)) * [1, 10, 100, 0.1, 1]
    scaled = StandardScaler().fit_transform(rows)
    distance, index = NearestNeighbors(n_neighbors=9, algorithm="brute").fit(scaled).kneighbors(scaled)
    found, apart = nearest(rows, 8)
    assert np.array_equal(found, index[:, 1:])
    np.testing.assert_allclose(apart, distance[:, 1:], rtol=1e-4)


def test_no_row_is_its_own_neighbour_even_among_copies():
    found, apart = nearest(np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 30, axis=0), 8)
    assert (found != np.arange(90)[:, None]).all()
    assert (apart == 0).all()
    assert (found // 30 == np.arange(90)[:, None] // 30).all()


@pytest.mark.parametrize(("rows", "expected"), [(1, 0), (2, 1), (5, 4), (12, 8)])
def test_there_are_no_more_neighbours_than_rows(rows, expected):
    found, apart = nearest(np.random.default_rng(0).normal(size=(rows, 3)), 8)
    assert found.shape == apart.shape == (rows, expected)


def test_vectors_of_a_kernel_are_as_far_apart_as_it_says():
    points = np.random.default_rng(0).normal(size=(30, 5))
    gram = points @ points.T
    vectors = vectors_of_gram(gram)
    square = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(square, np.diag(gram)[:, None] + np.diag(gram) - 2 * gram, atol=1e-3)
