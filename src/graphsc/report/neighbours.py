"""Which graphs are alike: the nearest rows of each row, all pairs looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.report.map import standardised

_ROWS = 1_000  # whose distances to all others are held at a time


def nearest(embeddings: NDArray[np.floating], k: int = 8) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """The k nearest other rows of each row, nearest first, and their distances; N x min(k, N - 1) both.

    Distances are Euclidean between standardised columns, as for the map.
    """
    rows = standardised(embeddings).astype(np.float64)
    k = min(k, len(rows) - 1)
    square = (rows**2).sum(axis=1)
    index = np.zeros((len(rows), k), np.uint32)
    distance = np.zeros((len(rows), k), np.float32)
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        apart = square[start : start + _ROWS, None] + square - 2 * part @ rows.T
        apart[np.arange(len(part)), start + np.arange(len(part))] = np.inf
        # A few more than k by the quick formula, which rounds, then those by their differences.
        some = np.sort(np.argpartition(apart, min(k + 8, len(rows) - 1), axis=1)[:, : k + 8], axis=1)
        exact = np.sqrt(((part[:, None, :] - rows[some]) ** 2).sum(axis=2))
        exact[some == start + np.arange(len(part))[:, None]] = np.inf
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        index[start : start + _ROWS] = np.take_along_axis(some, order, axis=1)
        distance[start : start + _ROWS] = np.take_along_axis(exact, order, axis=1)
    return index, distance
