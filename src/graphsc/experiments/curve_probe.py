"""A probe on the way: judges some epochs of a training while it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import write_atomic
from graphsc.data.collection import GraphCollection
from graphsc.experiments.curve import Curve
from graphsc.experiments.selection import Judge
from graphsc.training.callbacks import Callback
from graphsc.training.train import embed_clean
from graphsc.training.trainer import Trainer


class CurveProbe(Callback):
    """Callback: judge the embeddings of some epochs and note the outcome in the run's folder.

    Noted before the loop's own checkpoint, so that a run that was stopped goes on with its curve.
    """

    def __init__(
        self, path: Path, epochs: tuple[int, ...], collection: GraphCollection, judge: Judge
    ) -> None:
        self.path = path
        self.epochs = epochs
        self.collection = collection
        self.judge = judge

    def on_train_start(self, trainer: Trainer) -> None:
        if not trainer.resumed:
            self.on_epoch_end(trainer)

    def on_epoch_end(self, trainer: Trainer) -> None:
        epochs = trainer.epoch
        if epochs not in self.epochs:
            return
        found = self.judge(embed_clean(trainer.method, self.collection))
        sizes = np.bincount(found.fold)
        right = np.bincount(found.fold, found.predictions == found.labels).astype(np.int64)
        counts = {epoch: row for epoch, row in self._noted().items() if epoch < epochs} | {epochs: right}
        curve = Curve(tuple(counts), np.stack(list(counts.values())), sizes)
        write_atomic(self.path, json.dumps(curve.to_json()))

    def curve(self) -> Curve:
        """All that was noted."""
        try:
            return Curve.from_json(json.loads(self.path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedFileError(
                "the curve of a run is missing or damaged",
                where=str(self.path),
                hint="remove the run's folder",
            ) from error

    def _noted(self) -> dict[int, NDArray[np.int64]]:
        if not self.path.exists():
            return {}
        curve = self.curve()
        return dict(zip(curve.epochs, curve.right, strict=True))
