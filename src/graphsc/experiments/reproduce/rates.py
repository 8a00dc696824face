"""Figure 4: GraphSC at every pair of rates, minus GraphCL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.experiments.reproduce.expand import Cell
from graphsc.experiments.reproduce.gather import Found, Series, missing, series, set_of, sets_of, words_of
from graphsc.experiments.reproduce.recipe import Recipe
from graphsc.experiments.reproduce.sheet import Entry, Sheet
from graphsc.report.heat import heat_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEAK, STRONG, REFERENCE = "weak_rate", "strong_rate", "reference"


def axes_of(cells: Sequence[Cell]) -> tuple[list[float], list[float]]:
    """The weak and the strong rates there are."""
    points = [cell.point for cell in cells if cell.part != REFERENCE]
    return (
        sorted({float(str(point[WEAK])) for point in points}),
        sorted({float(str(point[STRONG])) for point in points}),
    )


def reference_of(found: Sequence[Found], data: str) -> Series:
    """Whom the differences are to."""
    return series(found, lambda cell: cell.part == REFERENCE and set_of(cell) == data)


def accuracies(cells: Sequence[Cell], found: Sequence[Found], data: str, method: str) -> NDArray[np.float64]:
    """Mean accuracy in per cent, weak x strong rates; nan where it has not run or cannot be."""
    weak, strong = axes_of(cells)
    table = np.full((len(weak), len(strong)), np.nan)
    for i, low in enumerate(weak):
        for k, high in enumerate(strong):
            table[i, k] = series(
                found,
                lambda cell, low=low, high=high: (
                    cell.part != REFERENCE  # type: ignore[misc]
                    and (set_of(cell), cell.trial.method) == (data, method)
                    and (cell.point[WEAK], cell.point[STRONG]) == (low, high)
                ),
            ).mean
    return table


def methods_of(cells: Sequence[Cell]) -> list[str]:
    """Whose rates vary."""
    return list(dict.fromkeys(cell.trial.method for cell in cells if cell.part != REFERENCE))


def rates_sheet(recipe: Recipe, cells: Sequence[Cell], found: Sequence[Found]) -> Sheet:
    """A row a data set and weak rate, a column a strong rate."""
    weak, strong = axes_of(cells)
    rows, records = [], []
    for data in sets_of(cells):
        beside = reference_of(found, data).mean
        for method in methods_of(cells):
            table = accuracies(cells, found, data, method)
            for i, low in enumerate(weak):
                texts = ["" if np.isnan(value - beside) else f"{value - beside:+.2f}" for value in table[i]]
                rows.append((f"{method}, {data}, weak rate {low:g}", tuple(Entry(text) for text in texts)))
                records += [
                    (data, method, low, high, *_known(table[i, k], beside))
                    for k, high in enumerate(strong)
                    if low < high
                ]
    notes = (
        missing(cells, found),
        "Points above the accuracy of GraphCL at its own settings, with the same features, folds and seeds. "
        "A weak rate must be below the strong one; other cells stay blank.",
        *words_of(found),
        *recipe.notes,
    )
    return Sheet(
        title=recipe.title,
        heads=("rates", *(f"strong rate {rate:g}" for rate in strong)),
        rows=tuple(rows),
        notes=tuple(note for note in notes if note),
        record_heads=("data", "method", "weak_rate", "strong_rate", "accuracy", "reference", "difference"),
        records=tuple(records),
    )


def _known(value: float, beside: float) -> tuple[object, object, object]:
    return tuple("" if np.isnan(x) else round(float(x), 4) for x in (value, beside, value - beside))  # type: ignore[return-value]


def rates_figure(cells: Sequence[Cell], found: Sequence[Found]) -> Figure:
    """A panel a data set, weak rates downwards, strong ones to the right."""
    weak, strong = axes_of(cells)
    methods = methods_of(cells)
    panels = {
        data if len(methods) == 1 else f"{method}, {data}": accuracies(cells, found, data, method)
        - reference_of(found, data).mean
        for data in sets_of(cells)
        for method in methods
    }
    return heat_panels(
        panels, [f"{rate:g}" for rate in weak], [f"{rate:g}" for rate in strong],
        row_label="weak rate", column_label="strong rate", value_label="points above GraphCL",
        blank=np.array([[low >= high for high in strong] for low in weak]),
    )  # fmt: skip
