"""Figures 1, 3, 4 and 5 of the paper from stored results: a table of the numbers, and the drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.tables import Table, Value
from graphsc.paper.gather import RecipeResults, Series, Sheet
from graphsc.paper.recipe import PlannedTrial
from graphsc.report.charts import heat_panels
from graphsc.report.curves import Line, line_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = "graphsc"
REFERENCE = "reference"  # the part that the varied ones are compared with
Row = tuple[Value, ...]


def _sheet(
    results: RecipeResults,
    columns: tuple[str, ...],
    rows: Sequence[Row],
    note: str,
    record_columns: tuple[str, ...],
    records: Sequence[Row],
) -> Sheet:
    notes = (*results.missing_notes, note, *results.protocol_notes, *results.recipe.notes)
    table = Table(columns, tuple(rows), results.recipe.title, tuple(text for text in notes if text))
    return Sheet(table, Table(record_columns, tuple(records)))


def _drawn(results: RecipeResults) -> RecipeResults:
    """Without data sets of which nothing has run, unless nothing at all has run."""
    ran = {completed.planned.column for completed in results.completed}
    return results.filtered(lambda planned: planned.column in ran) if ran else results


# Figures 1 and 5: accuracy against one varied setting, a line per part and method.


def _lines(
    results: RecipeResults, position: Callable[[PlannedTrial], float]
) -> Iterator[tuple[str, str, str, dict[float, Series]]]:
    """Data set, part and method of each line, and its accuracies by position."""
    for data in results.columns:
        for part, method in results.lines:
            yield data, part, method, results.line(data, method, part).series_by(position)


def _line(series: dict[float, Series]) -> Line:
    """A line of accuracies, seeds x positions; nan where a seed has not run."""
    accuracies = np.full((max([1, *(len(s.values) for s in series.values())]), len(series)), np.nan)
    for column, values in enumerate(s.values for s in series.values()):
        accuracies[: len(values), column] = values
    return Line(np.array(list(series), float), accuracies)


def _summary(series: Series) -> tuple[Value, Value, Value]:
    """Mean, deviation and number of seeds, as in CSV files."""
    seeds = len(series.values)
    deviation = round(series.deviation, 4) if seeds > 1 else ""
    return round(series.mean, 4) if seeds else "", deviation, seeds


BATCH, SAMPLED = "batch", "sampled"  # parts: K = B - 1 by the batch size B, and K sampled from one batch size
SAMPLED_FROM = 128  # graphs in a batch from which negatives are sampled
PART_TITLES = {BATCH: "batch size varied", SAMPLED: f"batches of {SAMPLED_FROM}"}


def negatives_of(planned: PlannedTrial) -> int:
    """K: the number of sampled negatives, or all other graphs of the batch."""
    sampled = planned.point.get("negatives")
    return int(str(planned.point["training.batch_size"])) - 1 if sampled is None else int(str(sampled))


def negatives_sheet(results: RecipeResults) -> Sheet:
    """Figure 1: a row per line, a column per number of negatives."""
    positions = sorted({negatives_of(planned) for planned in results.planned})
    rows: list[Row] = []
    records: list[Row] = []
    for data, part, method, series in _lines(results, negatives_of):
        texts = [series[k].text if k in series else "" for k in positions]
        rows.append((f"{method}, {PART_TITLES.get(part, part)}, {data}", *texts))
        records += [(data, part, method, k, *_summary(values)) for k, values in series.items()]
    note = (
        "K is the number of negatives of GraphCL; in a batch of B graphs, K = B - 1. GraphSC always has one "
        "negative and is shown at the same B. Where K negatives are sampled, batches have "
        f"{SAMPLED_FROM} graphs."
    )
    columns = ("data", "part", "method", "negatives", "accuracy", "deviation", "seeds")
    return _sheet(results, ("line", *(f"K = {k}" for k in positions)), rows, note, columns, records)


def negatives_figure(results: RecipeResults) -> Figure:
    """Figure 1: per data set a panel with the batch size varied, and one with K negatives sampled."""
    panels: dict[str, dict[str, Line]] = {}
    labels: dict[str, str] = {}
    references: dict[str, tuple[str, float]] = {}
    for data, part, method, series in _lines(_drawn(results), negatives_of):
        title = f"{data}, {PART_TITLES.get(part, part)}"
        panels.setdefault(title, {})[method] = _line(series)
        labels[title] = "K = B - 1, one fewer than the batch" if part == BATCH else "K negatives sampled"
        same_batch = series.get(SAMPLED_FROM - 1) if (part, method) == (BATCH, OURS) else None
        if same_batch is not None and same_batch.values:
            reference = (f"{OURS}, batches of {SAMPLED_FROM}", same_batch.mean)
            references[f"{data}, {PART_TITLES[SAMPLED]}"] = reference
    return line_panels(
        panels, x_label="K", log=True, band=True, x_labels=list(labels.values()), references=references,
        share=True,
    )  # fmt: skip


WEIGHT_TITLES = {"lambda_masked": "λ₁ masked", "lambda_factor": "λ₂ factor", "lambda_absolute": "λ₃ absolute"}


def weight_of(planned: PlannedTrial) -> float:
    """The value of the weight that the part varies and is named after."""
    return float(str(planned.point[planned.part]))


def weights_sheet(results: RecipeResults) -> Sheet:
    """Figure 5: a row per line, a column per value of a weight."""
    varied = results.filtered(lambda planned: planned.part != REFERENCE)
    positions = sorted({weight_of(planned) for planned in varied.planned})
    rows: list[Row] = []
    records: list[Row] = []
    for data, part, method, series in _lines(varied, weight_of):
        texts = [series[value].text if value in series else "" for value in positions]
        rows.append((f"{WEIGHT_TITLES.get(part, part)}, {method}, {data}", *texts))
        records += [(data, method, part, value, *_summary(values)) for value, values in series.items()]
    note = "One weight is varied; the others keep their defaults."
    columns = ("data", "method", "weight", "value", "accuracy", "deviation", "seeds")
    return _sheet(results, ("weight", *(f"{value:g}" for value in positions)), rows, note, columns, records)


def weights_figure(results: RecipeResults) -> Figure:
    """Figure 5: a panel per data set, a line per weight; a dashed line for the untrained encoder."""
    results = _drawn(results)
    varied = results.filtered(lambda planned: planned.part != REFERENCE)
    several = len(varied.methods) > 1
    panels: dict[str, dict[str, Line]] = {}
    for data, part, method, series in _lines(varied, weight_of):
        name = WEIGHT_TITLES.get(part, part) + (f", {method}" if several else "")
        panels.setdefault(data, {})[name] = _line(series)
    untrained = {data: reference_series(results, data) for data in panels}
    references = {data: ("untrained", series.mean) for data, series in untrained.items() if series.values}
    return line_panels(panels, x_label="weight", log=True, band=True, references=references)


def reference_series(results: RecipeResults, data: str) -> Series:
    """Accuracies of the part that the others are compared with, on one data set."""
    return results.filtered(lambda planned: (planned.part, planned.column) == (REFERENCE, data)).series()


# Figure 3: accuracy by epoch.


TOLERANCE = 0.5  # points below its final accuracy within which a curve has converged
TAIL = 5  # evaluated epochs whose mean is the final accuracy, because single epochs vary


@dataclass(frozen=True)
class ConvergenceCurve:
    """Accuracy in per cent at the evaluated epochs, of which the first is the untrained encoder."""

    epochs: NDArray[np.int64]
    accuracy: NDArray[np.float64]  # seeds x epochs

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean over seeds at each epoch."""
        means: NDArray[np.float64] = self.accuracy.mean(axis=0)
        return means

    @property
    def final(self) -> float:
        return float(self.mean[-TAIL:].mean())

    @property
    def gain(self) -> float:
        """Final accuracy minus that of the untrained encoder."""
        return self.final - float(self.mean[0])

    @property
    def converged_at(self) -> int:
        """The first evaluated epoch within the tolerance."""
        return int(self.epochs[np.flatnonzero(self.mean >= self.final - TOLERANCE)[0]])

    @property
    def converged_by_seed(self) -> list[int]:
        """`converged_at` of each seed's own curve."""
        return [ConvergenceCurve(self.epochs, row[None]).converged_at for row in self.accuracy]

    @property
    def stable_from(self) -> int:
        """The first evaluated epoch from which on accuracy stays within the tolerance."""
        below = np.flatnonzero(self.mean < self.final - TOLERANCE)
        return int(self.epochs[0 if not below.size else min(below[-1] + 1, len(self.epochs) - 1)])


