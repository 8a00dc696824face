"""Stored results of a recipe's trials. Trials without a result are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from graphsc.core.tables import Table
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.tables import missing_notes
from graphsc.paper.recipe import PlannedTrial, Recipe, Request, expand

Position = TypeVar("Position", float, tuple[float, float])


@dataclass(frozen=True)
class CompletedTrial:
    """A planned trial that has a stored result."""

    planned: PlannedTrial
    result: Result


@dataclass(frozen=True)
class Series:
    """Accuracies in per cent, one per seed."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def deviation(self) -> float:
        """Deviation over seeds (ddof 1); nan for fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else float("nan")

    @property
    def text(self) -> str:
        """`75.31 ± 0.24`; empty where nothing has run."""
        if not self.values:
            return ""
        return f"{self.mean:.2f}" + (f" ± {self.deviation:.2f}" if len(self.values) > 1 else "")


@dataclass(frozen=True)
class RecipeResults:
    """A recipe, its planned trials, and those of them that have a stored result."""

    recipe: Recipe
    planned: Sequence[PlannedTrial]
    completed: Sequence[CompletedTrial]

    @property
    def columns(self) -> list[str]:
        """Titles of the data sets."""
        return list(dict.fromkeys(planned.column for planned in self.planned))

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Part and method of every line of a figure."""
        return list(dict.fromkeys((planned.part, planned.trial.method) for planned in self.planned))

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(planned.trial.method for planned in self.planned))

    @property
    def missing_notes(self) -> list[str]:
        """Sentences that name what has no result; empty where nothing is missing."""
        keys = [planned.trial.key() for planned in self.planned]
        stored = {completed.planned.trial.key() for completed in self.completed}
        missing = len(set(keys) - stored)
        if not missing:
            return []
        several = len(dict.fromkeys(part for part, _ in self.lines)) > 1
        places = [
            (f"{p.trial.method}, {p.part}" if several else p.trial.method, p.column) for p in self.planned
        ]
        count = f"{missing} of {len(set(keys))} trials have not run yet."
        return [count, *missing_notes(places, [key in stored for key in keys], seeds=False)]

    @property
    def protocol_notes(self) -> list[str]:
        """The protocols behind the numbers, and the meaning of deviations."""
        notes = list(dict.fromkeys(completed.result.words for completed in self.completed))
        seeds = {completed.planned.trial.seed for completed in self.completed}
        if len(seeds) > 1:
            notes.append(
                "± and error bars are the deviation of the seeds' means; a seed is a whole repetition."
            )
        elif seeds:
            notes.append("One seed: no deviation over seeds is known.")
        return notes

    def filtered(self, keep: Callable[[PlannedTrial], bool]) -> RecipeResults:
        """Only the trials that `keep` accepts."""
        return replace(
            self,
            planned=[planned for planned in self.planned if keep(planned)],
            completed=[completed for completed in self.completed if keep(completed.planned)],
        )

    def line(self, column: str, method: str, part: str | None = None) -> RecipeResults:
        """Only the trials of a method on a data set, of one part or of all."""
        return self.filtered(
            lambda p: (p.column, p.trial.method) == (column, method) and part in (None, p.part)
        )

    def on_common_seeds(self) -> RecipeResults:
        """Of each data set only the results of seeds that all its points have, among points that have run.

        Folds differ between seeds, so points with other seeds would differ by their folds as well.
        """
        seeds: dict[str, dict[object, set[int]]] = {}
        for planned in (completed.planned for completed in self.completed):
            point = (planned.part, planned.trial.method, repr(sorted(planned.point.items())))
            seeds.setdefault(planned.column, {}).setdefault(point, set()).add(planned.trial.seed)
        common = {column: set.intersection(*points.values()) for column, points in seeds.items()}
        completed = [c for c in self.completed if c.planned.trial.seed in common[c.planned.column]]
        return replace(self, completed=completed)

    def series(self) -> Series:
        """Accuracies of all results, in the order of seeds."""
        ordered = sorted(self.completed, key=lambda completed: completed.planned.trial.seed)
        return Series(tuple(100 * completed.result.accuracy for completed in ordered))

    def series_by(self, position: Callable[[PlannedTrial], Position]) -> dict[Position, Series]:
        """Accuracies by the position of a trial, sorted; empty series where nothing has run."""

        def at(x: Position) -> Series:
            return self.filtered(lambda planned: position(planned) == x).series()

        return {x: at(x) for x in sorted({position(planned) for planned in self.planned})}


def gather(recipe: Recipe, request: Request, store: ResultStore) -> RecipeResults:
    """The requested trials of a recipe, with the results that are stored."""
    planned = expand(recipe, request)
    completed = [CompletedTrial(p, result) for p in planned if (result := store.get(p.trial)) is not None]
    return RecipeResults(recipe, planned, completed)


@dataclass(frozen=True)
class Sheet:
    """A table for people, and the same numbers in long form for programs."""

    table: Table
    records: Table
