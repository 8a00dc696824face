"""Labels of molecules: numbers or class names; an empty cell is a missing label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.readers.csv import NUMBER

MISSING = ("", "nan", "NaN", "NA")
MOST_CLASSES = 1_000


@dataclass(frozen=True)
class Survey:
    """Number of rows of a source, and the class names of tasks whose labels are words."""

    rows: int
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def survey(source: Source) -> Survey:
    """Read through a source once without parsing molecules.

    A label column without any number holds class names, which are numbered in sorted order. In any other
    column, a label that is not a number makes its row invalid (`problem_of`).
    """
    rows = 0
    words: list[set[str]] = [set() for _ in source.tasks]
    undecided = set(range(len(source.tasks)))
    for row in source.rows():
        rows += 1
        if not undecided or row.problem:
            continue
        for task in list(undecided):
            cell = row.labels[task]
            if cell in MISSING:
                continue
            if NUMBER.fullmatch(cell):
                undecided.discard(task)
                continue
            words[task].add(cell)
            if len(words[task]) > MOST_CLASSES:
                raise DataError(
                    f"column {source.tasks[task]!r} holds more than {MOST_CLASSES:,} different words",
                    where=source.where,
                    hint="set label_columns without it",
                )
    if rows == 0:
        raise DataError("there is no molecule in this source", where=source.where)
    return Survey(rows, {source.tasks[k]: tuple(sorted(words[k])) for k in sorted(undecided) if words[k]})


def problem_of(row: Row, tasks: Sequence[str], classes: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why a row's labels are invalid, or None."""
    for task, cell in zip(tasks, row.labels, strict=True):
        if cell not in MISSING and task not in classes and not NUMBER.fullmatch(cell):
            return f"label {cell[:40]!r} of {task!r} is not a number"
        if task not in classes and len(cell) > 4 and abs(float(cell)) == float("inf"):
            return f"label {cell[:40]!r} of {task!r} is infinite"
    return None


def label_table(
    cells: Sequence[Sequence[str]], tasks: Sequence[str], classes: Mapping[str, tuple[str, ...]]
) -> NDArray[np.float64]:
    """Labels of shape (rows, tasks), NaN where one is missing."""
    codes = [{name: code for code, name in enumerate(classes.get(task, ()))} for task in tasks]
    return np.array(
        [
            [
                np.nan if cell in MISSING else float(code_of[cell] if code_of else cell)
                for cell, code_of in zip(row, codes, strict=True)
            ]
            for row in cells
        ],
        dtype=np.float64,
    ).reshape(len(cells), len(tasks))
