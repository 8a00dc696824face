"""Whether vectors fall into groups by themselves, and whether these are the classes."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, silhouette_score

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.cross_validation import class_codes

# The silhouette needs all distances; beyond this many rows it is taken over a sample.
_SAMPLE = 10_000


def clustering_quality(
    values: ArrayLike, labels: ArrayLike | None = None, *, clusters: int | None = None, seed: int = 0
) -> dict[str, float]:
    """Group vectors by k-means and say how good the groups are.

    values: n x d. labels: n classes, or none. `clusters` is by default the number of classes. `silhouette`
    (-1 to 1) compares distances within and between groups, and is 0 where all vectors are in one group;
    with labels, `nmi` (0 to 1) and `ari` (1 for equal, 0 by chance) compare groups with classes.
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
        # Fewer distinct vectors than clusters: the groups found are counted below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        groups = KMeans(clusters, n_init=10, random_state=seed).fit_predict(matrix)
    quality = {"clusters": float(clusters), "silhouette": 0.0}
    if len(np.unique(groups)) > 1:
        size = _SAMPLE if len(matrix) > _SAMPLE else None
        quality["silhouette"] = float(silhouette_score(matrix, groups, sample_size=size, random_state=seed))
    if codes is not None:
        quality["nmi"] = float(normalized_mutual_info_score(codes, groups))
        quality["ari"] = float(adjusted_rand_score(codes, groups))
    return quality
