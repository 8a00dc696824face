"""Which embeddings are near each other, and which are far from all others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, GraphscWarning

_SPARE = 8  # candidates beyond k, because the fast distances are rounded
_QUERIES = 256  # compared with a chunk at a time
_CHUNK = 1_000  # rows whose distances to their candidates are in memory at a time
NO_ROW = -1  # in the place of a neighbour that does not exist


def standardise(
    embeddings: NDArray[np.floating], like: NDArray[np.floating] | None = None
) -> NDArray[np.floating]:
    """Scale columns to mean 0 and standard deviation 1; constant columns become 0.

    Args:
        embeddings: N x d.
        like: The rows whose mean and deviation are used; by default the same ones.
    """
    rows = embeddings if like is None else like
    deviation, mean = rows.std(axis=0), rows.mean(axis=0)
    if len(rows):
        # A rounded mean is not the value itself, and the deviation from it is not 0.
        constant = (rows == rows[0]).all(axis=0)
        deviation, mean = np.where(constant, 0, deviation), np.where(constant, rows[0], mean)
    centred: NDArray[np.floating] = embeddings - mean
    return centred / np.where(deviation > 0, deviation, 1)


def has_embedding(embeddings: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether each row is finite; the row of an input that is no molecule has NaN."""
    finite: NDArray[np.bool_] = np.isfinite(embeddings).all(axis=1)
    return finite


def nearest(embeddings: NDArray[np.floating], k: int = 8) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the k nearest other rows of each row, by exhaustive search.

    Distances are Euclidean between standardised columns, as for the map. Ties are in the order of the rows.
    A row with NaN is no neighbour and has none: its indices are -1 and its distances NaN. A warning counts
    such rows.

    Returns:
        Indices and distances, both N x min(k, M - 1) for M rows without NaN, nearest first.
    """
    valid = np.flatnonzero(has_embedding(embeddings))
    total = len(embeddings)
    if len(valid) < total:
        message = f"{total - len(valid):,} of {total:,} rows have no embedding; they are left out"
        warnings.warn(message, GraphscWarning, stacklevel=2)
    k = max(0, min(k, len(valid) - 1))
    index = np.full((total, k), NO_ROW, np.int64)
    distance = np.full((total, k), np.nan, np.float32)
    if k:
        found, distance[valid] = _search(standardise(embeddings[valid]).astype(np.float64), None, k)
        index[valid] = valid[found]
    return index, distance


def nearest_to(
    queries: NDArray[np.floating], embeddings: NDArray[np.floating], k: int = 8
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Find the k rows of `embeddings` that are nearest to each query.

    Columns are scaled by the mean and deviation of `embeddings`. Rows with NaN are treated as in `nearest`.

    Args:
        queries: M x d.
        embeddings: N x d.
        k: Neighbours per query.

    Returns:
        Indices into `embeddings` and distances, both M x min(k, rows without NaN), nearest first.
    """
    if queries.shape[1] != embeddings.shape[1]:
        raise DataError(
            f"queries have {queries.shape[1]} dimensions, the embeddings {embeddings.shape[1]}",
            hint="embed both with one model",
        )
    valid, asked = (np.flatnonzero(has_embedding(rows)) for rows in (embeddings, queries))
    rows = embeddings[valid]
    k = max(0, min(k, len(rows)))
    index = np.full((len(queries), k), NO_ROW, np.int64)
    distance = np.full((len(queries), k), np.nan, np.float32)
    if k and len(asked):
        scaled, scaled_queries = (
            standardise(part, rows).astype(np.float64) for part in (rows, queries[asked])
        )
        found, distance[asked] = _search(scaled, scaled_queries, k)
        index[asked] = valid[found]
    return index, distance


