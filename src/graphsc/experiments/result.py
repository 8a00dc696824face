"""A trial's outcome, small enough to keep: every table and figure is made of these and nothing else."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import read_json, write_atomic
from graphsc.core.serialization import check_stamp, pack, stamp, unpack
from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import InnerOrder
from graphsc.experiments.curve import Curve

Trial = Mapping[str, object]  # the identity of a trial, as JSON has it


@dataclass(frozen=True)
class Result:
    """What a trial found. Predictions are of the fold in which a graph was held out."""

    trial: Trial
    config: Mapping[str, object]  # of the training run, complete
    classes: tuple[str, ...]
    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    predictions: NDArray[np.int64]
    chosen: tuple[float, ...]  # of the grid, per outer fold
    epochs: tuple[int, ...]  # judged, per outer fold
    inner_accuracy: float  # mean over outer folds of the best inner accuracy; looks at training folds only
    words: str  # the protocol, to be printed beside the number
    health: Mapping[str, float] = field(default_factory=dict)  # of the last epoch
    seconds: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    inner_folds: tuple[float, ...] = ()  # best inner accuracy of each outer fold, where the trial keeps it
    curve: Curve | None = None  # where the trial has one

    @classmethod
    def of(
        cls,
        found: Evaluation,
        epochs: Sequence[int],
        *,
        trial: Trial,
        config: Mapping[str, object],
        classes: Sequence[str],
        words: str,
        health: Mapping[str, float] | None = None,
        seconds: Mapping[str, float] | None = None,
        environment: Mapping[str, object] | None = None,
        keep_inner: bool = False,
        curve: Curve | None = None,
    ) -> Result:
        """What an evaluation found, with all that must stand beside it."""
        return cls(
            trial=trial,
            config=config,
            classes=tuple(classes),
            labels=found.labels,
            fold=found.fold,
            predictions=found.predictions,
            chosen=found.chosen,
            epochs=tuple(epochs),
            inner_accuracy=float(found.inner.max(axis=1).mean()),
            words=words,
            health=health or {},
            seconds=seconds or {},
            environment=environment or {},
            inner_folds=tuple(found.inner.max(axis=1).tolist()) if keep_inner else (),
            curve=curve,
        )

    @property
    def method(self) -> str:
        return str(self.trial["method"])

    @property
    def data(self) -> str:
        return str(self.trial["data"])

    @property
    def seed(self) -> int:
        training = self.trial["training"]
        assert isinstance(training, Mapping)  # noqa: S101 - narrows the type
        return int(training["seed"])

    @property
    def resplit(self) -> bool:
        """Whether the folds are not those of the run's own seed."""
        return self.trial["fold_seed"] != self.seed

    @property
    def leaky(self) -> bool:
        """Whether a test label had a say in what was judged."""
        return self.trial["selection"] == "legacy-leaky"

    @property
    def whole(self) -> bool:
        """Judged as the main tables have it: all labels, folds at random, one encoder, the last epoch."""
        protocol = cast(Mapping[str, object], self.trial.get("protocol", {}))
        partial = "label_share" in protocol or "splitting" in protocol
        chosen = self.trial["selection"] != "last"
        return not (partial or chosen or self.resplit or self.trial["inductive"])

    @property
    def inner_order(self) -> InnerOrder:
        """In which order inner folds were cut."""
        protocol = cast(Mapping[str, object], self.trial.get("protocol", {}))
        return "shuffled" if protocol.get("inner_order") == "shuffled" else "file"

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy on each outer fold."""
        return self.evaluation.accuracies

    @property
    def accuracy(self) -> float:
        """Mean over the outer folds."""
        return float(self.accuracies.mean())

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation(
            predictions=self.predictions, fold=self.fold, labels=self.labels, chosen=self.chosen,
            inner=np.full((len(self.chosen), 1), self.inner_accuracy),
        )  # fmt: skip

    @property
    def value(self) -> float:
        """The number that a study shows for its cell, of training folds only."""
        return self.inner_accuracy

    def to_json(self) -> dict[str, object]:
        beyond: dict[str, object] = {}
        if self.inner_folds:
            beyond["inner_fold_accuracies"] = [round(100 * value, 4) for value in self.inner_folds]
        if self.curve is not None:
            beyond["curve"] = self.curve.to_json()
        return {
            **stamp("result"),
            "trial": self.trial,
            "accuracy": round(100 * self.accuracy, 4),
            "deviation_over_folds": round(100 * float(self.accuracies.std()), 4),
            "fold_accuracies": [round(100 * value, 4) for value in self.accuracies],
            "inner_accuracy": round(100 * self.inner_accuracy, 4),
            "leaky": self.leaky,
            "words": self.words,
            "classes": list(self.classes),
            "chosen": list(self.chosen),
            "epochs": list(self.epochs),
            "labels": pack(self.labels),
            "folds": pack(self.fold),
            "predictions": pack(self.predictions),
            "health": dict(self.health),
            "seconds": dict(self.seconds),
            "config": self.config,
            "environment": self.environment,
            **beyond,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, whole or not at all."""
        write_atomic(path, json.dumps(self.to_json(), indent=1) + "\n")


def load_result(path: str | os.PathLike[str]) -> Result:
    """Read a result; refuses what is damaged, of another kind or from the future."""
    return result_from_json(read_json(path, "result"), str(path))


def result_from_json(found: object, where: str) -> Result:
    """A result from what `to_json` gave; the same refusals as for a file."""
    if not isinstance(found, Mapping):
        raise DamagedFileError("result file is damaged", where=where)
    check_stamp("result", {key: str(found.get(key, "")) for key in ("format", "format_version")}, where)
    try:
        result = Result(
            trial=found["trial"],
            config=found["config"],
            classes=tuple(found["classes"]),
            labels=unpack(found["labels"]),
            fold=unpack(found["folds"]),
            predictions=unpack(found["predictions"]),
            chosen=tuple(found["chosen"]),
            epochs=tuple(found["epochs"]),
            inner_accuracy=float(found["inner_accuracy"]) / 100,
            words=str(found["words"]),
            health=found["health"],
            seconds=found["seconds"],
            environment=found["environment"],
            inner_folds=tuple(value / 100 for value in found.get("inner_fold_accuracies", ())),
            curve=Curve.from_json(found["curve"]) if "curve" in found else None,
        )
        # The stored figure must follow from the stored predictions: no number is typed in.
        if abs(100 * result.accuracy - float(found["accuracy"])) > 1e-3:
            raise ValueError("accuracy does not follow from the predictions")
    except (LookupError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise DamagedFileError(f"result file is damaged: {error}", where=where) from error
    return result
