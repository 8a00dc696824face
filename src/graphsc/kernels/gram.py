"""Inner products between all graphs of two collections, from sparse counts or dense rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Matrix = NDArray[np.float64]

_COMMON = 0.1  # share of graphs above which a column is faster in a dense product than in a sparse one
_WIDTH = 1024  # columns or rows at once, to bound memory


def products(left: csr_array, right: csr_array) -> Matrix:
    """The dense matrix left @ right.T; exact for counts whose products stay below 2^53.

    A few colours occur in most graphs, and most colours in few graphs: the former are multiplied as dense
    matrices, the latter as sparse ones.
    """
    out = np.zeros((left.shape[0], right.shape[0]))
    columns = right.T.tocsr()  # row k: the graphs that contain colour k
    is_common = np.diff(columns.indptr) > _COMMON * right.shape[0]
    common, rare = np.flatnonzero(is_common), np.flatnonzero(~is_common)
    for start in range(0, len(common), _WIDTH):
        part = common[start : start + _WIDTH]
        out += left[:, part].toarray() @ columns[part].toarray()
    rare_left, rare_columns = left[:, rare], columns[rare]
    for start in range(0, len(out), _WIDTH):
        out[start : start + _WIDTH] += (rare_left[start : start + _WIDTH] @ rare_columns).toarray()
    return out


def self_products(counts: csr_array) -> Matrix:
    """The product of each row with itself: the diagonal of `products(counts, counts)`."""
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    squares: Matrix = np.bincount(row, counts.data**2, counts.shape[0]).astype(np.float64)
    return squares


def cosine(products: Matrix, left: Matrix, right: Matrix) -> Matrix:
    """K_ij / sqrt(K_ii K_jj) from the self-similarities K_ii (`left`) and K_jj (`right`); 0 if one is 0."""
    return products * _inverse_root(left)[:, None] * _inverse_root(right)[None, :]


def unit_rows(rows: Matrix) -> Matrix:
    """Rows scaled to length 1; rows of zeros stay."""
    unit: Matrix = rows * _inverse_root((rows * rows).sum(axis=1))[:, None]
    return unit


def _inverse_root(values: Matrix) -> Matrix:
    roots = np.sqrt(values)
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
