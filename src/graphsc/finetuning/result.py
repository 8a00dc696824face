"""The result of fine-tuning or of a baseline: labels and scores of the held-out molecules.

Every metric is computed from them, and they are small enough to keep.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import read_json, write_json
from graphsc.core.serialization import check_stamp, pack, pack_floats, stamp, unpack, unpack_floats
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.metrics import MEASURES, Kind, Task, mean_over_tasks, measure, skipped, tasks_of
from graphsc.finetuning.dataset import MoleculeDataset
from graphsc.finetuning.splits import TEST, TRAIN, VALID, Parts

MOST_SCORES = 10_000  # with more labels, their order by score is stored instead of the scores

# How a model was chosen; `fit` is the only rule of a baseline.
RULES = {
    "last": "after the last epoch",
    "best": "after the epoch with the best score on validation",
    "fit": "fitted once, its strength of regularisation chosen on validation where it has one",
}


@dataclass(frozen=True)
class HeldOutScores:
    """Labels and scores by task of the model that one rule chose; validation only if the set is small."""

    test: tuple[Task, ...]
    valid: tuple[Task, ...] = ()
    epoch: int | None = None
    learning_rate: float | None = None

    @classmethod
    def of(
        cls,
        test: Sequence[Task],
        valid: Sequence[Task],
        kind: Kind,
        epoch: int | None = None,
        learning_rate: float | None = None,
    ) -> HeldOutScores:
        """Round the scores to the precision of the file, so that metrics are the same after reading it."""
        large = kind == "classification" and sum(len(task.labels) for task in test) > MOST_SCORES
        return cls(
            tuple(_rounded(task, kind, large) for task in test),
            () if large else tuple(_rounded(task, kind, False) for task in valid),
            epoch,
            learning_rate,
        )


def _rounded(task: Task, kind: Kind, ranked: bool) -> Task:
    if ranked:
        # Ties keep the order of the molecules, which is independent of the labels.
        order = np.argsort(task.scores, kind="stable")
        return Task(task.labels[order].astype(np.float32), np.arange(len(order), dtype=np.float32))
    precision = np.float16 if kind == "classification" else np.float32
    return Task(task.labels.astype(np.float32), task.scores.astype(precision).astype(np.float32))


@dataclass(frozen=True)
class TransferResult:
    """One seed of fine-tuning or of a baseline on one data set, by each rule for choosing the model."""

    trial: Mapping[str, object]
    config: Mapping[str, object]
    tasks: tuple[str, ...]
    kind: Kind
    parts: Parts  # per molecule: 0 training, 1 validation, 2 test
    rules: Mapping[str, HeldOutScores]
    words: str  # the protocol, to be printed beside the score
    seconds: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)

    @property
    def main(self) -> str:
        """The metric that tables show: ROC-AUC or RMSE."""
        return next(iter(MEASURES[self.kind]))

    def score(self, rule: str, part: str = "test", name: str | None = None) -> float:
        """A metric (the main one by default), averaged over the tasks for which it is defined."""
        tasks = self.rules[rule].test if part == "test" else self.rules[rule].valid
        return mean_over_tasks(measure(tasks, self.kind)[name or self.main])

    @property
    def summary(self) -> str:
        """The outcome in a few words: the main score by each rule."""
        return ", ".join(f"{rule} {100 * self.score(rule):.2f}" for rule in self.rules)

    def figures(self, rule: str) -> dict[str, object]:
        """All test metrics of a rule: means, values by task, and the tasks without a value."""
        by_task = measure(self.rules[rule].test, self.kind)
        figures: dict[str, object] = {
            name: _number(mean_over_tasks(values)) for name, values in by_task.items()
        }
        figures["by_task"] = {name: [_number(v) for v in values] for name, values in by_task.items()}
        figures["skipped"] = skipped(by_task[self.main], self.tasks)
        if self.rules[rule].valid:
            figures[f"valid_{self.main}"] = _number(self.score(rule, "valid"))
        return figures

    def to_json(self) -> dict[str, object]:
        return {
            **stamp("transfer-result"),
            "trial": self.trial,
            "words": self.words,
            "kind": self.kind,
            "tasks": list(self.tasks),
            "figures": {rule: self.figures(rule) for rule in self.rules},
            "split": pack(self.parts),
            "rules": {rule: _scores_to_json(scores, self.kind) for rule, scores in self.rules.items()},
            "seconds": dict(self.seconds),
            "config": self.config,
            "environment": self.environment,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result file atomically."""
        write_json(path, self.to_json())


def load_transfer(path: str | os.PathLike[str]) -> TransferResult:
    """Read a result file.

    Raises:
        DamagedFileError: The file is damaged, or its metrics do not follow from its scores.
    """
    return transfer_from_json(read_json(path, "result"), str(path))


