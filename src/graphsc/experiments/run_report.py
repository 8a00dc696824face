"""Runs as one page: each by itself, those on the same graphs side by side, others in a section each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.cross_validation import evaluate
from graphsc.evaluation.metrics import class_scores, confusion_matrix
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.plan import CONTROL
from graphsc.experiments.probe import labels_of
from graphsc.experiments.result import Result
from graphsc.experiments.run_evaluation import EvaluatedRun, evaluated_run, rows_by_epoch
from graphsc.experiments.trial import ProbeTrial
from graphsc.report.charts import accuracy_bars
from graphsc.report.curves import HEALTH, accuracy_curves, health_curves, loss_curves
from graphsc.report.figure import svg_of
from graphsc.report.html import Report, ReportFigure, ReportTable, ResultRow, percent
from graphsc.report.predictions import confusion_figure
from graphsc.report.projection import kernel_pca, map_figure, project
from graphsc.training.callbacks import Metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# What one run looks like: its maps before and after training, its curves, its health.


MOST = 4_000  # graphs on a printed map; more only cover each other


def as_figure(title: str, figure: Figure, caption: str) -> ReportFigure:
    return ReportFigure(title, svg_of(figure), caption)


def metrics_of(folder: RunFolder) -> list[dict[str, float]]:
    """Every row of the run's metrics; none where it did not train."""
    return Metrics(folder.metrics, keep=10**9).rows


def map_before_and_after(
    folder: RunFolder, collection: GraphCollection, groups: Sequence[str]
) -> ReportFigure:
    """The same graphs by the first and by the last vectors that were kept, coloured by group."""
    by_epoch, gram = rows_by_epoch(folder, collection)
    kept = np.arange(len(groups))
    caption = "t-SNE of the same graphs before and after training. Training saw no class."
    if len(by_epoch) == 1:
        caption = "t-SNE of the graphs. There is no before and after: nothing was trained epoch by epoch."
    if len(kept) > MOST:
        kept = np.sort(numpy_generator(0, "sample of a map").permutation(len(groups))[:MOST])
        caption += f" A random sample of {MOST:,} of {len(groups):,} graphs."
    places = {}
    for epoch in dict.fromkeys((min(by_epoch), max(by_epoch))):
        rows = kernel_pca(by_epoch[epoch]) if gram else by_epoch[epoch]
        title = f"after {epoch} epochs" if epoch else "untrained" if len(by_epoch) > 1 else "vectors"
        places[title] = project(rows[kept])
    return as_figure(
        "Maps of the graphs", map_figure(places, [groups[index] for index in kept.tolist()]), caption
    )


def training_figures(folder: RunFolder, name: str) -> list[ReportFigure]:
    """Loss and health from epoch to epoch; none where nothing was trained."""
    rows = metrics_of(folder)
    if not rows:
        return []
    found = [as_figure("Loss", loss_curves(rows), f"{name}: the loss and its weighted parts.")]
    if any(key in row for row in rows for key, _, _ in HEALTH):
        caption = f"{name}. A rank near 1 would mean that the vectors have collapsed."
        found.append(as_figure("Health of the representation", health_curves(rows), caption))
    return found


def health_facts(rows: Sequence[dict[str, float]]) -> dict[str, str]:
    """Health at the last epoch, in words; empty where nothing was trained."""
    last = rows[-1] if rows else {}
    facts = {}
    if "effective_rank" in last:
        facts["effective rank"] = f"{last['effective_rank']:.1f} of {last['dimensions']:.0f} dimensions"
    for key in ("uniformity", "alignment", "mean_cosine"):
        if key in last:
            facts[key.replace("_", " ")] = f"{last[key]:.2f}"
    return facts


# A comparison as one page: the table, how it was measured, curves, maps, health and the settings.