def convergence_curve(results: RecipeResults, data: str, method: str) -> ConvergenceCurve | None:
    """The curves of all seeds; `None` where none has run."""
    stored = [completed.result.curve for completed in results.line(data, method).completed]
    curves = [curve for curve in stored if curve is not None]
    if not curves:
        return None
    epochs = curves[0].epochs
    accuracy = 100 * np.stack([curve.accuracy for curve in curves if curve.epochs == epochs])
    return ConvergenceCurve(np.array(epochs), accuracy)


def convergence_sheet(results: RecipeResults) -> Sheet:
    """Figure 3: a row per method and data set."""
    rows: list[Row] = []
    records: list[Row] = []
    for data in results.columns:
        for method in results.methods:
            curve = convergence_curve(results, data, method)
            if curve is None:
                rows.append((f"{method}, {data}", *[""] * 5))
                continue
            accuracies = (f"{curve.mean[0]:.2f}", f"{curve.final:.2f}")
            epochs, seeds = (curve.converged_at, curve.stable_from), len(curve.accuracy)
            rows.append((f"{method}, {data}", *accuracies, *epochs, seeds))
            for epoch, values in zip(curve.epochs.tolist(), curve.accuracy.T, strict=True):
                records.append((data, method, epoch, *_summary(Series(tuple(values.tolist())))))
    note = (
        f"The final accuracy is the mean of the last {TAIL} evaluated epochs. *Converged at*: the first "
        f"evaluated epoch no more than {TOLERANCE:g} points below it. *Stable from*: the first evaluated "
        "epoch from which on accuracy never falls below that. Epoch 0 is the untrained encoder."
    )
    return _sheet(
        results, ("curve", "untrained", "final", "converged at", "stable from", "seeds"), rows, note,
        ("data", "method", "epoch", "accuracy", "deviation", "seeds"), records,
    )  # fmt: skip


