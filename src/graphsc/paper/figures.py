"""Figure 3: accuracy from epoch to epoch, and how many epochs it takes to come near its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.tables import Cell, Table, Value
from graphsc.paper.gather import Found, Series, Sheet, missing, series, set_of, sets_of, table_of, words_of
from graphsc.paper.recipe import PlannedTrial, Recipe
from graphsc.report.charts import heat_panels
from graphsc.report.curves import Line, line_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


NEAR = 0.5  # points from its end within which a curve counts as there
TAIL = 5  # probed epochs whose mean is the end, because single epochs jump


@dataclass(frozen=True)
class Converged:
    """A mean curve over seeds, in per cent."""

    epochs: NDArray[np.int64]
    accuracy: NDArray[np.float64]  # seeds x epochs
    mean: NDArray[np.float64]

    @property
    def end(self) -> float:
        return float(self.mean[-TAIL:].mean())

    @property
    def gain(self) -> float:
        """What training brought: the end minus the untrained encoder."""
        return self.end - float(self.mean[0])

    @property
    def near(self) -> int:
        """The first probed epoch at which the accuracy is no more than half a point below its end."""
        return int(self.epochs[np.flatnonzero(self.mean >= self.end - NEAR)[0]])

    @property
    def stays(self) -> int:
        """The first probed epoch from which on it never is more than half a point below its end again."""
        below = np.flatnonzero(self.mean < self.end - NEAR)
        return int(self.epochs[0 if not below.size else min(below[-1] + 1, len(self.epochs) - 1)])


def curve_of(found: Sequence[Found], data: str, method: str) -> Converged | None:
    """The curves of all seeds together; None where none has run."""
    curves = [
        one.result.curve
        for one in found
        if one.result.curve is not None and (set_of(one.cell), one.cell.trial.method) == (data, method)
    ]
    if not curves:
        return None
    epochs = np.array(curves[0].epochs)
    table = 100 * np.stack([curve.accuracy for curve in curves if curve.epochs == curves[0].epochs])
    return Converged(epochs, table, table.mean(axis=0))


def convergence_sheet(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Sheet:
    """A row a method and data set: where it begins and ends, and the epochs in between."""
    rows, records = [], []
    for data in sets_of(cells):
        for method in _methods(cells):
            curve = curve_of(found, data, method)
            texts = ["", "", "", "", ""]
            if curve is not None:
                seeds = len(curve.accuracy)
                texts = [
                    f"{curve.mean[0]:.2f}",
                    f"{curve.end:.2f}",
                    f"{curve.near}",
                    f"{curve.stays}",
                    f"{seeds}",
                ]
                records += [
                    (data, method, int(epoch), round(float(mean), 4),
                     round(float(curve.accuracy[:, k].std()), 4) if seeds > 1 else "", seeds)
                    for k, (epoch, mean) in enumerate(zip(curve.epochs, curve.mean, strict=True))
                ]  # fmt: skip
            rows.append((f"{method}, {data}", tuple(Cell(text) for text in texts)))
    notes = (
        missing(cells, found),
        f"The end is the mean of the last {TAIL} probed epochs. *Comes near* is the first probed epoch no "
        f"more than {NEAR:g} points below the end; *stays near* the one from which on it never falls below "
        "that again. 0: the encoder is there before it has learned anything.",
        *words_of(found),
        *recipe.notes,
    )
    return Sheet(
        Table(
            ("curve", "untrained", "end", "comes near", "stays near", "seeds"),
            tuple((name, *cells) for name, cells in rows),
            recipe.title,
            tuple(note for note in notes if note),
        ),
        Table(("data", "method", "epoch", "accuracy", "deviation", "seeds"), tuple(records)),
    )


def convergence_figure(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Figure:
    """A panel a data set; a ring where a curve comes near its end."""
    panels: dict[str, dict[str, Line]] = {}
    for data in sets_of(cells):
        lines = {}
        for method in _methods(cells):
            curve = curve_of(found, data, method)
            if curve is None:
                lines[method] = Line(np.array([0.0]), np.full((1, 1), np.nan))
            else:
                lines[method] = Line(curve.epochs.astype(float), curve.accuracy, float(curve.near))
        panels[data] = lines
    label = f"comes within {NEAR:g} points of its end"
    return line_panels(panels, x_label="epoch", band=True, mark_label=label)


def _methods(cells: Sequence[PlannedTrial]) -> list[str]:
    return list(dict.fromkeys(cell.trial.method for cell in cells))


# Figure 1: accuracy against the number of negatives.


BATCH, SAMPLED = "batch", "sampled"
SIZE, NEGATIVES = "training.batch_size", "negatives"
OURS = "graphsc"
SAMPLED_FROM = 128  # graphs in a batch from which negatives are drawn


def negatives_of(cell: PlannedTrial) -> int:
    """K: as sampled, or every other graph of the batch."""
    found = cell.point.get(NEGATIVES)
    return int(str(found)) if found is not None else int(str(cell.point[SIZE])) - 1


def by_negatives(
    cells: Sequence[PlannedTrial], found: Sequence[Found], data: str, part: str, method: str
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


def lines_of(cells: Sequence[PlannedTrial]) -> list[tuple[str, str]]:
    """Part and method of every line."""
    return list(dict.fromkeys((cell.part, cell.trial.method) for cell in cells))


def negatives_sheet(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Sheet:
    """A row a line, a column a number of negatives."""
    places = sorted({negatives_of(cell) for cell in cells})
    rows, records = [], []
    for data in sets_of(cells):
        for part, method in lines_of(cells):
            values = by_negatives(cells, found, data, part, method)
            entries = [Cell(values[place].text if place in values else "") for place in places]
            rows.append((f"{method}, {_said(part)}, {data}", tuple(entries)))
            records += [
                (data, part, method, place, round(one.mean, 4) if one.values else "",
                 round(one.deviation, 4) if len(one.values) > 1 else "", len(one.values))
                for place, one in values.items()
            ]  # fmt: skip
    return Sheet(
        Table(
            ("line", *(f"K = {place}" for place in places)),
            tuple((name, *cells) for name, cells in rows),
            recipe.title,
            tuple(
                note
                for note in (
                    missing(cells, found),
                    "K is the number of negatives of GraphCL. With batches of B graphs it has K = B - 1; "
                    "GraphSC always has one negative, and stands at the same B. With K drawn, batches "
                    f"keep {SAMPLED_FROM} graphs.",
                    *words_of(found),
                    *recipe.notes,
                )
                if note
            ),
        ),
        Table(("data", "part", "method", "negatives", "accuracy", "deviation", "seeds"), tuple(records)),
    )


def negatives_figure(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Figure:
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


# Figure 4: GraphSC at every pair of rates, minus GraphCL.


WEAK, STRONG, RATE_REFERENCE = "weak_rate", "strong_rate", "reference"


def axes_of(cells: Sequence[PlannedTrial]) -> tuple[list[float], list[float]]:
    """The weak and the strong rates there are."""
    points = [cell.point for cell in cells if cell.part != RATE_REFERENCE]
    return (
        sorted({float(str(point[WEAK])) for point in points}),
        sorted({float(str(point[STRONG])) for point in points}),
    )


def rate_reference_of(found: Sequence[Found], data: str) -> Series:
    """Whom the differences are to."""
    return series(found, lambda cell: cell.part == RATE_REFERENCE and set_of(cell) == data)


def accuracies(
    cells: Sequence[PlannedTrial], found: Sequence[Found], data: str, method: str
) -> NDArray[np.float64]:
    """Mean accuracy in per cent, weak x strong rates; nan where it has not run or cannot be."""
    weak, strong = axes_of(cells)
    table = np.full((len(weak), len(strong)), np.nan)
    for i, low in enumerate(weak):
        for k, high in enumerate(strong):
            table[i, k] = series(
                found,
                lambda cell, low=low, high=high: (
                    cell.part != RATE_REFERENCE  # type: ignore[misc]
                    and (set_of(cell), cell.trial.method) == (data, method)
                    and (cell.point[WEAK], cell.point[STRONG]) == (low, high)
                ),
            ).mean
    return table


def methods_of(cells: Sequence[PlannedTrial]) -> list[str]:
    """Whose rates vary."""
    return list(dict.fromkeys(cell.trial.method for cell in cells if cell.part != RATE_REFERENCE))


def rates_sheet(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Sheet:
    """A row a data set and weak rate, a column a strong rate."""
    weak, strong = axes_of(cells)
    rows, records = [], []
    for data in sets_of(cells):
        beside = rate_reference_of(found, data).mean
        for method in methods_of(cells):
            table = accuracies(cells, found, data, method)
            for i, low in enumerate(weak):
                texts = ["" if np.isnan(value - beside) else f"{value - beside:+.2f}" for value in table[i]]
                rows.append((f"{method}, {data}, weak rate {low:g}", tuple(Cell(text) for text in texts)))
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
        Table(
            ("rates", *(f"strong rate {rate:g}" for rate in strong)),
            tuple((name, *cells) for name, cells in rows),
            recipe.title,
            tuple(note for note in notes if note),
        ),
        Table(
            ("data", "method", "weak_rate", "strong_rate", "accuracy", "reference", "difference"),
            tuple(records),
        ),
    )


def _known(value: float, beside: float) -> tuple[Value, Value, Value]:
    return tuple("" if np.isnan(x) else round(float(x), 4) for x in (value, beside, value - beside))  # type: ignore[return-value]


def rates_figure(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Figure:
    """A panel a data set, weak rates downwards, strong ones to the right."""
    weak, strong = axes_of(cells)
    methods = methods_of(cells)
    panels = {
        data if len(methods) == 1 else f"{method}, {data}": accuracies(cells, found, data, method)
        - rate_reference_of(found, data).mean
        for data in sets_of(cells)
        for method in methods
    }
    return heat_panels(
        panels, [f"{rate:g}" for rate in weak], [f"{rate:g}" for rate in strong],
        row_label="weak rate", column_label="strong rate", value_label="points above GraphCL",
        blank=np.array([[low >= high for high in strong] for low in weak]),
    )  # fmt: skip


# Figure 5: accuracy against each of the three weights.


WEIGHT_REFERENCE = "reference"
SYMBOLS = {"lambda_masked": "λ₁ masked", "lambda_factor": "λ₂ factor", "lambda_absolute": "λ₃ absolute"}


def parts_of(cells: Sequence[PlannedTrial]) -> list[tuple[str, str]]:
    """Weight and method of every line."""
    return list(
        dict.fromkeys((cell.part, cell.trial.method) for cell in cells if cell.part != WEIGHT_REFERENCE)
    )


def by_weight(
    cells: Sequence[PlannedTrial], found: Sequence[Found], data: str, part: str, method: str
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


def weight_reference_of(found: Sequence[Found], data: str) -> Series:
    return series(found, lambda cell: cell.part == WEIGHT_REFERENCE and set_of(cell) == data)


def weights_sheet(recipe: Recipe, cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Sheet:
    """A row a line, a column a value."""
    values = sorted({float(str(cell.point[cell.part])) for cell in cells if cell.part != WEIGHT_REFERENCE})
    rows, records = [], []
    for data in sets_of(cells):
        for part, method in parts_of(cells):
            line = by_weight(cells, found, data, part, method)
            entries = tuple(Cell(line[value].text if value in line else "") for value in values)
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
        Table(
            ("weight", *(f"{value:g}" for value in values)),
            tuple((name, *cells) for name, cells in rows),
            recipe.title,
            tuple(note for note in notes if note),
        ),
        Table(("data", "method", "weight", "value", "accuracy", "deviation", "seeds"), tuple(records)),
    )


def weights_figure(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Figure:
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
        beside = weight_reference_of(found, data)
        if beside.values:
            references[data] = ("untrained", beside.mean)
    return line_panels(panels, x_label="weight", log=True, references=references)
