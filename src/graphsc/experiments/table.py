"""A comparison as text: Markdown for pages, plain cells for a terminal, CSV for machines."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

import numpy as np

from graphsc.core.tables import safe_cell
from graphsc.evaluation.significance import average_ranks
from graphsc.experiments.comparison import Cell, Comparison, column_name
from graphsc.experiments.result import Result

LEVEL = 0.05


def cell_text(cell: Cell) -> str:
    """`87.2 ± 1.3`: mean and deviation over seeds; a star where it differs from the control."""
    text = f"{cell.summary.mean:.2f}"
    if cell.summary.seeds > 1:
        text += f" ± {cell.summary.over_seeds_ddof0:.2f}"
    return text + star(cell) + (" LEAKY" if cell.leaky else "")


def star(cell: Cell) -> str:
    """`*` for significantly above the control, `†` for significantly below, nothing otherwise."""
    if cell.p_value is None or math.isnan(cell.p_value) or cell.p_value >= LEVEL:
        return ""
    return " *" if (cell.difference or 0) > 0 else " †"


def to_markdown(table: Comparison, *, published: bool = True) -> str:
    """A table a page can hold, the published number in grey below ours, and the rule of every number."""
    heads = ["method", *table.columns, "average rank"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' + ' ---: |' * (len(heads) - 1)}"]
    best = {column: _best(table, column) for column in table.columns}
    for method in table.methods:
        cells = [method]
        for column in table.columns:
            cell = table.cells.get((method, column))
            text = "" if cell is None else cell_text(cell).replace("*", r"\*")
            if cell is not None and cell.summary.mean == best[column]:
                text = f"**{text}**"
            if published and cell is not None and cell.published is not None:
                text += (
                    f'<br><span class="published">{cell.published[0]:.2f} ± {cell.published[1]:.2f}</span>'
                )
            cells.append(text)
        rank = table.ranks.get(method, math.nan)
        cells.append("" if math.isnan(rank) else f"{rank:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\n" + "\n\n".join(notes(table, published=published)) + "\n"


def inner_markdown(results: Sequence[Result], labels: Sequence[str], rows: Sequence[str]) -> str:
    """Mean accuracy on inner folds, which hold training graphs only, with its average rank."""
    columns = list(dict.fromkeys(column_name(result) for result in results))
    means = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for k, column in enumerate(columns):
            found = [
                result.inner_accuracy
                for label, result in zip(labels, results, strict=True)
                if label == row and column_name(result) == column
            ]
            means[i, k] = 100 * np.mean(found) if found else np.nan
    ranks = average_ranks(means)
    lines = [
        f"| setting | {' | '.join(columns)} | mean | average rank |",
        "| --- |" + " ---: |" * (len(columns) + 2),
    ]
    for row, values, rank in zip(rows, means, ranks, strict=True):
        cells = ["" if np.isnan(value) else f"{value:.2f}" for value in (*values, values.mean(), rank)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    words = "Accuracy in per cent on inner folds; no outer test fold is looked at."
    return "\n".join(lines) + f"\n\n{words}\n"


def _best(table: Comparison, column: str) -> float:
    means = [cell.summary.mean for (_, head), cell in table.cells.items() if head == column]
    return max(means, default=math.nan)


def notes(table: Comparison, *, published: bool = True) -> list[str]:
    """What the reader must know to read the table, in whole sentences."""
    found = [*table.words]
    seeds = sorted({cell.summary.seeds for cell in table.cells.values()})
    *few, most = map(str, seeds)
    counts = f"{', '.join(few)} or {most}" if few else most
    found.append(
        f"Mean accuracy in per cent over {counts} seeds ± the deviation of the seeds' means; a seed is a "
        "whole repetition: initialisation, training and folds."
        if seeds != [1]
        else "Accuracy in per cent of one seed; no deviation over seeds is known."
    )
    spreads = [cell.over_fold_seeds for cell in table.cells.values() if cell.over_fold_seeds is not None]
    if spreads:
        found.append(
            f"Re-splitting one seed's embeddings moves its accuracy by {min(spreads):.2f} to "
            f"{max(spreads):.2f} (deviation over fold seeds); that is not a deviation over runs."
        )
    common = int((~np.isnan(table.means()).any(axis=0)).sum())
    if table.ranks and common < len(table.columns):
        found.append(f"Average ranks are over the data sets that every method has: {common}.")
    if table.control in table.methods:
        found.append(
            f"\\* significantly above *{table.control}*, † significantly below (p < {LEVEL:g}: corrected "
            "resampled t-test over common folds, Holm's correction over the methods of a column); no mark: "
            "within noise."
        )
    if published and any(cell.published for cell in table.cells.values()):
        found.append(
            'Published numbers (<span class="published">grey</span>) were made with other features, epochs '
            "and selection rules."
        )
    if table.leaky:
        found.insert(0, "**LEAKY numbers chose their epoch by test accuracy and are not results.**")
    return found


def to_rows(table: Comparison) -> tuple[list[str], list[list[object]]]:
    """Header and rows, one a method and data set, with both deviations and the test."""
    heads = [
        "data",
        "method",
        "mean",
        "over seeds",
        "over folds",
        "seeds",
        "against untrained",
        "p",
        "published",
    ]
    rows: list[list[object]] = []
    for column in table.columns:
        for method in table.methods:
            cell = table.cells.get((method, column))
            if cell is None:
                continue
            summary = cell.summary
            tested = cell.difference is not None and cell.p_value is not None
            rows.append(
                [
                    column,
                    method + (" LEAKY" if cell.leaky else ""),
                    f"{summary.mean:.2f}",
                    f"{summary.over_seeds_ddof0:.2f}" if summary.seeds > 1 else "-",
                    f"{summary.over_folds_ddof0:.2f}",
                    summary.seeds,
                    f"{cell.difference:+.2f}" if tested else "-",
                    f"{cell.p_value:.3f}" if tested and cell.p_value == cell.p_value else "-",
                    f"{cell.published[0]:.2f}" if cell.published else "-",
                ]
            )
    return heads, rows


def to_csv(table: Comparison) -> str:
    """The same rows for a spreadsheet."""
    heads, rows = to_rows(table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    # Names come from outside; the other cells are numbers of ours, whose signs are signs.
    writer.writerows([*map(safe_cell, row[:2]), *row[2:]] for row in rows)
    return text.getvalue()