def convergence_figure(results: RecipeResults) -> Figure:
    """Figure 3: a panel per data set; a ring where a curve has converged."""
    results = _drawn(results)
    panels: dict[str, dict[str, Line]] = {}
    for data in results.columns:
        panels[data] = {}
        for method in results.methods:
            curve = convergence_curve(results, data, method)
            panels[data][method] = (
                Line(np.array([0.0]), np.full((1, 1), np.nan))
                if curve is None
                else Line(curve.epochs.astype(float), curve.accuracy, float(curve.converged_at))
            )
    label = f"first within {TOLERANCE:g} points of its final accuracy"
    return line_panels(panels, x_label="epoch", band=True, mark_label=label)


# Figure 4: GraphSC at every pair of rates, minus GraphCL.


@dataclass(frozen=True)
class RateGrid:
    """Accuracies of a method in per cent, weak x strong rates; nan where a pair is invalid or has not run."""

    method: str
    data: str
    accuracy: NDArray[np.float64]
    reference: float  # accuracy of GraphCL
    deviation: NDArray[np.float64]  # of the differences from GraphCL over common seeds; nan for one seed


def rates_of(planned: PlannedTrial) -> tuple[float, float]:
    """The weak and the strong rate."""
    return float(str(planned.point["weak_rate"])), float(str(planned.point["strong_rate"]))


