"""A comparison as one page: the table, how it was measured, curves, maps, health and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.cross_validation import evaluate
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import CONTROL, Comparison
from graphsc.experiments.judge import rows_by_epoch
from graphsc.experiments.result import Result
from graphsc.experiments.run import labels_of
from graphsc.experiments.run_figures import (
    as_figure,
    health_facts,
    map_before_and_after,
    metrics_of,
    training_figures,
)
from graphsc.experiments.trial import Trial
from graphsc.report.charts import accuracy_bars
from graphsc.report.curves import accuracy_curves
from graphsc.report.html import Report, ResultRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_report(
    found: Comparison,
    results: Sequence[Result],
    trials: Sequence[Trial],
    runs: Path,
    collection: GraphCollection,
    *,
    shown: str = "graphsc",
) -> Report:
    """The page of a comparison on one data set; curves and maps are of the method `shown`."""
    column = found.columns[0]
    of_shown = [trial for trial in trials if trial.method == shown]
    folders = [RunFolder(runs / trial.run_name()) for trial in of_shown]
    codes, classes = labels_of(collection)
    accuracy = {
        name: [result.accuracy for result in results if result.method == name] for name in found.methods
    }
    untrained = float(np.mean(accuracy[CONTROL])) if CONTROL in accuracy else None
    figures = [
        as_figure(
            "Accuracy by method", accuracy_bars(accuracy, untrained=untrained),
            "One dot a seed, the diamond is their mean, the bar one deviation over seeds. Dashed: the same "
            "encoder with its first weights.",
        ),
        as_figure(
            "Accuracy during training", _curve(of_shown, folders, collection, shown, untrained),
            f"{shown}, probed at the epochs that were kept, each seed on its own folds. The band is one "
            "deviation over seeds. A picture of training, not a way to choose an epoch.",
        ),
        map_before_and_after(folders[0], collection, [f"class {classes[code]}" for code in codes]),
        *training_figures(folders[0], f"{shown}, first seed"),
    ]  # fmt: skip
    return Report(
        title=f"{', '.join(found.methods)} on {column}",
        lead=lead_of(found, shown, column),
        rows=[
            result_row(found, method, column) for method in found.methods if (method, column) in found.cells
        ],
        protocol=" ".join(found.words) + " A seed is a whole repetition: initialisation, training and folds.",
        figures=figures,
        health=health_facts(metrics_of(folders[0])),
        config=dump_yaml(results[-1].config),
        environment={name: str(value) for name, value in results[-1].environment.items()},
        warnings=["LEAKY: epochs were chosen by test accuracy; these numbers are not results."]
        if found.leaky
        else [],
    )


def lead_of(found: Comparison, shown: str, column: str) -> str:
    """The result in a sentence, whatever it is."""
    cell = found.cells[shown, column]
    sentence = f"{shown} reaches {cell.summary.mean:.1f} % on {column} ({cell.summary.seeds} seeds)"
    if cell.difference is None or cell.p_value is None:
        return f"{sentence}."
    worth = "a significant difference" if cell.p_value < 0.05 else "within noise"
    return f"{sentence}, {cell.difference:+.1f} points against the untrained encoder: {worth}."


def result_row(found: Comparison, method: str, column: str) -> ResultRow:
    """A method's row of the table."""
    cell = found.cells[method, column]
    one = cell.summary.seeds == 1
    return ResultRow(
        method=method,
        mean=cell.summary.mean / 100,
        over_seeds=None if one else cell.summary.over_seeds_ddof0 / 100,
        over_folds=cell.summary.over_folds_ddof0 / 100,
        difference=None if cell.difference is None else cell.difference / 100,
        p_value=cell.p_value,
        published=None if cell.published is None else cell.published[0] / 100,
    )


def _curve(
    trials: Sequence[Trial],
    folders: Sequence[RunFolder],
    collection: GraphCollection,
    name: str,
    untrained: float | None,
) -> Figure:
    """The probe at every kept epoch."""
    curves: list[dict[int, float]] = []
    for trial, folder in zip(trials, folders, strict=True):
        embeddings, _ = rows_by_epoch(folder, collection)
        curves.append(
            {
                epoch: _accuracy(rows, collection, trial.seed, trial.protocol)
                for epoch, rows in embeddings.items()
            }
        )
    epochs = sorted(set.intersection(*(set(curve) for curve in curves)))
    table = np.array([[curve[epoch] for epoch in epochs] for curve in curves])
    return accuracy_curves(epochs, {name: table}, untrained=untrained)


def _accuracy(rows: NDArray[np.float32], collection: GraphCollection, seed: int, protocol: Protocol) -> float:
    codes, _ = labels_of(collection)
    return evaluate(rows, codes, protocol, seed=seed).accuracy
