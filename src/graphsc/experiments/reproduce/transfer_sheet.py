"""Table 4 out of stored results: pre-training by sets of molecules, the published number under ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphsc.experiments.published import published_transfer
from graphsc.experiments.reproduce.sheet import Entry, Sheet
from graphsc.experiments.reproduce.transfer_recipe import TransferRecipe
from graphsc.experiments.transfer_plan import TransferTable
from graphsc.experiments.transfer_run import TransferStore
from graphsc.experiments.transfer_table import COLUMNS, Cells, cells_of, columns_of, notes
from graphsc.transfer.result import RULES

HEADS = (
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
        below = (*left, *notes(table, found), AVERAGES, *recipe.notes)
        for rule in table.rules:
            title = f"{recipe.title}: {table.title[0].lower()}{table.title[1:]}"
            if len(table.rules) > 1:
                title += f", the model {RULES[rule]}"
            last = rule == table.rules[-1]  # the notes are the same for all rules
            sheets.append(_sheet(recipe, table, rule, title, cells_of(found, rule), below if last else ()))
    return sheets


def _sheet(
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
        record_heads=HEADS,
        records=tuple(records),
    )
