import numpy as np
import pytest
from scipy.sparse import csr_array

from graphsc.kernels import gram
from graphsc.kernels.gram import cosine, products, self_products, unit_rows


@pytest.mark.parametrize("width", [1024, 3])
def test_products_are_those_of_dense_matrices(monkeypatch, width):
    monkeypatch.setattr(gram, "_WIDTH", width)
    rng = np.random.default_rng(0)
    share = np.linspace(0.01, 1, 40)  # rare columns, common columns, and empty ones
    left, right = (rng.poisson(3, (n, 40)) * (rng.random((n, 40)) < share) for n in (7, 25))
    found = products(csr_array(left.astype(float)), csr_array(right.astype(float)))
    np.testing.assert_array_equal(found, left @ right.T)


def test_self_products_are_the_diagonal():
    counts = np.array([[1.0, 2, 0], [0, 0, 0], [3, 0, 4]])
    np.testing.assert_array_equal(self_products(csr_array(counts)), [5, 0, 25])


def test_cosine_of_nothing_is_zero():
    kernel = np.array([[4.0, 6, 0], [6, 9, 0], [0, 0, 0]])
    diagonal = kernel.diagonal()
    np.testing.assert_allclose(cosine(kernel, diagonal, diagonal), [[1, 1, 0], [1, 1, 0], [0, 0, 0]])


def test_rows_of_zeros_stay():
    np.testing.assert_allclose(unit_rows(np.array([[3.0, 4], [0, 0]])), [[0.6, 0.8], [0, 0]])
