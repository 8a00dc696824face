"""Tables 3 and 5: methods by data sets, ours with the published number under it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.published import published
from graphsc.experiments.reproduce.expand import SEARCH, Cell
from graphsc.experiments.reproduce.gather import Found, missing, sets_of
from graphsc.experiments.reproduce.nested_search import searched
from graphsc.experiments.reproduce.recipe import Recipe
from graphsc.experiments.reproduce.sheet import Entry, Sheet
from graphsc.experiments.result import Result
from graphsc.experiments.table import cell_text, notes

HEADS = (
    "settings", "data", "method", "mean", "over seeds", "over folds", "seeds", "difference to control", "p",
    "published", "published deviation",
)  # fmt: skip


def compared(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> Comparison:
    """The fixed settings side by side, with every row and column of the recipe."""
    plain = [cell for cell in cells if cell.part != SEARCH]
    return _lined_up(recipe, plain, [one.result for one in found if one.cell.part != SEARCH])


def comparison_sheets(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> list[Sheet]:
    """The table with fixed settings, and the one of the nested search where that was asked for."""
    plain = [cell for cell in cells if cell.part != SEARCH]
    kept = [one for one in found if one.cell.part != SEARCH]
    sheets = [_sheet(recipe, compared(recipe, cells, found), "fixed settings", missing(plain, kept))]
    candidates = [cell for cell in cells if cell.part == SEARCH]
    if candidates:
        chosen = searched(cells, found)
        # What has nothing to search stands as it is, so that ranks are among all.
        methods = {cell.trial.method for cell in candidates}
        rest = [one.result for one in kept if one.cell.trial.method not in methods]
        left = missing(candidates, [one for one in found if one.cell.part == SEARCH])
        table = _lined_up(recipe, plain, [*rest, *chosen])
        sheets.append(_sheet(recipe, table, "settings chosen inside each outer fold", left))
    return sheets


def _lined_up(recipe: Recipe, cells: Sequence[Cell], results: Sequence[Result]) -> Comparison:
    methods = list(dict.fromkeys(cell.trial.method for cell in cells))
    return compare_results(results, methods=methods, columns=sets_of(cells), control=recipe.control)


def last_column(table: Comparison, kind: str) -> dict[str, float]:
    """The average rank, or the mean over the data sets that every method has."""
    if kind == "rank":
        return table.ranks
    means = table.means()
    common = ~np.isnan(means).any(axis=0)
    if not common.any():
        return {}
    return dict(zip(table.methods, means[:, common].mean(axis=1).tolist(), strict=True))


def _sheet(recipe: Recipe, table: Comparison, settings: str, left: str) -> Sheet:
    last = last_column(table, recipe.last)
    name = "average rank" if recipe.last == "rank" else "mean"
    best = {
        column: max((c.summary.mean for (_, head), c in table.cells.items() if head == column), default=0.0)
        for column in table.columns
    }
    rows, records = [], []
    for method in table.methods:
        entries = []
        for column in table.columns:
            cell = table.cells.get((method, column))
            beside = published().get(method, {}).get(column.partition(" (")[0])
            under = "" if beside is None else f"{beside[0]:.2f} ± {beside[1]:.2f}"
            if cell is None:
                entries.append(Entry("", under))
                summary: tuple[object, ...] = ("",) * 6
            else:
                entries.append(Entry(cell_text(cell), under, cell.summary.mean == best[column]))
                seeds = cell.summary.seeds
                tested = cell.difference is not None and not math.isnan(cell.p_value or 0.0)
                summary = (
                    round(cell.summary.mean, 4), round(cell.summary.over_seeds_ddof0, 4) if seeds > 1 else "",
                    round(cell.summary.over_folds_ddof0, 4), seeds,
                    round(cell.difference or 0.0, 4) if tested else "",
                    round(cell.p_value or 0.0, 4) if tested else "",
                )  # fmt: skip
            records.append((settings, column, method, *summary, *(beside or ("", ""))))
        printed = recipe.printed.get(method)
        value = last.get(method, math.nan)
        entries.append(
            Entry("" if math.isnan(value) else f"{value:.2f}", "" if printed is None else f"{printed}")
        )
        rows.append((method, tuple(entries)))
    over = f"The printed {name} is over the data sets of the paper's table, whichever ours is over."
    below = [left, *(notes(table) if table.cells else []), over, *recipe.notes]
    return Sheet(
        title=f"{recipe.title}: {settings}",
        heads=("method", *table.columns, name),
        rows=tuple(rows),
        notes=tuple(note for note in below if note),
        record_heads=HEADS,
        records=tuple(records),
    )
