"""Figure 1: accuracy against the number of negatives."""

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

BATCH, SAMPLED = "batch", "sampled"
SIZE, NEGATIVES = "training.batch_size", "negatives"
OURS = "graphsc"
SAMPLED_FROM = 128  # graphs in a batch from which negatives are drawn


def negatives_of(cell: Cell) -> int:
    """K: as sampled, or every other graph of the batch."""
    found = cell.point.get(NEGATIVES)
    return int(str(found)) if found is not None else int(str(cell.point[SIZE])) - 1


def by_negatives(
    cells: Sequence[Cell], found: Sequence[Found], data: str, part: str, method: str
) -> dict[int, Series]:
    """Accuracies by K; empty series where nothing has run."""
    places = sorted(
        {
            negatives_of(cell)
            for cell in cells
            if (set_of(cell), cell.part, cell.trial.method) == (data, part, method)
        }
    )
    return {
        place: series(
            found,
            lambda cell, place=place: (
                (set_of(cell), cell.part, cell.trial.method)  # type: ignore[misc]
                == (data, part, method)
                and negatives_of(cell) == place
            ),
        )
        for place in places
    }


def lines_of(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Part and method of every line."""
    return list(dict.fromkeys((cell.part, cell.trial.method) for cell in cells))


def negatives_sheet(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> Sheet:
    """A row a line, a column a number of negatives."""
    places = sorted({negatives_of(cell) for cell in cells})
    rows, records = [], []
    for data in sets_of(cells):
        for part, method in lines_of(cells):
            values = by_negatives(cells, found, data, part, method)
            entries = [Entry(values[place].text if place in values else "") for place in places]
            rows.append((f"{method}, {_said(part)}, {data}", tuple(entries)))
            records += [
                (data, part, method, place, round(one.mean, 4) if one.values else "",
                 round(one.deviation, 4) if len(one.values) > 1 else "", len(one.values))
                for place, one in values.items()
            ]  # fmt: skip
    return Sheet(
        title=recipe.title,
        heads=("line", *(f"K = {place}" for place in places)),
        rows=tuple(rows),
        notes=tuple(
            note
            for note in (
                missing(cells, found),
                "K is the number of negatives of GraphCL. With batches of B graphs it has K = B - 1; GraphSC "
                "always has one negative, and stands at the same B. With K drawn, batches "
                f"keep {SAMPLED_FROM} graphs.",
                *words_of(found),
                *recipe.notes,
            )
            if note
        ),
        record_heads=("data", "part", "method", "negatives", "accuracy", "deviation", "seeds"),
        records=tuple(records),
    )


def negatives_figure(cells: Sequence[Cell], found: Sequence[Found]) -> Figure:
    """Two panels a data set: batches of another size, and negatives drawn from batches of one size."""
    panels: dict[str, dict[str, Line]] = {}
    references: dict[str, tuple[str, float]] = {}
    labels = []
    for data in sets_of(cells):
        for part in dict.fromkeys(cell.part for cell in cells):
            lines = {}
            for method in dict.fromkeys(cell.trial.method for cell in cells if cell.part == part):
                values = by_negatives(cells, found, data, part, method)
                lines[method] = Line(np.array(list(values), float), table_of(list(values.values())))
            panels[f"{data}, {_said(part)}"] = lines
            labels.append("K = B - 1, one fewer than the batch" if part == BATCH else "K negatives drawn")
        beside = by_negatives(cells, found, data, BATCH, OURS).get(SAMPLED_FROM - 1)
        if beside is not None and beside.values:
            references[f"{data}, {_said(SAMPLED)}"] = (f"{OURS}, batches of {SAMPLED_FROM}", beside.mean)
    return line_panels(panels, x_label="K", log=True, x_labels=labels, references=references, share=True)


def _said(part: str) -> str:
    return {BATCH: "batch size varied", SAMPLED: f"batches of {SAMPLED_FROM}"}.get(part, part)
