"""How well fine-tuning goes, epoch by epoch, and the best model so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.serialization import load_tensors
from graphsc.data.collection import GraphCollection
from graphsc.encoders.inference import embed
from graphsc.evaluation.metrics import MEASURES, Kind, mean_over_tasks, measure, tasks_of
from graphsc.finetuning.model import FineTuned
from graphsc.finetuning.splits import TEST, VALID, Parts
from graphsc.losses import masked_bce, masked_mse
from graphsc.methods.base import TrainedMethod

SCORE = "valid_score"  # what validation chooses by: higher is better


class Watch:
    """Scores held-out molecules after every epoch, and keeps the model that validation likes best.

    The best one is a function of the scores alone (the highest, of equal ones the earliest), so that a run
    that was killed and goes on finds the same.
    """

    def __init__(
        self,
        held: GraphCollection,
        parts: Parts,
        file: Path,
        save: Callable[[FineTuned, Path, Mapping[str, object]], None],
        *,
        every: int = 1,
        last: int = 0,
    ) -> None:
        self.held = held  # with labels; validation and test
        self.parts = parts
        self.file = file
        self.save = save
        self.every = every
        self.last = last
        self.found: dict[str, float] = {}
        self.best = _best_so_far(file)

    def measure(self, epoch: int, method: TrainedMethod) -> dict[str, float]:
        """Columns for the epoch's row of the metrics."""
        assert isinstance(method, FineTuned)  # noqa: S101 - nothing else is watched
        self.found = figures_of(method, self.held, self.parts)
        return self.found

    def keep(self, epoch: int, method: TrainedMethod) -> None:
        """Epoch hook: store the model if validation likes it better than all before."""
        assert isinstance(method, FineTuned)  # noqa: S101 - nothing else is watched
        score = self.found.get(SCORE)
        if not epoch or score is None or (epoch % self.every and epoch != self.last):
            return
        if self.best is None or (score, -epoch) > (self.best[0], -self.best[1]):
            self.best = (score, epoch)
            self.save(method, self.file, {"rule": "best", "epoch": epoch, SCORE: score})


def figures_of(method: FineTuned, held: GraphCollection, parts: Parts) -> dict[str, float]:
    """Loss and measures on validation and test; what cannot be had is left out."""
    scores = embed(method, held)
    labels = held.labels
    assert labels is not None  # noqa: S101 - held-out molecules are labelled
    found: dict[str, float] = {}
    for name, part in (("valid", VALID), ("test", TEST)):
        rows = parts == part
        if not (~np.isnan(labels[rows])).any():
            continue
        found[f"{name}_loss"] = _loss(method, labels[rows], scores[rows])
        for what, values in measure(tasks_of(labels[rows], scores[rows]), method.kind).items():
            mean = mean_over_tasks(values)
            if not np.isnan(mean):
                found[f"{name}_{what}"] = mean
    score = score_of(found, method.kind)
    return found if score is None else {**found, SCORE: score}


def score_of(found: Mapping[str, float], kind: Kind) -> float | None:
    """What to choose by: ROC-AUC on validation; the loss where no task has both classes or for numbers."""
    main = f"valid_{next(iter(MEASURES[kind]))}"
    if kind == "classification" and main in found:
        return found[main]
    return -found["valid_loss"] if "valid_loss" in found else None


def stale(rows: Sequence[Mapping[str, float]], patience: int | None) -> bool:
    """Whether validation has found nothing better for `patience` epochs."""
    scores = [row[SCORE] for row in rows if SCORE in row]
    return patience is not None and bool(scores) and len(scores) - 1 - int(np.argmax(scores)) >= patience


def _loss(method: FineTuned, labels: NDArray[np.floating], scores: NDArray[np.floating]) -> float:
    given, wanted = torch.from_numpy(scores.astype(np.float64)), torch.from_numpy(labels.astype(np.float64))
    if method.kind == "classification":
        return float(masked_bce(given, wanted))
    deviation = method.deviation.double().cpu()
    return float(masked_mse(given / deviation, wanted / deviation))


def _best_so_far(file: Path) -> tuple[float, int] | None:
    if not file.exists():
        return None
    _, facts = load_tensors(file, "predictor")
    return float(str(facts[SCORE])), int(str(facts["epoch"]))
