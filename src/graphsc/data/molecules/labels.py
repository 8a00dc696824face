"""Labels of molecules: numbers or class names; an empty cell, `nan` or `NA` is a missing label.

A number with a relation before it, such as `>8.4`, is a censored label: the measurement ended at that limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.readers.csv import (
    EXACT_DIGITS,
    INFINITE,
    MISSING,
    NUMBER,
    RELATION,
    WHOLE,
    class_names,
    is_inexact,
)

MOST_CLASSES = 1_000
CENSORED = re.compile(rf"{RELATION}({NUMBER.pattern})")
Censored = Literal["drop", "keep"]  # a censored label is missing, or has its limit as value


@dataclass(frozen=True)
class Survey:
    """Number of rows of a source, and the class names of tasks whose labels are classes."""

    rows: int
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)


def survey(source: Source) -> Survey:
    """Read through a source once without parsing molecules.

    A label column without any number holds class names, which are numbered in sorted order. In any other
    column, a label that is not a number makes its row invalid (`problem_of`). A column of whole numbers that
    floats would merge (2^53 and 2^53 + 1) holds class names, too.
    """
    rows = 0
    words: list[set[str]] = [set() for _ in source.tasks]
    undecided = set(range(len(source.tasks)))
    inexact: set[int] = set()
    for row in source.rows():
        rows += 1
        if not source.tasks or row.problem:
            continue
        if max(map(len, row.labels)) > EXACT_DIGITS:
            inexact.update(task for task, cell in enumerate(row.labels) if is_inexact(cell))
        for task in list(undecided):
            cell = row.labels[task]
            if cell in MISSING or INFINITE.fullmatch(cell):
                continue
            if NUMBER.fullmatch(cell):
                undecided.discard(task)
                continue
            _add_word(words[task], cell, source, task)
    if rows == 0:
        raise DataError("there is no molecule in this source", where=source.where)
    classes = {source.tasks[k]: class_names(words[k]) for k in sorted(undecided) if words[k]}
    return Survey(rows, classes | _large_numbers(source, inexact - undecided))


def _large_numbers(source: Source, tasks: set[int]) -> dict[str, tuple[str, ...]]:
    """The class names of tasks among these in which every number is whole; another pass, rarely needed."""
    texts: dict[int, set[str]] = {task: set() for task in tasks}
    for row in source.rows() if tasks else ():
        for task in () if row.problem else list(texts):
            cell = row.labels[task]
            if not NUMBER.fullmatch(cell) or np.isinf(float(cell)):
                continue
            if not WHOLE.fullmatch(cell):
                del texts[task]  # a decimal point: these are measurements, which floats round
                continue
            _add_word(texts[task], cell, source, task)
    return {source.tasks[task]: class_names(found) for task, found in sorted(texts.items())}


def _add_word(words: set[str], word: str, source: Source, task: int) -> None:
    words.add(word)
    if len(words) > MOST_CLASSES:
        raise DataError(
            f"column {source.tasks[task]!r} holds more than {MOST_CLASSES:,} different words",
            where=source.where,
            hint="set label_columns without it",
        )


def problem_of(row: Row, tasks: Sequence[str], classes: Mapping[str, tuple[str, ...]]) -> str | None:
    """Why a row's labels are invalid, or None."""
    for task, cell in zip(tasks, row.labels, strict=True):
        if cell in MISSING:
            continue
        limit = CENSORED.fullmatch(cell)
        number = cell if NUMBER.fullmatch(cell) else limit[1] if limit else None
        if INFINITE.fullmatch(cell) if number is None else len(number) > 4 and np.isinf(float(number)):
            return f"label {cell[:40]!r} of {task!r} is infinite"
        if number is None and not _holds_words(classes.get(task)):
            return f"label {cell[:40]!r} of {task!r} is not a number"
    return None


def count_censored(
    rows: Iterable[Row], tasks: Sequence[str], classes: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[int, str]]:
    """The number of censored labels by task, and the first of them; tasks without any are left out."""
    counts: dict[str, tuple[int, str]] = {}
    for row in rows:
        for task, cell in zip(tasks, row.labels, strict=True):
            if task not in classes and CENSORED.fullmatch(cell):
                count, first = counts.get(task, (0, cell))
                counts[task] = count + 1, first
    return counts


def _holds_words(names: tuple[str, ...] | None) -> bool:
    return names is not None and not WHOLE.fullmatch(names[0])


def label_table(
    cells: Sequence[Sequence[str]],
    tasks: Sequence[str],
    classes: Mapping[str, tuple[str, ...]],
    censored: Censored = "drop",
) -> NDArray[np.float64]:
    """Labels of shape (rows, tasks), NaN where one is missing."""

    def value(cell: str, code_of: Mapping[str, int]) -> float:
        if cell in MISSING:
            return np.nan
        if code_of:
            return float(code_of[cell])
        if limit := CENSORED.fullmatch(cell):
            return float(limit[1]) if censored == "keep" else np.nan
        return float(cell)

    codes = [{name: code for code, name in enumerate(classes.get(task, ()))} for task in tasks]
    return np.array(
        [[value(cell, code_of) for cell, code_of in zip(row, codes, strict=True)] for row in cells],
        dtype=np.float64,
    ).reshape(len(cells), len(tasks))
