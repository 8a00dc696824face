"""Accuracy from epoch to epoch, kept as counts of right answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Curve:
    """Right answers in each outer fold (E x folds) at E epochs, and the folds' sizes."""

    epochs: tuple[int, ...]
    right: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.right.shape != (len(self.epochs), len(self.sizes)):
            raise ValueError("a curve needs a count for each epoch and fold")
        if (self.right < 0).any() or (self.right > self.sizes).any():
            raise ValueError("a curve has more right answers than graphs")

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Mean over the folds at each epoch, between 0 and 1."""
        means: NDArray[np.float64] = (self.right / self.sizes).mean(axis=1)
        return means

    def to_json(self) -> dict[str, object]:
        return {
            "epochs": list(self.epochs),
            "fold_sizes": self.sizes.tolist(),
            "right": {str(epoch): row.tolist() for epoch, row in zip(self.epochs, self.right, strict=True)},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Curve:
        """A curve from what `to_json` gave."""
        epochs, right = stored["epochs"], stored["right"]
        if not isinstance(epochs, list) or not isinstance(right, Mapping):
            raise TypeError("a curve has epochs and counts")
        sizes = np.array(stored["fold_sizes"], dtype=np.int64)
        counts = np.array([right[str(epoch)] for epoch in epochs], dtype=np.int64)
        return cls(tuple(epochs), counts.reshape(len(epochs), len(sizes)), sizes)
