"""Stored results lined up with the cells they belong to; what has not run is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.core.tables import Table
from graphsc.experiments.result import Result, ResultStore
from graphsc.paper.recipe import PlannedTrial


@dataclass(frozen=True)
class Found:
    """A cell that has run."""

    cell: PlannedTrial
    result: Result


@dataclass(frozen=True)
class Sheet:
    """A table for people, and the same numbers one per line for machines."""

    table: Table
    records: Table


@dataclass(frozen=True)
class Series:
    """Accuracies in per cent over seeds: their mean and deviation (ddof 0)."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def deviation(self) -> float:
        return float(np.std(self.values)) if self.values else float("nan")

    @property
    def text(self) -> str:
        """`75.31 ± 0.24`; empty where nothing has run."""
        if not self.values:
            return ""
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if len(self.values) > 1 else "")


def gather(cells: Iterable[PlannedTrial], store: ResultStore) -> list[Found]:
    """Every cell with a stored result."""
    return [Found(cell, result) for cell in cells if (result := store.get(cell.trial)) is not None]


def missing(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> str:
    """How much has not run, as a sentence; empty where all has."""
    keys = {cell.trial.key() for cell in cells}
    left = len(keys) - len({one.cell.trial.key() for one in found})
    return f"{left} of {len(keys)} trials have not run yet." if left else ""


def series(found: Iterable[Found], wanted: Callable[[PlannedTrial], bool]) -> Series:
    """Accuracies of the cells that are wanted, in the order of seeds."""
    chosen = sorted((one for one in found if wanted(one.cell)), key=lambda one: one.cell.trial.seed)
    return Series(tuple(100 * one.result.accuracy for one in chosen))


def table_of(values: Sequence[Series]) -> NDArray[np.float64]:
    """Seeds x points, nan where a seed has not run."""
    seeds = max((len(one.values) for one in values), default=0)
    table = np.full((max(seeds, 1), len(values)), np.nan)
    for column, one in enumerate(values):
        table[: len(one.values), column] = one.values
    return table


def on_common_seeds(found: Sequence[Found]) -> list[Found]:
    """Of each data set only the seeds that every point has that has run at all.

    A point with five seeds and one with a single seed differ by their folds as well.
    """
    seeds: dict[str, dict[object, set[int]]] = {}
    for one in found:
        point = (one.cell.part, one.cell.trial.method, repr(sorted(one.cell.point.items())))
        seeds.setdefault(set_of(one.cell), {}).setdefault(point, set()).add(one.cell.trial.seed)
    common = {data: set.intersection(*points.values()) for data, points in seeds.items()}
    return [one for one in found if one.cell.trial.seed in common[set_of(one.cell)]]


def sets_of(cells: Iterable[PlannedTrial]) -> list[str]:
    """Data sets by the names that tables have, features beside them where they are not the usual ones."""
    return list(dict.fromkeys(set_of(cell) for cell in cells))


def set_of(cell: PlannedTrial) -> str:
    trial = cell.trial
    return trial.data_name if trial.features == "auto" else f"{trial.data_name} ({trial.features})"


def words_of(found: Sequence[Found]) -> list[str]:
    """The protocols behind the numbers, and what a deviation is of."""
    words = list(dict.fromkeys(one.result.words for one in found))
    seeds = {one.cell.trial.seed for one in found}
    if len(seeds) > 1:
        words.append("± and error bars are the deviation of the seeds' means; a seed is a whole repetition.")
    elif seeds:
        words.append("One seed: no deviation over seeds is known.")
    return words
