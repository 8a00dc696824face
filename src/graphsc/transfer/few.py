"""Fewer labels to learn from: what a model is worth when a laboratory has tested only some molecules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError
from graphsc.core.random import numpy_generator
from graphsc.evaluation.tasks import Kind


def rows_to_train(
    labels: NDArray[np.floating], rows: NDArray[np.int64], kind: Kind, fraction: float = 1.0, seed: int = 0
) -> NDArray[np.int64]:
    """The rows that have a label at all, or a fraction of them drawn by the seed.

    Smaller fractions are part of larger ones. With a single task both classes are among them where they can
    be: if all that were drawn are of one class, the last makes room for the first of the other.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"a label fraction lies above 0 and up to 1, not {fraction:g}")
    rows = rows[~np.isnan(labels[rows]).all(axis=1)]
    if fraction == 1 or not len(rows):
        return rows
    order = rows[numpy_generator(seed, "label fraction").permutation(len(rows))]
    count = min(len(rows), max(2, round(fraction * len(rows))))
    drawn = order[:count]
    if kind == "classification" and labels.shape[1] == 1:
        others = order[labels[order, 0] != labels[drawn[0], 0]]
        if len(others) and (labels[drawn, 0] == labels[drawn[0], 0]).all():
            drawn = np.append(drawn[:-1], others[0])
    return np.sort(drawn)
