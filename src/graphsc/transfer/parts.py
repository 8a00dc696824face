"""Predicted chunks on disk, each whole or not there at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.tensors import load_tensors, save_tensors

Chunk = tuple[NDArray[np.float64], NDArray[np.float64], list[str]]  # mean, spread, reasons


class PredictedParts:
    """The folder of the chunks that are done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, index: int) -> Path:
        return self.folder / f"part-{index:06d}.safetensors"

    def keep(
        self, index: int, mean: NDArray[np.float64], spread: NDArray[np.float64], reasons: list[str]
    ) -> None:
        """Store a chunk; reasons only of the rows that have one."""
        lost = {str(place): reason for place, reason in enumerate(reasons) if reason}
        tensors = {"mean": torch.from_numpy(mean), "spread": torch.from_numpy(spread)}
        save_tensors(self.path(index), "predictions", tensors, {"reasons": json.dumps(lost)})

    def done(self, index: int, rows: int) -> bool:
        """Whether this chunk is there, whole and of so many rows."""
        if not self.path(index).exists():
            return False
        try:
            return len(self.load(index)[0]) == rows
        except (DamagedFileError, NotFoundError):
            return False

    def load(self, index: int) -> Chunk:
        """What `keep` kept."""
        tensors, facts = load_tensors(self.path(index), "predictions")
        reasons = [""] * len(tensors["mean"])
        for place, reason in json.loads(cast(str, facts["reasons"])).items():
            reasons[int(place)] = reason
        return tensors["mean"].numpy(), tensors["spread"].numpy(), reasons
