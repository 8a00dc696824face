"""Reports on runs: one page for a run, for runs on the same graphs, or for a whole comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphsc.core.config import dump_yaml
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rejected import common_reasons
from graphsc.evaluation.cross_validation import evaluate
from graphsc.evaluation.metrics import confusion_matrix
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.comparison_report import (
    LEAKY,
    SEED,
    class_table,
    is_results_folder,
    overview,
    results_report,
)
from graphsc.experiments.finetune_report import is_transfer_run, transfer_reports
from graphsc.experiments.plan import CONTROL
from graphsc.experiments.probe import labels_of
from graphsc.experiments.result import Result
from graphsc.experiments.run_evaluation import EvaluatedRun, evaluated_run, rows_by_epoch
from graphsc.experiments.tables import LEVEL
from graphsc.experiments.trial import ProbeTrial
from graphsc.report.charts import accuracy_bars
from graphsc.report.curves import HEALTH, accuracy_curves, health_curves, loss_curves
from graphsc.report.figure import svg_of
from graphsc.report.html import Report, ReportFigure, ReportTable, ResultRow
from graphsc.report.predictions import confusion_figure
from graphsc.report.projection import kernel_pca, map_figure, project
from graphsc.training.callbacks import Metrics

MAP_GRAPHS = 4_000  # at most, on a map; more points cover each other


def runs_report(
    runs: Sequence[str | Path],
    source: str | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    evaluate: bool = True,
    maps: bool = True,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """The report on finished runs, which are compared, or on the stored results of a comparison.

    Args:
        runs: Run folders, either of training or of fine-tuning; or the one folder of results of a comparison.
        source: The runs' graphs, where they cannot find them themselves; for fine-tuning runs, new molecules.
        reader: Their reader; by default as in training.
        options: Options of the reader; by default as in training.
        evaluate: Whether runs without a result are evaluated.
        maps: Whether maps before and after training are drawn.
        jobs: Folds evaluated in parallel.
        say: Receives progress messages.
    """
    paths = list(dict.fromkeys(Path(run).resolve() for run in runs))
    if not paths:
        raise ConfigError("there is no run to report on", hint="name one or more run folders")
    stored = [path for path in paths if is_results_folder(path)]
    if stored:
        if len(paths) > 1:
            raise ConfigError(
                "the results of a comparison have a report of their own", where=str(stored[0]),
                hint="name that folder alone",
            )  # fmt: skip
        return results_report(stored[0])
    finetuned = [path for path in paths if is_transfer_run(path)]
    if finetuned:
        others = [path for path in paths if path not in finetuned]
        return transfer_reports(finetuned, others, source, options)
    evaluated = [
        evaluated_run(path, source, reader=reader, options=options, evaluate=evaluate, jobs=jobs, say=say)
        for path in paths
    ]
    by_graphs: dict[str, list[EvaluatedRun]] = {}
    for run in evaluated:
        by_graphs.setdefault(run.collection.content_hash, []).append(run)
    parts = [_collection_report(group, maps, say) for group in by_graphs.values()]
    if len(parts) == 1:
        return parts[0]
    names = ", ".join(dict.fromkeys(group[0].collection.name for group in by_graphs.values()))
    title = f"Runs on {names}"
    labelled = [
        (label, run.result)
        for group in by_graphs.values()
        for label, own in group_by_method(group).items()
        for run in own
        if run.result is not None
    ]
    if not labelled:
        lead = f"{len(evaluated)} runs on {len(parts)} collections of graphs, none of them evaluated."
        return Report(title=title, lead=lead, parts=[replace(part, folded=True) for part in parts])
    report = overview([result for _, result in labelled], [label for label, _ in labelled], title)
    return replace(report, parts=[replace(part, folded=True, protocol="") for part in parts])


def _collection_report(runs: Sequence[EvaluatedRun], maps: bool, say: Callable[[str], None]) -> Report:
    """Runs on the same graphs: a single run, or a comparison with a section per method."""
    name = runs[0].collection.name
    methods = group_by_method(runs)
    parts = []
    for method, repetitions in methods.items():
        say(f"drawing {method} on {name}")
        parts.append(_method_report(method, repetitions, maps))
    if len(runs) == 1:
        return parts[0]
    title = f"{', '.join(methods)} on {name}"
    results = [
        (method, run.result) for method, group in methods.items() for run in group if run.result is not None
    ]
    if not results:
        return Report(title=title, lead=f"{len(runs)} runs, none of them evaluated.", parts=parts)
    rows, protocol, notes = _result_rows([method for method, _ in results], [result for _, result in results])
    accuracy = {method: [r.accuracy for other, r in results if other == method] for method, _ in results}
    means = ", ".join(f"{method} {100 * float(np.mean(values)):.1f} %" for method, values in accuracy.items())
    return Report(
        title=title,
        lead=f"Accuracy on {name}: {means}.",
        rows=rows,
        tables=_health_table(methods),
        protocol=protocol + SEED,
        figures=[_accuracy_figure(accuracy)],
        warnings=[LEAKY] if any(result.leaky for _, result in results) else [],
        notes=notes,
        about=_shared_about(parts, name, len(runs[0].collection)),
        environment=parts[0].environment,
        # Without what the comparison has.
        parts=[
            replace(part, rows=(), protocol="", about=_own_about(part), environment={}, folded=True)
            for part in parts
        ],
    )


SHARED = ("graphs", "features", "method")  # facts that are the same for all methods, or in the heading


def _shared_about(parts: Sequence[Report], name: str, graphs: int) -> dict[str, str]:
    facts = {"graphs": f"{name}, {graphs:,} graphs"}
    if "features" in parts[0].about:
        facts["features"] = parts[0].about["features"]
    return facts


def _own_about(part: Report) -> dict[str, str]:
    return {key: value for key, value in part.about.items() if key not in SHARED}


def group_by_method(runs: Sequence[EvaluatedRun]) -> dict[str, list[EvaluatedRun]]:
    """Runs by method. Runs of one method with other settings have a title with the settings that differ."""
    groups: dict[tuple[str, ...], list[EvaluatedRun]] = {}
    for run in runs:
        key = (run.method, *(f"{name}={value}" for name, value in sorted(run.recipe.items())))
        groups.setdefault(key, []).append(run)
    titled = {}
    for key, group in groups.items():
        shared = set.intersection(*(set(other) for other in groups if other[0] == key[0]))
        differing = ", ".join(setting for setting in key[1:] if setting not in shared)
        titled[f"{key[0]} ({differing})" if differing else key[0]] = group
    return titled


def _method_report(method: str, runs: Sequence[EvaluatedRun], maps: bool) -> Report:
    """One method on one collection: scores over its seeds, maps and curves of the first seed."""
    first = runs[0]
    results = [run.result for run in runs if run.result is not None]
    rows, protocol, notes = _result_rows([method] * len(results), results) if results else ([], "", [])
    figures: list[ReportFigure] = []
    tables: list[ReportTable] = []
    if results:
        classes = results[0].classes
        matrix = np.sum([confusion_matrix(r.labels, r.predictions, len(classes)) for r in results], axis=0)
        tables.append(class_table(matrix, classes, len(results)))
        over = f", summed over {len(results)} seeds." if len(results) > 1 else "."
        caption = f"Graphs by true and predicted class, each predicted when its fold was held out{over}"
        figures.append(ReportFigure("Confusion matrix", svg_of(confusion_figure(matrix, classes)), caption))
    if maps:
        figures.append(_map(first.folder, first.collection))
    metrics = _metrics(first.folder)
    name = method if len(runs) == 1 else f"{method}, seed {first.seed}"
    environments = first.folder.environments() if first.folder.environment.exists() else []
    return Report(
        title=f"{method} on {first.collection.name}",
        lead=_method_lead(method, first, results),
        about=_about(runs, metrics),
        rows=rows,
        protocol=protocol,
        tables=tables,
        figures=[*figures, *_training_figures(metrics, name)],
        health=_health(metrics),
        config=dump_yaml(first.config),
        environment={key: str(value) for key, value in environments[-1].items()} if environments else {},
        warnings=[LEAKY] if any(result.leaky for result in results) else [],
        notes=[*notes, *dict.fromkeys(run.note for run in runs if run.note)],
    )


def comparison_report(
    comparison: Comparison,
    results: Sequence[Result],
    trials: Sequence[ProbeTrial],
    runs: Path,
    collection: GraphCollection,
    *,
    shown: str = "graphsc",
) -> Report:
    """The report on a comparison on one data set.

    Args:
        comparison: Methods on one data set.
        results: The results that are compared.
        trials: Their trials.
        runs: Parent folder of training runs.
        collection: The graphs.
        shown: The method whose curves and maps are drawn.
    """
    column = comparison.columns[0]
    of_shown = [trial for trial in trials if trial.method == shown]
    first = RunFolder(runs / of_shown[0].run_name())
    accuracy = {m: [r.accuracy for r in results if r.method == m] for m in comparison.methods}
    metrics = _metrics(first)
    curves = [_accuracy_by_epoch(trial, runs, collection) for trial in of_shown]
    epochs = sorted(set.intersection(*(set(curve) for curve in curves)))
    series = {shown: np.array([[curve[epoch] for epoch in epochs] for curve in curves])}
    return Report(
        title=f"{', '.join(comparison.methods)} on {column}",
        lead=_comparison_lead(comparison, shown, column),
        rows=_rows_of_comparison(comparison),
        protocol=" ".join(comparison.words) + SEED,
        figures=[
            _accuracy_figure(accuracy),
            ReportFigure(
                "Accuracy during training",
                svg_of(accuracy_curves(epochs, series, untrained=_untrained(accuracy))),
                f"{shown}, evaluated at the epochs whose embeddings were kept, each seed on its own folds. "
                "The band is one deviation over seeds. It is not used to choose an epoch.",
            ),
            _map(first, collection),
            *_training_figures(metrics, f"{shown}, first seed"),
        ],
        health=_health(metrics),
        config=dump_yaml(results[-1].config),
        environment={name: str(value) for name, value in results[-1].environment.items()},
        warnings=[LEAKY] if comparison.leaky else [],
    )


def _accuracy_by_epoch(trial: ProbeTrial, runs: Path, collection: GraphCollection) -> dict[int, float]:
    codes, _ = labels_of(collection)
    embeddings, _ = rows_by_epoch(RunFolder(runs / trial.run_name()), collection)
    return {
        epoch: evaluate(rows, codes, trial.protocol, seed=trial.seed).accuracy
        for epoch, rows in embeddings.items()
    }


# Sentences and tables.


def _comparison_lead(comparison: Comparison, method: str, column: str) -> str:
    cell = comparison.cells[method, column]
    sentence = f"{method} reaches {cell.summary.mean:.1f} % on {column} ({cell.summary.seeds} seeds)"
    if cell.difference is None or cell.p_value is None:
        return f"{sentence}."
    verdict = "a significant difference" if cell.p_value < LEVEL else "within noise"
    return f"{sentence}, {cell.difference:+.1f} points against the untrained encoder: {verdict}."


def _method_lead(method: str, run: EvaluatedRun, results: Sequence[Result]) -> str:
    name = run.collection.name
    if not results:
        return f"{method} on {name}: {len(run.collection):,} graphs, no accuracy."
    folds = len(results[0].accuracies)
    seeds = f"{len(results)} seeds" if len(results) > 1 else f"seed {results[0].seed}"
    mean = 100 * float(np.mean([result.accuracy for result in results]))
    return f"{method} reaches {mean:.1f} % on {name} ({seeds}, {folds} folds)."


def _about(runs: Sequence[EvaluatedRun], metrics: Sequence[Mapping[str, float]]) -> dict[str, str]:
    first = runs[0]
    facts = {
        "method": first.method,
        "graphs": f"{first.collection.name}, {len(first.collection):,} graphs",
        "features": first.collection.features.name,
        "seeds" if len(runs) > 1 else "seed": ", ".join(str(run.seed) for run in runs),
    }
    if rejected := first.collection.rejected:
        reasons = "; ".join(f"{r} ({n:,})" for r, n in common_reasons(row.reason for row in rejected))
        read = len(first.collection) + len(rejected)
        facts["rows"] = f"{read:,} read, {len(rejected):,} rejected: {reasons}; listed in rejected.csv"
    if malformed := first.collection.rejected_edges:
        reasons = "; ".join(f"{r} ({n:,})" for r, n in common_reasons(row.reason for row in malformed))
        facts["edge rows"] = f"{len(malformed):,} rejected: {reasons}; listed in rejected.csv"
    if first.config.get("encoder"):
        facts["encoder"] = str(first.config["encoder"])
    if metrics:
        facts["epochs"] = f"{metrics[-1]['epoch']:.0f}"
        facts["seconds of training"] = f"{sum(row.get('seconds', 0.0) for row in metrics):.1f}"
    facts["run" if len(runs) == 1 else "runs"] = ", ".join(run.folder.path.name for run in runs)
    return facts


def _result_rows(labels: Sequence[str], results: Sequence[Result]) -> tuple[list[ResultRow], str, list[str]]:
    """Rows, protocols and notes. Runs on different folds are not tested; a note says so."""
    try:
        comparisons, notes = [compare_results(results, labels=labels)], []
    except DataError as error:
        notes = [f"Differences are not tested: {error}."]
        comparisons = []
        for label in dict.fromkeys(labels):
            own = [result for other, result in zip(labels, results, strict=True) if other == label]
            comparisons.append(compare_results(own, labels=[label] * len(own)))
    rows = [row for comparison in comparisons for row in _rows_of_comparison(comparison)]
    protocols = dict.fromkeys(words for comparison in comparisons for words in comparison.words)
    return rows, " ".join(protocols), notes


def _rows_of_comparison(comparison: Comparison) -> list[ResultRow]:
    """One row per method on the first data set; shares, not per cent."""
    cells = {method: comparison.cells.get((method, comparison.columns[0])) for method in comparison.methods}
    return [
        ResultRow(
            method=method,
            mean=cell.summary.mean / 100,
            over_seeds=None if cell.summary.seeds == 1 else cell.summary.over_seeds_ddof1 / 100,
            over_folds=cell.summary.over_folds_ddof0 / 100,
            difference=None if cell.difference is None else cell.difference / 100,
            p_value=cell.p_value,
            published=None if cell.published is None else cell.published[0] / 100,
        )
        for method, cell in cells.items()
        if cell is not None
    ]


def _health_table(methods: Mapping[str, Sequence[EvaluatedRun]]) -> list[ReportTable]:
    """Health of each method's first seed; no table where none was trained."""
    facts = {method: _health(_metrics(runs[0].folder)) for method, runs in methods.items()}
    names = list(dict.fromkeys(name for health in facts.values() for name in health))
    rows = [
        [method, *(health.get(name, "\N{EN DASH}").removesuffix(" dimensions") for name in names)]
        for method, health in facts.items()
    ]
    headers = ["Method", *(name.capitalize() for name in names)]
    caption = "At the last epoch of the first seed; methods without training epochs have none."
    return [ReportTable("Health side by side", headers, rows, caption)] if names else []


