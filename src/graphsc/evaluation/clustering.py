"""Quality of k-means clusters of embeddings, and their agreement with the classes."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.cross_validation import class_codes

_SAMPLE = 10_000  # rows; the silhouette of more is computed on a sample, because it needs all distances


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
