"""Figure 5: accuracy against each of the three weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphsc.experiments.reproduce.expand import Cell
from graphsc.experiments.reproduce.gather import (
    Found,
    Series,
    missing,
    series,
    set_of,
    sets_of,
    table_of,
    words_of,
)
from graphsc.experiments.reproduce.recipe import Recipe
from graphsc.experiments.reproduce.sheet import Entry, Sheet
from graphsc.report.panels import Line, line_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCE = "reference"
SYMBOLS = {"lambda_masked": "λ₁ masked", "lambda_factor": "λ₂ factor", "lambda_absolute": "λ₃ absolute"}


def parts_of(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Weight and method of every line."""
    return list(dict.fromkeys((cell.part, cell.trial.method) for cell in cells if cell.part != REFERENCE))


def by_weight(
    cells: Sequence[Cell], found: Sequence[Found], data: str, part: str, method: str
) -> dict[float, Series]:
    """Accuracies by the value of the weight that the part varies."""
    here = [cell for cell in cells if (set_of(cell), cell.part, cell.trial.method) == (data, part, method)]
    return {
        value: series(
            found,
            lambda cell, value=value: (
                (set_of(cell), cell.part, cell.trial.method)  # type: ignore[misc]
                == (data, part, method)
                and cell.point[part] == value
            ),
        )
        for value in sorted({float(str(cell.point[part])) for cell in here})
    }


def reference_of(found: Sequence[Found], data: str) -> Series:
    return series(found, lambda cell: cell.part == REFERENCE and set_of(cell) == data)


def weights_sheet(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> Sheet:
    """A row a line, a column a value."""
    values = sorted({float(str(cell.point[cell.part])) for cell in cells if cell.part != REFERENCE})
    rows, records = [], []
    for data in sets_of(cells):
        for part, method in parts_of(cells):
            line = by_weight(cells, found, data, part, method)
            entries = tuple(Entry(line[value].text if value in line else "") for value in values)
            rows.append((f"{SYMBOLS.get(part, part)}, {method}, {data}", entries))
            records += [
                (data, method, part, value, round(one.mean, 4) if one.values else "",
                 round(one.deviation, 4) if len(one.values) > 1 else "", len(one.values))
                for value, one in line.items()
            ]  # fmt: skip
    notes = (
        missing(cells, found),
        "One weight is varied, the others are as the method has them.",
        *words_of(found),
        *recipe.notes,
    )
    return Sheet(
        title=recipe.title,
        heads=("weight", *(f"{value:g}" for value in values)),
        rows=tuple(rows),
        notes=tuple(note for note in notes if note),
        record_heads=("data", "method", "weight", "value", "accuracy", "deviation", "seeds"),
        records=tuple(records),
    )


def weights_figure(cells: Sequence[Cell], found: Sequence[Found]) -> Figure:
    """A panel a data set, a line a weight; the untrained encoder is a dashed line."""
    several = len({method for _, method in parts_of(cells)}) > 1
    panels: dict[str, dict[str, Line]] = {}
    references: dict[str, tuple[str, float]] = {}
    for data in sets_of(cells):
        lines = {}
        for part, method in parts_of(cells):
            line = by_weight(cells, found, data, part, method)
            name = SYMBOLS.get(part, part) + (f", {method}" if several else "")
            lines[name] = Line(np.array(list(line)), table_of(list(line.values())))
        panels[data] = lines
        beside = reference_of(found, data)
        if beside.values:
            references[data] = ("untrained", beside.mean)
    return line_panels(panels, x_label="weight", log=True, references=references)
