"""Tables 3 and 5: methods by data sets, ours with the published number under it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.core.serialization import check_stamp, stamp
from graphsc.core.sheet import Entry, Sheet
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import open_collection
from graphsc.data.statistics import describe
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.published import published, published_transfer
from graphsc.experiments.result import Result
from graphsc.experiments.table import cell_text, notes
from graphsc.experiments.transfer_plan import TransferTable
from graphsc.experiments.transfer_run import TransferStore
from graphsc.experiments.transfer_table import COLUMNS, Cells, cells_of, columns_of
from graphsc.experiments.transfer_table import notes as transfer_notes
from graphsc.finetuning.result import RULES
from graphsc.paper.gather import Found, missing, sets_of
from graphsc.paper.nested_search import searched
from graphsc.paper.recipe import SEARCH, Cell, Recipe, TransferRecipe, is_here

COMPARISON_TITLES = (
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
        record_heads=COMPARISON_TITLES,
        records=tuple(records),
    )


# Tables 1 and 2: how many graphs, nodes and edges, as we read them and as the paper prints them.


FOLDER = "statistics"  # beside the results; not named as a data set
STATISTICS_TITLES = (
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
    rows, records = [], []
    for name in names:
        title = title_of(name)
        category, *printed = _printed(recipe, title if title in recipe.printed else title.upper())
        measured = _measured(results, name, directed=recipe.directed)
        ours = ["", "", ""] if measured is None else [f"{measured[0]:,}", *(f"{v:.2f}" for v in measured[1:])]
        theirs = [_number(value) for value in printed]
        entries = [Entry(text, under) for text, under in zip(ours, theirs, strict=True)]
        rows.append((title.upper() if name.lower() not in NAMED else title, (Entry(str(category)), *entries)))
        exact = ("", "", "") if measured is None else (measured[0], *(round(v, 4) for v in measured[1:]))
        records.append((title, category, *exact, *printed))
    edges = "directed edges a graph" if recipe.directed else "edges a graph"
    absent = [row for (row, _), name in zip(rows, names, strict=True) if _measured(results, name) is None]
    left = f"Not measured yet, or not on this machine: {', '.join(absent)}." if absent else ""
    return Sheet(
        title=recipe.title,
        heads=("data", "category", "graphs", "nodes a graph", edges),
        rows=tuple(rows),
        notes=tuple(note for note in (left, *recipe.notes, "Printed numbers stand under ours.") if note),
        beside="printed",
        record_heads=STATISTICS_TITLES,
        records=tuple(records),
    )


def _printed(recipe: Recipe, title: str) -> list[object]:
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


# Table 4 out of stored results: pre-training by sets of molecules, the published number under ours.


TRANSFER_TITLES = (
    "table", "rule", "data", "pre-training", "mean", "over seeds", "seeds", "published",
    "published deviation",
)  # fmt: skip
AVERAGES = "Printed averages are over the eight data sets of the paper's table, and stand where ours has all."


def transfer_sheets(
    recipe: TransferRecipe, tables: Sequence[TransferTable], store: TransferStore
) -> list[Sheet]:
    """A sheet for each table and rule, with every row and column that was asked for."""
    sheets = []
    for table in sorted(tables, key=lambda table: table.rules == ("fit",)):  # fine-tuning is the paper's
        rows = table.rows()
        found = [(name, kept) for name, trial in rows if (kept := store.get(trial)) is not None]
        missing = len(rows) - len(found)
        left = [f"{missing} of {len(rows)} trials have not run yet."] if missing else []
        below = (*left, *transfer_notes(table, found), AVERAGES, *recipe.notes)
        for rule in table.rules:
            title = f"{recipe.title}: {table.title[0].lower()}{table.title[1:]}"
            if len(table.rules) > 1:
                title += f", the model {RULES[rule]}"
            last = rule == table.rules[-1]  # the notes are the same for all rules
            sheets.append(
                _transfer_sheet(recipe, table, rule, title, cells_of(found, rule), below if last else ())
            )
    return sheets


def _transfer_sheet(
    recipe: TransferRecipe, table: TransferTable, rule: str, title: str, cells: Cells, below: tuple[str, ...]
) -> Sheet:
    columns = columns_of(table.rows())
    best = {
        column: max((cell.mean for (_, head), cell in cells.items() if head == column), default=np.nan)
        for column in columns
    }
    rows, records = [], []
    for row in dict.fromkeys(name for name, _ in table.rows()):
        printed = published_transfer().get(row, {})
        entries = []
        for column in columns:
            cell, beside = cells.get((row, column)), printed.get(column)
            under = "" if beside is None else f"{beside[0]:.2f} ± {beside[1]:.2f}"
            if cell is None:
                entries.append(Entry("", under))
                numbers: tuple[object, ...] = ("", "", "")
            else:
                entries.append(Entry(cell.text, under, cell.mean == best[column]))
                seeds = len(cell.scores)
                over = round(float(np.std(cell.scores)), 4) if seeds > 1 else ""
                numbers = (round(cell.mean, 4), over, seeds)
            records.append((table.name, rule, column, row, *numbers, *(beside or ("", ""))))
        means = [cells[row, column].mean for column in columns if (row, column) in cells]
        average = f"{np.mean(means):.2f}" if len(means) == len(columns) else ""
        beside_all = row in recipe.printed and set(columns) >= set(COLUMNS)
        entries.append(Entry(average, f"{recipe.printed[row]:.2f}" if beside_all else ""))
        rows.append((row, tuple(entries)))
    return Sheet(
        title=title,
        heads=("pre-training", *columns, "average"),
        rows=tuple(rows),
        notes=below,
        record_heads=TRANSFER_TITLES,
        records=tuple(records),
    )
