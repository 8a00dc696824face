"""Tables 1 to 5 of the paper from stored results, with the paper's numbers below ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import read_json, write_json
from graphsc.core.serialization import check_stamp, stamp
from graphsc.core.tables import Cell, Table, Value
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import open_collection
from graphsc.data.statistics import describe
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.plan import TransferTable
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.tables import (
    comparison_notes,
    comparison_table,
    records_table,
    transfer_records,
    transfer_tables,
)
from graphsc.paper.gather import RecipeResults, Sheet
from graphsc.paper.nested_search import DOUBLY_LEAKY, compare_maxima, search_results
from graphsc.paper.recipe import SEARCH, Recipe, TransferRecipe, is_available

STATISTICS = Path("statistics", "sets")  # below the folder of results
AVERAGES = (
    "The paper's averages are over the eight data sets of its table, and are shown where ours has all eight."
)


# Tables 3 and 5: methods by data sets.


def compare_fixed_settings(results: RecipeResults) -> Comparison:
    """Methods by data sets without the nested search, with every row and column of the recipe."""
    fixed = results.filtered(lambda planned: planned.part != SEARCH)
    return _comparison(fixed, [completed.result for completed in fixed.completed])


def comparison_sheets(results: RecipeResults) -> list[Sheet]:
    """The table with fixed settings, and with the search those of its two ways of choosing."""
    fixed = results.filtered(lambda planned: planned.part != SEARCH)
    candidates = results.filtered(lambda planned: planned.part == SEARCH)
    sheets = [_comparison_sheet(fixed, compare_fixed_settings(fixed), "fixed settings")]
    if candidates.planned:
        nested = _comparison(candidates, search_results(candidates))
        leaky = compare_maxima(candidates)
        sheets.append(_comparison_sheet(candidates, nested, "settings chosen inside each outer fold"))
        sheets.append(_comparison_sheet(candidates, leaky, DOUBLY_LEAKY))
    return sheets


def _comparison(planned: RecipeResults, results: Sequence[Result]) -> Comparison:
    control = planned.recipe.control
    return compare_results(results, methods=planned.methods, columns=planned.columns, control=control)


def _comparison_sheet(results: RecipeResults, comparison: Comparison, settings: str) -> Sheet:
    recipe, last, last_title = results.recipe, comparison.ranks, "average rank"
    if recipe.last == "mean":
        means, last_title = comparison.means(), "mean"
        common = ~np.isnan(means).any(axis=0)  # data sets that every method has
        values = means[:, common].mean(axis=1).tolist() if common.any() else []
        last = dict(zip(comparison.methods, values, strict=False))
    notes = [
        *results.missing_notes,
        *(comparison_notes(comparison) if comparison.cells else []),
        f"The paper's {last_title} is over all data sets of its table.",
        *recipe.notes,
    ]
    table = comparison_table(
        comparison, title=f"{recipe.title}: {settings}", last=last, last_title=last_title,
        last_published=recipe.printed, published_everywhere=True, notes=[note for note in notes if note],
    )  # fmt: skip
    return Sheet(table, records_table(comparison, exact=True, extra={"settings": settings}))


# Tables 1 and 2: numbers of graphs, nodes and edges, measured and as printed.


def measure(names: Sequence[str], results: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Measure the data sets that are on this machine and have no stored statistics, and store those."""
    for name in names:
        path = _statistics_path(results, name)
        if path.exists() or name.lower() not in NAMED or not is_available(name):
            continue
        statistics = describe(open_collection(name))
        facts = ("name", "graphs", "nodes_mean", "edges_mean", "undirected", "self_loops", "content_hash")
        stored = {**stamp("statistics"), **{fact: getattr(statistics, fact) for fact in facts}}
        write_json(path, stored, indent=1)
        say(f"{statistics.name}: {statistics.graphs:,} graphs measured")


def statistics_sheet(recipe: Recipe, names: Sequence[str], results: Path) -> Sheet:
    """A row per data set, measured above printed; empty where the data set has not been measured."""
    rows: list[tuple[Value, ...]] = []
    records: list[tuple[Value, ...]] = []
    missing = []
    for name in names:
        title = _title(name)
        shown = title if name.lower() in NAMED else title.upper()
        entry = recipe.printed.get(title, recipe.printed.get(title.upper()))
        category, *printed = entry if isinstance(entry, list) and len(entry) == 4 else [""] * 4
        measured = _measured(results, name, directed=recipe.directed)
        if measured is None:
            missing.append(shown)
        values = [] if measured is None else [_number(value) for value in measured]
        cells = [Cell(text, _number(p)) for text, p in zip(values or [""] * 3, printed, strict=True)]
        rows.append((shown, str(category), *cells))
        exact = ("", "", "") if measured is None else (measured[0], *(round(v, 4) for v in measured[1:]))
        records.append((title, category, *exact, *printed))
    left = f"Not measured yet, or not on this machine: {', '.join(missing)}." if missing else ""
    notes = tuple(note for note in (left, *recipe.notes, "The paper's numbers are below ours.") if note)
    edges = "directed edges per graph" if recipe.directed else "edges per graph"
    table = Table(
        ("data", "category", "graphs", "nodes per graph", edges), tuple(rows), recipe.title, notes,
        second_line="printed",
    )  # fmt: skip
    columns = (
        "data", "category", "graphs", "nodes", "edges", "printed graphs", "printed nodes", "printed edges",
    )  # fmt: skip
    return Sheet(table, Table(columns, tuple(records)))


def _title(name: str) -> str:
    return NAMED[name.lower()].title if name.lower() in NAMED else name


def _number(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _statistics_path(results: Path, name: str) -> Path:
    return results / STATISTICS / f"{_title(name)}.json"


def _measured(results: Path, name: str, *, directed: bool) -> tuple[int, float, float] | None:
    """Graphs, nodes per graph and edges per graph; `directed` counts both directions of an edge."""
    path = _statistics_path(results, name)
    if not path.exists():
        return None
    stored: Any = read_json(path, "statistics")
    try:
        header = {key: str(stored.get(key, "")) for key in ("format", "format_version")}
        check_stamp("statistics", header, str(path))
        graphs, edges = int(stored["graphs"]), float(stored["edges_mean"])
        if directed and stored["undirected"]:
            edges = 2 * edges - stored["self_loops"] / graphs
        return graphs, float(stored["nodes_mean"]), edges
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise DamagedFileError("statistics file is damaged", where=str(path)) from error


# Table 4: pre-training methods by molecule data sets.


def transfer_sheets(
    recipe: TransferRecipe, tables: Sequence[TransferTable], store: ResultStore
) -> list[Sheet]:
    """A sheet per table and rule of choosing a model, with every requested row and column."""
    sheets = []
    for plan in sorted(tables, key=lambda plan: plan.rules == ("fit",)):  # fine-tuning first, as in the paper
        records = transfer_records(plan, store)
        for table in transfer_tables(plan, store, recipe.printed):
            title = f"{recipe.title}: {table.title[0].lower()}{table.title[1:]}"
            printed = any(row in recipe.printed for row, _ in plan.rows())
            notes = (*table.notes, *([AVERAGES] if printed else []), *recipe.notes) if table.notes else ()
            sheets.append(Sheet(replace(table, title=title, notes=notes), replace(records, rows=())))
        sheets[-1] = replace(sheets[-1], records=records)  # the numbers of all rules
    return sheets
