"""Clusters of embeddings by k-means, their quality, and their agreement with the classes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.cross_validation import class_codes
from graphsc.evaluation.neighbours import has_embedding, standardise

_SAMPLE = 10_000  # rows; the silhouette of more is computed on a sample, because it needs all distances


MOST_TRIED = 10  # clusters, where their number is chosen


@dataclass(frozen=True)
class FoundClusters:
    """Clusters of N rows, numbered from 1, the largest first."""

    cluster: NDArray[np.int64]  # N
    distance: NDArray[np.float64]  # N, to the centre of the own cluster
    silhouette: float
    tried: dict[int, float]  # silhouette by number of clusters, where the number was chosen


def find_clusters(
    embeddings: NDArray[np.floating], clusters: int | None = None, *, seed: int = 0
) -> FoundClusters:
    """Cluster rows by k-means, after standardising their columns.

    Args:
        embeddings: N x d.
        clusters: Their number; by default the one from 2 to 10 with the best silhouette.
        seed: Of k-means, and of the silhouette's sample.
    """
    if not has_embedding(embeddings).all():
        raise DataError("some embeddings hold NaN or infinity", hint="leave these graphs out")
    rows = standardise(embeddings).astype(np.float64)
    distinct = len(np.unique(rows, axis=0))
    if clusters is not None and not 2 <= clusters <= distinct:
        raise ConfigError(
            f"{clusters} clusters of {distinct} different embeddings", hint=f"use 2 to {distinct}"
        )
    if distinct < 3:
        raise DataError(f"there are {distinct} different embeddings", hint="clusters need three or more")
    numbers = range(2, min(MOST_TRIED, distinct - 1) + 1) if clusters is None else (clusters,)
    fits = {number: KMeans(number, n_init=10, random_state=seed).fit(rows) for number in numbers}
    size = _SAMPLE if len(rows) > _SAMPLE else None
    scores = {
        number: float(silhouette_score(rows, fit.labels_, sample_size=size, random_state=seed))
        if number < len(rows)
        else 0.0
        for number, fit in fits.items()
    }
    best = max(scores, key=lambda number: scores[number])
    labels = fits[best].labels_
    rank = np.argsort(np.argsort(-np.bincount(labels), kind="stable"), kind="stable")
    distance = np.linalg.norm(rows - fits[best].cluster_centers_[labels], axis=1)
    return FoundClusters(rank[labels] + 1, distance, scores[best], scores if clusters is None else {})


def clustering_quality(
    values: ArrayLike, labels: ArrayLike | None = None, *, clusters: int | None = None, seed: int = 0
) -> dict[str, float]:
    """Cluster vectors by k-means and measure the quality of the clusters.

    Args:
        values: n x d.
        labels: n classes, if known.
        clusters: the number of clusters; by default the number of classes.
        seed: of k-means, and of the silhouette's sample.

    Returns:
        `clusters`; `silhouette`, from -1 to 1, which is 0 if all vectors are in one cluster; and with labels
        `nmi`, from 0 to 1, and `ari`, which is 1 for equal partitions and 0 by chance.
    """
    matrix = np.asarray(values, dtype=np.float64)
    codes = None if labels is None else class_codes(labels)[0]
    if matrix.ndim != 2 or (codes is not None and len(codes) != len(matrix)):
        raise DataError(
            f"values have the shape {matrix.shape}"
            + ("" if codes is None else f", and there are {len(codes)} labels"),
            hint="give one row (and one label) for each graph",
        )
    if not np.isfinite(matrix).all():
        raise DataError("some vectors hold NaN or infinity", hint="leave these graphs out")
    if clusters is None:
        if codes is None:
            raise ConfigError("the number of clusters is not known", hint="give clusters, or labels")
        clusters = len(np.unique(codes))
    if not 2 <= clusters < len(matrix):
        raise ConfigError(
            f"{clusters} clusters of {len(matrix)} graphs", hint="use at least 2, and fewer than graphs"
        )
    with warnings.catch_warnings():
        # Raised for fewer distinct vectors than clusters, which is handled below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        assigned = KMeans(clusters, n_init=10, random_state=seed).fit_predict(matrix)
    quality = {"clusters": float(clusters), "silhouette": 0.0}
    if len(np.unique(assigned)) > 1:
        size = _SAMPLE if len(matrix) > _SAMPLE else None
        quality["silhouette"] = float(silhouette_score(matrix, assigned, sample_size=size, random_state=seed))
    if codes is not None:
        quality["nmi"] = float(normalized_mutual_info_score(codes, assigned))
        quality["ari"] = float(adjusted_rand_score(codes, assigned))
    return quality