def rate_axes(results: RecipeResults) -> tuple[list[float], list[float]]:
    """All weak and all strong rates."""
    pairs = [rates_of(planned) for planned in results.planned if planned.part != REFERENCE]
    return sorted({weak for weak, _ in pairs}), sorted({strong for _, strong in pairs})


def rate_grids(results: RecipeResults) -> list[RateGrid]:
    """One grid per data set and method."""
    weak, strong = rate_axes(results)
    varied = results.filtered(lambda planned: planned.part != REFERENCE)
    grids = []
    for data in results.columns:
        for method in varied.methods:
            line, graphcl = varied.line(data, method), reference_series(results, data)
            series = line.series_by(rates_of)
            cells = [[series.get((low, high), Series(())) for high in strong] for low in weak]
            grids.append(
                RateGrid(
                    method, data, np.array([[cell.mean for cell in row] for row in cells]), graphcl.mean,
                    np.array([[_deviation(cell, graphcl) for cell in row] for row in cells]),
                )
            )  # fmt: skip
    return grids


def _deviation(one: Series, other: Series) -> float:
    """Deviation of the difference over seeds (ddof 1); nan without several common seeds."""
    if len(one.values) != len(other.values) or len(one.values) < 2:
        return float("nan")
    return float(np.std(np.subtract(one.values, other.values), ddof=1))


def rates_sheet(results: RecipeResults) -> Sheet:
    """Figure 4: a row per data set and weak rate, a column per strong rate."""
    weak, strong = rate_axes(results)
    rows: list[Row] = []
    records: list[Row] = []
    for grid in rate_grids(results):
        for low, accuracies, deviations in zip(
            weak, grid.accuracy.tolist(), grid.deviation.tolist(), strict=True
        ):
            differences = [accuracy - grid.reference for accuracy in accuracies]
            texts = [_signed(*pair) for pair in zip(differences, deviations, strict=True)]
            rows.append((f"{grid.method}, {grid.data}, weak rate {low:g}", *texts))
            for high, *values in zip(strong, accuracies, differences, deviations, strict=True):
                if low < high:
                    accuracy, difference, deviation = values
                    stored = (accuracy, grid.reference, difference, deviation)
                    numbers = ["" if np.isnan(value) else round(value, 4) for value in stored]
                    records.append((grid.data, grid.method, low, high, *numbers))
    note = (
        "Accuracy in points above GraphCL with its default settings, on the same features, folds and seeds. "
        "A weak rate must be below the strong one; other cells are empty."
    )
    return _sheet(
        results, ("rates", *(f"strong rate {rate:g}" for rate in strong)), rows, note,
        ("data", "method", "weak_rate", "strong_rate", "accuracy", "reference", "difference", "deviation"),
        records,
    )  # fmt: skip


def _signed(value: float, deviation: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:+.2f}" + ("" if np.isnan(deviation) else f" ± {deviation:.2f}")


def rates_figure(results: RecipeResults) -> Figure:
    """Figure 4: a panel per data set, weak rates by row, strong rates by column."""
    weak, strong = rate_axes(results)
    grids = rate_grids(_drawn(results))
    several = len({grid.method for grid in grids}) > 1
    return heat_panels(
        {
            f"{grid.method}, {grid.data}" if several else grid.data: grid.accuracy - grid.reference
            for grid in grids
        },
        [f"{rate:g}" for rate in weak], [f"{rate:g}" for rate in strong],
        row_label="weak rate", column_label="strong rate", value_label="points above GraphCL",
        blank=np.array([[low >= high for high in strong] for low in weak]),
    )  # fmt: skip
