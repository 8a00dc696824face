"""Callbacks of fine-tuning: validation metrics, the best model so far, and early stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from graphsc.training.callbacks import Callback
from graphsc.training.trainer import Trainer

SCORE = "valid_score"  # the column by which a model is chosen; higher is better


class ValidationMetrics(Callback):
    """Adds loss and metrics on the held-out molecules, by `parts` of validation or test, to every epoch."""

    def __init__(self, held_out: GraphCollection, parts: Parts) -> None:
        self.held_out = held_out
        self.parts = parts

    def epoch_metrics(self, trainer: Trainer) -> Mapping[str, float]:
        return validation_metrics(_fine_tuned(trainer), self.held_out, self.parts)


class BestModel(Callback):
    """Saves the model with the best validation score among every `every`-th epoch and the last.

    Of equal scores the earliest wins. The choice depends on the scores alone, so that a resumed run chooses
    the same model.
    """

    def __init__(
        self, file: Path, save: Callable[[FineTuned, Path, Mapping[str, object]], None], *, every: int = 1
    ) -> None:
        self.file = file
        self.save = save
        self.every = every
        self.best: tuple[float, int] | None = None  # score and epoch
        if file.exists():
            _, facts = load_tensors(file, "predictor")
            self.best = float(str(facts[SCORE])), int(str(facts["epoch"]))

    def on_epoch_end(self, trainer: Trainer) -> None:
        epoch, score = trainer.epoch, trainer.metrics.rows[-1].get(SCORE)
        if score is None or (epoch % self.every and epoch != trainer.epochs):
            return
        if self.best is None or (score, -epoch) > (self.best[0], -self.best[1]):
            self.best = (score, epoch)
            self.save(_fine_tuned(trainer), self.file, {"rule": "best", "epoch": epoch, SCORE: score})


def _fine_tuned(trainer: Trainer) -> FineTuned:
    assert isinstance(trainer.method, FineTuned)  # noqa: S101 - these callbacks are for fine-tuning only
    return trainer.method


def validation_metrics(method: FineTuned, held_out: GraphCollection, parts: Parts) -> dict[str, float]:
    """Loss and metrics on the validation and test sets; those that are undefined are left out."""
    scores = embed(method, held_out)
    assert held_out.labels is not None  # noqa: S101 - held-out molecules are labelled
    labels = held_out.labels[:, : method.tasks]  # features may stand behind them
    metrics: dict[str, float] = {}
    for name, part in (("valid", VALID), ("test", TEST)):
        rows = parts == part
        if not (~np.isnan(labels[rows])).any():
            continue
        metrics[f"{name}_loss"] = _loss(method, labels[rows], scores[rows])
        for metric, values in measure(tasks_of(labels[rows], scores[rows]), method.kind).items():
            mean = mean_over_tasks(values)
            if not np.isnan(mean):
                metrics[f"{name}_{metric}"] = mean
    score = selection_score(metrics, method.kind)
    return metrics if score is None else {**metrics, SCORE: score}


def selection_score(metrics: Mapping[str, float], kind: Kind) -> float | None:
    """The score by which to choose a model, or None without validation labels.

    ROC-AUC for a classification. The negative loss for a regression, and where no task has both classes.
    """
    main = f"valid_{next(iter(MEASURES[kind]))}"
    if kind == "classification" and main in metrics:
        return metrics[main]
    return -metrics["valid_loss"] if "valid_loss" in metrics else None


def _loss(method: FineTuned, labels: NDArray[np.floating], scores: NDArray[np.floating]) -> float:
    outputs = torch.from_numpy(scores.astype(np.float64))
    targets = torch.from_numpy(labels.astype(np.float64))
    if method.kind == "classification":
        return float(masked_bce(outputs, targets))
    deviation = method.deviation.double().cpu()
    return float(masked_mse(outputs / deviation, targets / deviation))