def comparison_report(
    found: Comparison,
    results: Sequence[Result],
    trials: Sequence[ProbeTrial],
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
    trials: Sequence[ProbeTrial],
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


LEAKY = "LEAKY: epochs were chosen by test accuracy; these numbers are not results."
Rows = dict[str, list[EvaluatedRun]]  # by the name of the row: runs that differ in their seed only


def runs_report(
    runs: Sequence[str | Path],
    source: str | None = None,
    *,
    judge: bool = True,
    maps: bool = True,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """The page of these run folders; `source` are their graphs, where they cannot find them themselves."""
    paths = list(dict.fromkeys(Path(run).resolve() for run in runs))
    if not paths:
        raise ConfigError("there is no run to report on", hint="name one or more run folders")
    from graphsc.experiments.finetune_report import (
        is_transfer_run,
        transfer_reports,
    )  # which uses this module

    tuned = [path for path in paths if is_transfer_run(path)]
    if tuned:
        return transfer_reports(tuned, [path for path in paths if path not in tuned])
    found = [evaluated_run(path, source, evaluate=judge, jobs=jobs, say=say) for path in paths]
    by_data: dict[str, list[EvaluatedRun]] = {}
    for run in found:
        by_data.setdefault(run.collection.content_hash, []).append(run)
    pages = [_of_data(some, maps, say) for some in by_data.values()]
    if len(pages) == 1:
        return pages[0]
    names = ", ".join(dict.fromkeys(some[0].collection.name for some in by_data.values()))
    return Report(
        title=f"Runs on {names}",
        lead=f"{len(found)} runs on {len(pages)} collections of graphs, a section each.",
        parts=pages,
    )


def _of_data(runs: Sequence[EvaluatedRun], maps: bool, say: Callable[[str], None]) -> Report:
    """Runs on the same graphs: one as it is, several as a comparison with a section each."""
    name = runs[0].collection.name
    rows = rows_of(runs)
    parts = []
    for row, some in rows.items():
        say(f"drawing {row} on {name}")
        parts.append(_of_row(row, some, maps))
    if len(runs) == 1:
        return parts[0]
    judged = [(row, run.result) for row, some in rows.items() for run in some if run.result is not None]
    if not judged:
        return Report(
            title=f"{', '.join(rows)} on {name}", lead=f"{len(runs)} runs, none of them judged.", parts=parts
        )
    # What stands side by side above need not stand alone below.
    parts = [replace(part, rows=(), protocol="") for part in parts]
    table, words, notes = _table([row for row, _ in judged], [result for _, result in judged])
    accuracy = {row: [result.accuracy for label, result in judged if label == row] for row, _ in judged}
    untrained = float(np.mean(accuracy[CONTROL])) if CONTROL in accuracy else None
    means = ", ".join(f"{row} {100 * float(np.mean(values)):.1f} %" for row, values in accuracy.items())
    return Report(
        title=f"{', '.join(rows)} on {name}",
        lead=f"Accuracy on {name}: {means}.",
        rows=table,
        tables=_healths(rows),
        protocol=words + " A seed is a whole repetition: initialisation, training and folds.",
        figures=[
            as_figure(
                "Accuracy by method", accuracy_bars(accuracy, untrained=untrained),
                "One dot a seed, the diamond is their mean, the bar one deviation over seeds."
                + (" Dashed: the same encoder with its first weights." if untrained is not None else ""),
            )
        ],
        warnings=[LEAKY] if any(result.leaky for _, result in judged) else [],
        notes=notes,
        parts=parts,
    )  # fmt: skip


def rows_of(runs: Sequence[EvaluatedRun]) -> Rows:
    """Runs that differ in their seed only share a row; methods of one name are told apart by what differs."""
    grouped: dict[tuple[str, ...], list[EvaluatedRun]] = {}
    for run in runs:
        key = (run.method, *(f"{name}={value}" for name, value in sorted(run.recipe.items())))
        grouped.setdefault(key, []).append(run)
    rows: Rows = {}
    for key, some in grouped.items():
        others = [other for other in grouped if other[0] == key[0]]
        shared = set.intersection(*(set(other) for other in others))
        differing = ", ".join(part for part in key[1:] if part not in shared)
        rows[f"{key[0]} ({differing})" if differing else key[0]] = some
    return rows


def _table(labels: Sequence[str], results: Sequence[Result]) -> tuple[list[ResultRow], str, list[str]]:
    """Rows with tests where runs were judged on the same folds, without where not, which a note then says."""
    try:
        comparisons, notes = [compare_results(results, labels=labels)], []
    except DataError as error:
        notes = [f"Differences are not tested: {error}."]
        comparisons = []
        for label in dict.fromkeys(labels):
            of_label = [result for one, result in zip(labels, results, strict=True) if one == label]
            comparisons.append(compare_results(of_label, labels=[label] * len(of_label)))
    rows = [result_row(found, method, found.columns[0]) for found in comparisons for method in found.methods]
    return rows, _words(comparisons), notes


def _words(comparisons: Sequence[Comparison]) -> str:
    return " ".join(dict.fromkeys(words for found in comparisons for words in found.words))


def _of_row(row: str, runs: Sequence[EvaluatedRun], maps: bool) -> Report:
    """One method on one collection: table and matrix over its seeds, maps and curves of its first."""
    first = runs[0]
    results = [run.result for run in runs if run.result is not None]
    table, words, notes = _table([row] * len(results), results) if results else ([], "", [])
    figures: list[ReportFigure] = []
    tables: list[ReportTable] = []
    if results:
        classes = results[0].classes
        matrix = sum(confusion_matrix(one.labels, one.predictions, len(classes)) for one in results)
        tables.append(_scores(np.asarray(matrix), classes, len(results)))
        figures.append(
            as_figure(
                "Confusion matrix", confusion_figure(np.asarray(matrix), classes),
                "Graphs by true and predicted class, each predicted when its fold was held out"
                + (f", summed over {len(results)} seeds." if len(results) > 1 else "."),
            )
        )  # fmt: skip
    if maps:
        figures.append(map_before_and_after(first.folder, first.collection, _groups(first)))
    which = row if len(runs) == 1 else f"{row}, seed {first.seed}"
    metrics = metrics_of(first.folder)
    environments = first.folder.environments() if first.folder.environment.exists() else []
    return Report(
        title=f"{row} on {first.collection.name}",
        lead=_lead(row, first, results),
        about=_about(runs, metrics),
        rows=table,
        protocol=words,
        tables=tables,
        figures=[*figures, *training_figures(first.folder, which)],
        health=health_facts(metrics),
        config=dump_yaml(first.config),
        environment={key: str(value) for key, value in environments[-1].items()} if environments else {},
        warnings=[LEAKY] if any(result.leaky for result in results) else [],
        notes=[*notes, *dict.fromkeys(run.note for run in runs if run.note)],
    )


def _healths(rows: Rows) -> list[ReportTable]:
    """Health of each method's first seed, side by side; nothing where none was trained."""
    facts = {row: health_facts(metrics_of(some[0].folder)) for row, some in rows.items()}
    names = list(dict.fromkeys(name for found in facts.values() for name in found))
    cells = [[row, *(found.get(name, "\N{EN DASH}") for name in names)] for row, found in facts.items()]
    headers = ["Method", *(name.capitalize() for name in names)]
    caption = "At the last epoch of the first seed; methods that do not train epoch by epoch have no figures."
    return [ReportTable("Health side by side", headers, cells, caption)] if names else []


def _lead(row: str, run: EvaluatedRun, results: Sequence[Result]) -> str:
    name = run.collection.name
    if not results:
        return f"{row} on {name}: {len(run.collection):,} graphs, no accuracy."
    folds = len(results[0].accuracies)
    seeds = f"{len(results)} seeds" if len(results) > 1 else f"seed {results[0].seed}"
    mean = 100 * float(np.mean([result.accuracy for result in results]))
    return f"{row} reaches {mean:.1f} % on {name} ({seeds}, {folds} folds)."


def _about(runs: Sequence[EvaluatedRun], metrics: Sequence[dict[str, float]]) -> dict[str, str]:
    first = runs[0]
    encoder = first.config.get("encoder")
    facts = {
        "method": first.method,
        "graphs": f"{first.collection.name}, {len(first.collection):,} graphs",
        "features": first.collection.features.name,
        "seeds" if len(runs) > 1 else "seed": ", ".join(str(run.seed) for run in runs),
    }
    if encoder:
        facts["encoder"] = str(encoder)
    if metrics:
        facts["epochs"] = f"{metrics[-1]['epoch']:.0f}"
        facts["seconds of training"] = f"{sum(row.get('seconds', 0.0) for row in metrics):.1f}"
    facts["run" if len(runs) == 1 else "runs"] = ", ".join(run.folder.path.name for run in runs)
    return facts


def _scores(
    matrix: np.ndarray[tuple[int, int], np.dtype[np.int64]], classes: Sequence[str], seeds: int
) -> ReportTable:
    found = class_scores(matrix)
    rows = [
        [
            name,
            percent(found.precision[k]),
            percent(found.recall[k]),
            percent(found.f1[k]),
            f"{found.graphs[k]:,}",
        ]
        for k, name in enumerate(classes)
    ]
    caption = (
        "In per cent. Precision: of the graphs given a class, how many have it. Recall: of those that have "
        "it, how many were given it. F1 is their harmonic mean."
    )
    if seeds > 1:
        caption += f" Each graph counts once for each of {seeds} seeds."
    return ReportTable("Scores by class", ("Class", "Precision", "Recall", "F1", "Graphs"), rows, caption)


def _groups(run: EvaluatedRun) -> list[str]:
    """What a map is coloured by: classes where there are any."""
    try:
        codes, classes = labels_of(run.collection)
    except DataError:
        return ["graphs"] * len(run.collection)
    return [f"class {classes[code]}" for code in codes]
