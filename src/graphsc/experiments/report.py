"""A comparison as one page: the table, how it was measured, curves, maps, health and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.probe import evaluate
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import CONTROL, Comparison
from graphsc.experiments.judge import rows_by_epoch
from graphsc.experiments.result import Result
from graphsc.experiments.run import labels_of
from graphsc.experiments.trial import Trial
from graphsc.report.bars import accuracy_bars
from graphsc.report.curves import accuracy_curves, health_curves, loss_curves
from graphsc.report.figure import svg_of
from graphsc.report.map import flatten, map_figure
from graphsc.report.page import Report, ReportFigure, ResultRow
from graphsc.training.metrics import Metrics


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
    metrics = Metrics(folders[0].metrics, keep=10**9).rows
    accuracy = {
        name: [result.accuracy for result in results if result.method == name] for name in found.methods
    }
    untrained = float(np.mean(accuracy[CONTROL])) if CONTROL in accuracy else None
    figures = [
        _figure(
            "Accuracy by method", accuracy_bars(accuracy, untrained=untrained),
            "One dot a seed, the diamond is their mean, the bar one deviation over seeds. Dashed: the same "
            "encoder with its first weights.",
        ),
        _figure(
            "Accuracy during training", _curve(of_shown, folders, collection, shown, untrained),
            f"{shown}, probed at the epochs that were kept, each seed on its own folds. The band is one "
            "deviation over seeds. A picture of training, not a way to choose an epoch.",
        ),
        _figure(
            "Maps of the graphs", _maps(folders[0], collection),
            "t-SNE of the same graphs before and after training, coloured by class. Training saw no class.",
        ),
        _figure("Loss", loss_curves(metrics), f"{shown}, first seed: the loss and its weighted parts."),
        _figure(
            "Health of the representation", health_curves(metrics),
            f"{shown}, first seed. A rank near 1 would mean that the vectors have collapsed.",
        ),
    ]  # fmt: skip
    last = metrics[-1]
    return Report(
        title=f"{', '.join(found.methods)} on {column}",
        lead=lead_of(found, shown, column),
        rows=[_row(found, method, column) for method in found.methods if (method, column) in found.cells],
        protocol=" ".join(found.words) + " A seed is a whole repetition: initialisation, training and folds.",
        figures=figures,
        health={
            "effective rank": f"{last['effective_rank']:.1f} of {last['dimensions']:.0f} dimensions",
            "uniformity": f"{last['uniformity']:.2f}",
            "mean cosine": f"{last['mean_cosine']:.2f}",
        },
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


def _row(found: Comparison, method: str, column: str) -> ResultRow:
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


def _figure(title: str, figure: object, caption: str) -> ReportFigure:
    return ReportFigure(title, svg_of(figure), caption)  # type: ignore[arg-type]


def _curve(
    trials: Sequence[Trial],
    folders: Sequence[RunFolder],
    collection: GraphCollection,
    name: str,
    untrained: float | None,
) -> object:
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


def _maps(folder: RunFolder, collection: GraphCollection) -> object:
    codes, classes = labels_of(collection)
    embeddings, _ = rows_by_epoch(folder, collection)
    groups = [f"class {classes[code]}" for code in codes]
    places = {
        "untrained" if epoch == 0 else f"after {epoch} epochs": flatten(embeddings[epoch])
        for epoch in (min(embeddings), max(embeddings))
    }
    return map_figure(places, groups)