def _metrics(folder: RunFolder) -> list[dict[str, float]]:
    """All rows of a run's metrics; none where it did not train."""
    return Metrics(folder.metrics, keep=10**9).rows


def _health(metrics: Sequence[Mapping[str, float]]) -> dict[str, str]:
    """Health of the embeddings at the last epoch; empty where nothing was trained."""
    last = metrics[-1] if metrics else {}
    facts = {}
    if "effective_rank" in last:
        facts["effective rank"] = f"{last['effective_rank']:.1f} of {last['dimensions']:.0f} dimensions"
    for key in ("uniformity", "alignment", "mean_cosine"):
        if key in last:
            facts[key.replace("_", " ")] = f"{last[key]:.2f}"
    return facts


# Figures.


def _untrained(accuracy: Mapping[str, Sequence[float]]) -> float | None:
    return float(np.mean(accuracy[CONTROL])) if CONTROL in accuracy else None


def _accuracy_figure(accuracy: Mapping[str, Sequence[float]]) -> ReportFigure:
    caption = "One dot per seed; the diamond is the mean, the bar one deviation over seeds."
    if CONTROL in accuracy:
        caption += " Dashed: the same encoder with random initialisation."
    figure = accuracy_bars(accuracy, untrained=_untrained(accuracy))
    return ReportFigure("Accuracy by method", svg_of(figure), caption)


