"""Callbacks of fine-tuning: validation metrics, the best model so far, and scores that were not chosen by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.random import numpy_generator
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.encoders.inference import embed
from graphsc.evaluation.metrics import MEASURES, Kind, mean_over_tasks, measure, tasks_of
from graphsc.finetuning.model import FineTuned
from graphsc.finetuning.splits import TEST, VALID, Parts
from graphsc.losses import masked_bce, masked_mse
from graphsc.training.callbacks import Callback
from graphsc.training.trainer import Trainer

SCORE = "valid_score"  # the column by which a model is chosen; higher is better
VALIDATION_SCORES = "validation-scores.safetensors"
FOLDS = 5  # of the validation molecules


class ValidationMetrics(Callback):
    """Adds loss and metrics on the held-out molecules, by `parts` of validation or test, to every epoch."""

    def __init__(self, held_out: GraphCollection, parts: Parts) -> None:
        assert held_out.labels is not None  # noqa: S101 - held-out molecules are labelled
        self.held_out = held_out
        self.parts = parts
        self.labels = held_out.labels
        self.scores: NDArray[np.float32] | None = None  # after the last epoch: log-odds or values

    def epoch_metrics(self, trainer: Trainer) -> Mapping[str, float]:
        method = _fine_tuned(trainer)
        self.scores = embed(method, self.held_out)
        labels = self.labels[:, : method.tasks]  # features may stand behind them
        return validation_metrics(method, labels, self.scores, self.parts)


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
        if self.best is None or (score, -epoch) > _order(self.best):
            self.best = (score, epoch)
            self.save(_fine_tuned(trainer), self.file, {"rule": "best", "epoch": epoch, SCORE: score})


class CrossFittedScores(Callback):
    """Keeps scores of every validation molecule from an epoch that it had no part in choosing.

    The epoch of the delivered model is the best on all validation molecules, so its scores for them are too
    good to weigh it against models that were not chosen by them. Here they are cut into five folds. Scores of
    a fold are those of the epoch that is best on the other four, by the rule of `BestModel`.
    """

    def __init__(self, validation: ValidationMetrics, file: Path, *, seed: int, every: int = 1) -> None:
        self.validation = validation
        self.file = file
        self.every = every
        self.rows = np.flatnonzero(validation.parts == VALID)
        folds = np.arange(len(self.rows)) % FOLDS
        self.fold = numpy_generator(seed, "folds of validation").permutation(folds)
        self.best: dict[int, tuple[float, int]] = {}  # by fold: score and epoch
        self.scores: NDArray[np.float32] | None = None
        if file.exists():
            tensors, facts = load_tensors(file, "validation-scores")
            stored = cast(Mapping[str, tuple[float, int]], facts["best"])
            self.best = {int(fold): (float(score), int(epoch)) for fold, (score, epoch) in stored.items()}
            self.scores = tensors["scores"].numpy()

    def on_epoch_end(self, trainer: Trainer) -> None:
        epoch, method = trainer.epoch, _fine_tuned(trainer)
        if self.validation.scores is None or (epoch % self.every and epoch != trainer.epochs):
            return
        scores = self.validation.scores[self.rows]
        labels = self.validation.labels[self.rows, : method.tasks]
        if self.scores is None:
            self.scores = np.full_like(scores, np.nan)
        changed = False
        for fold in range(FOLDS):
            others = self.fold != fold
            parts = np.full(int(others.sum()), VALID, dtype=self.validation.parts.dtype)
            score = validation_metrics(method, labels[others], scores[others], parts).get(SCORE)
            if score is None or (fold in self.best and (score, -epoch) <= _order(self.best[fold])):
                continue
            self.best[fold] = (score, epoch)
            self.scores[~others] = scores[~others]
            changed = True
        if changed:
            best = {str(fold): list(own) for fold, own in self.best.items()}
            save_tensors(
                self.file, "validation-scores", {"scores": torch.from_numpy(self.scores)}, {"best": best}
            )


def load_validation_scores(file: Path) -> NDArray[np.float32] | None:
    """Scores of the validation molecules, NaN where no epoch could be chosen; None without the file."""
    if not file.exists():
        return None
    scores: NDArray[np.float32] = load_tensors(file, "validation-scores")[0]["scores"].numpy()
    return scores


def _order(best: tuple[float, int]) -> tuple[float, int]:
    """Of equal scores the earliest epoch is best."""
    return best[0], -best[1]


def _fine_tuned(trainer: Trainer) -> FineTuned:
    assert isinstance(trainer.method, FineTuned)  # noqa: S101 - these callbacks are for fine-tuning only
    return trainer.method


def validation_metrics(
    method: FineTuned, labels: NDArray[np.floating], scores: NDArray[np.floating], parts: Parts
) -> dict[str, float]:
    """Loss and metrics on the validation and test sets; those that are undefined are left out.

    Args:
        method: The model that gave the scores.
        labels: Molecules x tasks; NaN where unknown.
        scores: Log-odds or values of the same shape.
        parts: Of each molecule, validation or test.
    """
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