def transfer_from_json(held: object, where: str) -> TransferResult:
    """Read a result from the output of `to_json`, with the same checks as `load_transfer`."""
    stored = held if isinstance(held, Mapping) else {}
    check_stamp(
        "transfer-result", {key: str(stored.get(key, "")) for key in ("format", "format_version")}, where
    )
    try:
        result = TransferResult(
            trial=stored["trial"],
            config=stored["config"],
            tasks=tuple(stored["tasks"]),
            kind=stored["kind"],
            parts=unpack(stored["split"]),
            rules={rule: _scores_from_json(s, stored["kind"]) for rule, s in stored["rules"].items()},
            words=str(stored["words"]),
            seconds=stored["seconds"],
            environment=stored["environment"],
        )
        for rule in result.rules:
            if len(result.rules[rule].test) != len(result.tasks):
                raise ValueError(f"{len(result.tasks)} tasks have scores of {len(result.rules[rule].test)}")
            claimed, follows = stored["figures"][rule][result.main], _number(result.score(rule))
            if claimed != follows and abs(float(claimed) - float(follows or 0)) > 1e-5:
                raise ValueError(f"{result.main} does not follow from the scores")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, zlib.error) as error:
        raise DamagedFileError(f"result file is damaged: {error}", where=where) from error
    return result


def _number(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)


def _scores_to_json(scores: HeldOutScores, kind: Kind) -> dict[str, object]:
    stored: dict[str, object] = {"epoch": scores.epoch, "learning_rate": scores.learning_rate}
    for name, tasks in (("test", scores.test), ("valid", scores.valid)):
        if tasks:
            stored[name] = _tasks_to_json(tasks, kind)
    return stored


def _tasks_to_json(tasks: Sequence[Task], kind: Kind) -> dict[str, object]:
    labels = np.concatenate([task.labels for task in tasks])
    scores = np.concatenate([task.scores for task in tasks])
    counts = [len(task.labels) for task in tasks]
    if kind == "regression":
        return {"counts": counts, "labels": pack_floats(labels), "scores": pack_floats(scores)}
    bits = pack(np.packbits(labels > 0.5).astype(np.int64))
    stored: dict[str, object] = {"counts": counts, "labels": bits}
    if sum(counts) <= MOST_SCORES:
        stored["scores"] = pack_floats(scores.astype(np.float16))
    return stored


def _scores_from_json(stored: Mapping[str, object], kind: Kind) -> HeldOutScores:
    parts = {
        name: _tasks_from_json(cast(Mapping[str, object], stored[name]), kind) if name in stored else ()
        for name in ("test", "valid")
    }
    return HeldOutScores(
        parts["test"],
        parts["valid"],
        cast(int | None, stored["epoch"]),
        cast(float | None, stored["learning_rate"]),
    )


def _tasks_from_json(stored: Mapping[str, object], kind: Kind) -> tuple[Task, ...]:
    counts = cast(list[int], stored["counts"])
    ends = np.cumsum(counts)
    if kind == "regression":
        labels = unpack_floats(str(stored["labels"]))
    else:
        bits = unpack(str(stored["labels"])).astype(np.uint8)
        labels = np.unpackbits(bits, count=sum(counts)).astype(np.float32)
    if "scores" in stored:
        scores = unpack_floats(str(stored["scores"])).astype(np.float32)
    else:
        scores = np.concatenate([np.arange(count, dtype=np.float32) for count in counts])
    if not len(labels) == len(scores) == sum(counts):
        raise ValueError("labels and scores are not of one length")
    return tuple(map(Task, np.split(labels, ends[:-1]), np.split(scores, ends[:-1])))


def held_out_set(molecules: MoleculeDataset, parts: Parts) -> tuple[GraphCollection, Parts]:
    """The validation and test molecules with their labels, and the part of each."""
    rows = np.flatnonzero(parts != TRAIN)
    return replace(molecules.collection.take(rows), rejected=()), parts[rows]


def score_held_out(
    scores: NDArray[np.floating],
    held_out: GraphCollection,
    parts: Parts,
    kind: Kind,
    epoch: int | None = None,
    learning_rate: float | None = None,
) -> HeldOutScores:
    """Combine the scores (molecules x tasks) of the held-out molecules with their labels."""
    labels = held_out.labels
    assert labels is not None  # noqa: S101 - held-out molecules are labelled
    test, valid = (tasks_of(labels[parts == part], scores[parts == part]) for part in (TEST, VALID))
    return HeldOutScores.of(test, valid, kind, epoch, learning_rate)
