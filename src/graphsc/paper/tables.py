"""Tables 1 to 5 of the paper from stored results, with published numbers below ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
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
from graphsc.paper.gather import Found, Sheet, missing, sets_of
from graphsc.paper.nested_search import searched
from graphsc.paper.recipe import SEARCH, PlannedTrial, Recipe, TransferRecipe, is_here

# Tables 3 and 5: methods by data sets.


def compared(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Comparison:
    """The fixed settings side by side, with every row and column of the recipe."""
    plain = [cell for cell in cells if cell.part != SEARCH]
    return _lined_up(recipe, plain, [one.result for one in found if one.cell.part != SEARCH])


def comparison_sheets(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> list[Sheet]:
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


def _lined_up(recipe: Recipe, cells: Sequence[PlannedTrial], results: Sequence[Result]) -> Comparison:
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


def _sheet(recipe: Recipe, comparison: Comparison, settings: str, left: str) -> Sheet:
    name = "average rank" if recipe.last == "rank" else "mean"
    over = f"The printed {name} is over the data sets of the paper's table, whichever ours is over."
    notes = [left, *(comparison_notes(comparison) if comparison.cells else []), over, *recipe.notes]
    table = comparison_table(
        comparison, title=f"{recipe.title}: {settings}", last=last_column(comparison, recipe.last),
        last_title=name, last_published=recipe.printed, published_everywhere=True,
        notes=[note for note in notes if note],
    )  # fmt: skip
    return Sheet(table, records_table(comparison, exact=True, extra={"settings": settings}))


# Tables 1 and 2: how many graphs, nodes and edges, as we read them and as the paper prints them.


FOLDER = "statistics"  # beside the results; not named as a data set
STATISTICS_COLUMNS = (
    "data", "category", "graphs", "nodes", "edges", "printed graphs", "printed nodes", "printed edges",
)  # fmt: skip
Measured = tuple[int, float, float]  # graphs, nodes a graph, edges a graph


def title_of(name: str) -> str:
    """What tables call a data set."""
    return NAMED[name.lower()].title if name.lower() in NAMED else name


def measure(names: Sequence[str], results: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Read the sets that are on this machine and not measured yet, and keep what they hold."""
    for name in names:
        path = _path(results, name)
        if path.exists() or name.lower() not in NAMED or not is_here(name):
            continue
        found = describe(open_collection(name))
        kept = {
            **stamp("statistics"), "name": found.name, "graphs": found.graphs, "nodes_mean": found.nodes_mean,
            "edges_mean": found.edges_mean, "undirected": found.undirected, "self_loops": found.self_loops,
            "content_hash": found.content_hash,
        }  # fmt: skip
        write_atomic(path, json.dumps(kept, indent=1) + "\n")
        say(f"{found.name}: {found.graphs:,} graphs measured")


def statistics_sheet(recipe: Recipe, names: Sequence[str], results: Path) -> Sheet:
    """Measured above printed, a row a data set; empty where the set is not at hand."""
    rows: list[tuple[Value, ...]] = []
    records: list[tuple[Value, ...]] = []
    for name in names:
        title = title_of(name)
        category, *printed = _printed(recipe, title if title in recipe.printed else title.upper())
        measured = _measured(results, name, directed=recipe.directed)
        ours = ["", "", ""] if measured is None else [f"{measured[0]:,}", *(f"{v:.2f}" for v in measured[1:])]
        theirs = [_number(value) for value in printed]
        entries = [Cell(text, under) for text, under in zip(ours, theirs, strict=True)]
        rows.append((title.upper() if name.lower() not in NAMED else title, str(category), *entries))
        exact = ("", "", "") if measured is None else (measured[0], *(round(v, 4) for v in measured[1:]))
        records.append((title, category, *exact, *printed))
    edges = "directed edges a graph" if recipe.directed else "edges a graph"
    absent = [str(row[0]) for row, name in zip(rows, names, strict=True) if _measured(results, name) is None]
    left = f"Not measured yet, or not on this machine: {', '.join(absent)}." if absent else ""
    notes = tuple(note for note in (left, *recipe.notes, "Printed numbers stand under ours.") if note)
    table = Table(
        ("data", "category", "graphs", "nodes a graph", edges), tuple(rows), recipe.title, notes,
        second_line="printed",
    )  # fmt: skip
    return Sheet(table, Table(STATISTICS_COLUMNS, tuple(records)))


def _printed(recipe: Recipe, title: str) -> list[Value]:
    found = recipe.printed.get(title, ["", "", "", ""])
    return list(found) if isinstance(found, list) and len(found) == 4 else ["", "", "", ""]


def _number(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _path(results: Path, name: str) -> Path:
    return results / FOLDER / "sets" / f"{title_of(name)}.json"


def _measured(results: Path, name: str, *, directed: bool = False) -> Measured | None:
    """What is stored of a set; both directions of an edge count where the table has it so."""
    path = _path(results, name)
    try:
        found = json.loads(path.read_bytes())
        check_stamp(
            "statistics", {key: str(found.get(key, "")) for key in ("format", "format_version")}, str(path)
        )
        loops = found["self_loops"] / found["graphs"]
        edges = found["edges_mean"]
        if directed and found["undirected"]:
            edges = 2 * (edges - loops) + loops
        return int(found["graphs"]), float(found["nodes_mean"]), float(edges)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotFoundError(f"cannot read statistics: {error.strerror}", where=str(path)) from error
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise DamagedFileError("statistics file is damaged", where=str(path)) from error


# Table 4: pre-training methods by molecule data sets.

AVERAGES = "Printed averages are over the eight data sets of the paper's table, and stand where ours has all."


def transfer_sheets(
    recipe: TransferRecipe, tables: Sequence[TransferTable], store: ResultStore
) -> list[Sheet]:
    """A sheet for each table and rule, with every row and column that was asked for."""
    sheets = []
    for plan in sorted(tables, key=lambda plan: plan.rules == ("fit",)):  # fine-tuning is the paper's
        for position, table in enumerate(transfer_tables(plan, store, recipe.printed), start=1):
            title = f"{recipe.title}: {table.title[0].lower()}{table.title[1:]}"
            last = position == len(plan.rules)
            notes = (*table.notes, AVERAGES, *recipe.notes) if last else ()
            # One sheet has the numbers of all rules.
            records = transfer_records(plan, store)
            shown = replace(table, title=title, notes=notes)
            sheets.append(Sheet(shown, records if last else replace(records, rows=())))
    return sheets
