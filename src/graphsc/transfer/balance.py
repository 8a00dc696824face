"""How many labels there are, of which class, on each side of a split."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.cells import safe_cell
from graphsc.core.files import write_atomic
from graphsc.evaluation.tasks import Kind
from graphsc.transfer.split import NAMES, Parts


@dataclass(frozen=True)
class Balance:
    """The labels of one task on one side; a regression has values, not positives and negatives."""

    task: str
    part: str
    missing: int
    positives: int | None = None
    negatives: int | None = None
    values: int | None = None

    @property
    def one_class(self) -> bool:
        """Whether no ROC-AUC can be had here."""
        return self.values is None and not (self.positives and self.negatives)

    def to_json(self) -> dict[str, object]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def balance_of(
    labels: NDArray[np.floating], tasks: tuple[str, ...], parts: Parts, kind: Kind
) -> list[Balance]:
    """Counts for every task and side."""
    found = []
    for k, task in enumerate(tasks):
        for part, name in enumerate(NAMES):
            column = labels[parts == part, k]
            missing = int(np.isnan(column).sum())
            if kind == "regression":
                found.append(Balance(task, name, missing, values=len(column) - missing))
            else:
                ones = int((column == 1).sum())
                found.append(Balance(task, name, missing, ones, len(column) - missing - ones))
    return found


def write_balance(path: Path, balances: Sequence[Balance]) -> None:
    """The counts as a table, however many tasks there are."""
    names = list(balances[0].to_json())
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{**one.to_json(), "task": safe_cell(one.task)} for one in balances])
    write_atomic(path, text.getvalue())


def warnings_of(balances: list[Balance], fewest: int = 10) -> list[str]:
    """What a reader must know of the labels before believing a score, in words."""
    found = []
    untrained = [one.task for one in balances if one.part == "train" and one.one_class]
    unjudged = [one.task for one in balances if one.part == "test" and one.one_class]
    few = [
        one.task
        for one in balances
        if one.part == "test" and not one.one_class and one.values is None
        and min(one.positives or 0, one.negatives or 0) < fewest
    ]  # fmt: skip
    if untrained:
        found.append(f"{_names(untrained)}: only one class to learn from")
    if unjudged:
        found.append(f"{_names(unjudged)}: only one class to judge by, no score")
    if few:
        found.append(f"{_names(few)}: fewer than {fewest} test molecules of one class, scores are noise")
    return found


def _names(tasks: list[str]) -> str:
    return ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")