def _training_figures(metrics: list[dict[str, float]], name: str) -> list[ReportFigure]:
    """Loss and health by epoch; none where nothing was trained."""
    if not metrics:
        return []
    figures = [
        ReportFigure("Loss", svg_of(loss_curves(metrics)), f"{name}: the loss and its weighted parts.")
    ]
    if any(key in row for row in metrics for key, _, _ in HEALTH):
        caption = f"{name}. A rank near 1 would mean that the embeddings have collapsed."
        figure = health_curves(metrics)
        figures.append(ReportFigure("Health of the representation", svg_of(figure), caption))
    return figures


def _map(folder: RunFolder, collection: GraphCollection) -> ReportFigure:
    """The same graphs by the first and by the last kept embeddings, coloured by class."""
    by_epoch, gram = rows_by_epoch(folder, collection)
    groups = _groups(collection)
    caption = "t-SNE of the same graphs before and after training. Training used no labels."
    if len(by_epoch) == 1:
        caption = "t-SNE of the graphs. The method has no training epochs, so there is one map."
    sample = np.arange(len(groups))
    if len(groups) > MAP_GRAPHS:
        sample = np.sort(numpy_generator(0, "sample of a map").permutation(len(groups))[:MAP_GRAPHS])
        caption += f" A random sample of {MAP_GRAPHS:,} of {len(groups):,} graphs."
    maps = {}
    for epoch in dict.fromkeys((min(by_epoch), max(by_epoch))):
        rows = kernel_pca(by_epoch[epoch]) if gram else by_epoch[epoch]
        title = f"after {epoch} epochs" if epoch else "untrained" if len(by_epoch) > 1 else "embeddings"
        maps[title] = project(rows[sample])
    figure = map_figure(maps, [groups[index] for index in sample.tolist()])
    return ReportFigure("Maps of the graphs", svg_of(figure), caption)


def _groups(collection: GraphCollection) -> list[str]:
    """The class of each graph; one group for all where there are no classes."""
    try:
        codes, classes = labels_of(collection)
    except DataError:
        return ["graphs"] * len(collection)
    return [f"class {classes[code]}" for code in codes]