def nearest_streamed(
    queries: NDArray[np.floating], chunks: Callable[[], Iterable[NDArray[np.floating]]], k: int = 8
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The same as `nearest_to` for rows that come in chunks, of which one is in memory at a time.

    Args:
        queries: M x d, without NaN.
        chunks: Called twice, for two passes over the same rows, each n x d; a row with NaN is no neighbour.
        k: Neighbours per query.

    Returns:
        Indices into all rows and distances, both M x min(k, rows without NaN), nearest first.
    """
    count, mean, squares = 0, np.zeros(queries.shape[1]), np.zeros(queries.shape[1])
    for chunk in chunks():
        if chunk.shape[1] != queries.shape[1]:
            raise DataError(
                f"queries have {queries.shape[1]} dimensions, the embeddings {chunk.shape[1]}",
                hint="embed both with one model",
            )
        rows = np.asarray(chunk[has_embedding(chunk)], np.float64)
        if not len(rows):
            continue
        # Means and squares of two parts are joined (Chan et al., 1979), which loses no digits.
        own = rows.mean(axis=0)
        total = count + len(rows)
        squares += np.square(rows - own).sum(axis=0) + np.square(own - mean) * count * len(rows) / total
        mean += (own - mean) * len(rows) / total
        count = total
    deviation = np.sqrt(squares / max(count, 1))
    scale = np.where(deviation > 0, deviation, 1)
    asked = (np.asarray(queries, np.float64) - mean) / scale
    k = max(0, min(k, count))
    index = np.full((len(queries), 0), NO_ROW, np.int64)
    distance = np.zeros((len(queries), 0))
    start = 0
    for chunk in chunks() if k else ():
        valid = np.flatnonzero(has_embedding(chunk))
        if len(valid):
            rows = (np.asarray(chunk[valid], np.float64) - mean) / scale
            candidates = _candidates(rows, asked, min(k + _SPARE, len(valid)))
            exact = np.sqrt(((asked[:, None, :] - rows[candidates]) ** 2).sum(axis=2))
            index = np.concatenate([index, start + valid[candidates]], axis=1)
            distance = np.concatenate([distance, exact], axis=1)
            order = np.lexsort((index, distance), axis=1)[:, :k]
            index = np.take_along_axis(index, order, axis=1)
            distance = np.take_along_axis(distance, order, axis=1)
        start += len(chunk)
    return index, distance.astype(np.float32)


def _candidates(rows: NDArray[np.float64], queries: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The nearest rows of each query by rounded distances, in no order; queries x count."""
    norms = np.square(rows).sum(axis=1)
    found = np.empty((len(queries), count), np.int64)
    for start in range(0, len(queries), _QUERIES):
        part = queries[start : start + _QUERIES]
        scores = norms - 2 * part @ rows.T
        found[start : start + _QUERIES] = np.argpartition(scores, count - 1, axis=1)[:, :count]
    return found


def _search(
    rows: NDArray[np.float64], queries: NDArray[np.float64] | None, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k nearest rows of each query, or of each row among the others."""
    from sklearn.neighbors import NearestNeighbors

    # scikit-learn computes distances from inner products, which rounds: duplicates are not at distance 0, and
    # ties are in no particular order. So take some candidates more and compute their distances exactly.
    most = len(rows) - (queries is None)
    search = NearestNeighbors(n_neighbors=min(k + _SPARE, most), algorithm="brute").fit(rows)
    candidates = np.sort(search.kneighbors(queries, return_distance=False), axis=1)
    asked = rows if queries is None else queries
    index = np.empty((len(asked), k), np.int64)
    distance = np.empty((len(asked), k), np.float32)
    for start in range(0, len(asked), _CHUNK):
        part = slice(start, start + _CHUNK)
        exact = np.sqrt(((asked[part, None, :] - rows[candidates[part]]) ** 2).sum(axis=2))
        order = np.argsort(exact, axis=1, kind="stable")[:, :k]
        index[part] = np.take_along_axis(candidates[part], order, axis=1)
        distance[part] = np.take_along_axis(exact, order, axis=1)
    return index, distance
