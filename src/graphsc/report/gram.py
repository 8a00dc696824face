"""Vectors for graphs of which only a kernel is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 64


def vectors_of_gram(gram: NDArray[np.floating]) -> NDArray[np.float32]:
    """The leading directions of the centred kernel (kernel PCA), N x 64 at most.

    With all directions, distances between the rows are those that the kernel means:
    |v_i - v_j|^2 = K_ii + K_jj - 2 K_ij.
    """
    from sklearn.decomposition import KernelPCA

    kept = min(DIMENSIONS, len(gram) - 1)
    solver = "auto" if len(gram) < 500 else "randomized"
    rows = KernelPCA(kept, kernel="precomputed", eigen_solver=solver, random_state=0).fit_transform(
        np.asarray(gram, np.float64)
    )
    return np.asarray(rows, np.float32)
