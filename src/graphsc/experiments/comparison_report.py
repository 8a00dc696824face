"""One page on a comparison: methods by data sets, average ranks, and the methods folded below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.errors import DataError
from graphsc.core.run_folder import RunFolder
from graphsc.evaluation.metrics import class_scores, confusion_matrix
from graphsc.evaluation.significance import complete, critical_difference
from graphsc.experiments.comparison import Comparison, column_names, compare_results, row_name
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.tables import LEVEL
from graphsc.report.critical_difference import critical_difference_diagram
from graphsc.report.figure import svg_of
from graphsc.report.html import Report, ReportFigure, ReportTable, ReportVerdict, percent

HIGHEST = "\N{BLACK STAR}"
BETTER, WORSE = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}"
LEAKY = "LEAKY: epochs were chosen by test accuracy; these numbers are not results."
SEED = " A seed is a whole repetition: initialisation, training and folds."


def is_results_folder(path: Path) -> bool:
    """Whether a folder holds the results of a comparison, and is no run."""
    return any(path.glob("*.jsonl")) and not RunFolder(path).config.exists()


def results_report(folder: Path) -> Report:
    """One page on all stored results of a comparison: data sets, ranks, and the methods folded below."""
    results = [result for result in ResultStore(folder).all() if isinstance(result, Result)]
    if not results:
        raise DataError(
            "this folder has no results of graphsc compare", where=str(folder),
            hint="a fine-tuning table is shown by graphsc results show",
        )  # fmt: skip
    labels = _distinct_labels(results)
    report = overview(results, labels, "")
    parts = []
    order = (
        [row[0] for row in report.verdict.table.rows] if report.verdict and report.verdict.table else labels
    )
    for label in dict.fromkeys(order):
        own = [result for other, result in zip(labels, results, strict=True) if other == label]
        classes = [
            (data, [result for title, result in zip(column_names(own), own, strict=True) if title == data])
            for data in dict.fromkeys(column_names(own))
        ]
        tables = []
        for data, seeds in classes:
            matrix = np.sum(
                [confusion_matrix(r.labels, r.predictions, len(r.classes)) for r in seeds], axis=0
            )
            table = class_table(matrix, seeds[0].classes, len(seeds))
            tables.append(replace(table, title=f"{data}: scores by class", caption=""))
        mean = ", ".join(
            f"{data} {100 * float(np.mean([r.accuracy for r in seeds])):.1f} %" for data, seeds in classes
        )
        shown = {key: own[-1].config[key] for key in ("settings", "training") if key in own[-1].config}
        parts.append(
            Report(title=label, lead=f"{mean}.", tables=tables, config=dump_yaml(shown), folded=True)
        )
    environment = {name: str(value) for name, value in results[-1].environment.items()}
    about = {**report.about, "folder": folder.name}
    return replace(report, parts=parts, environment=environment, about=about)


def _distinct_labels(results: Sequence[Result]) -> list[str]:
    """The row of each result: its method, with the settings by which results of one method differ."""
    settings = []
    for result in results:
        trial = result.trial
        own = {
            str(key): str(value)
            for key, value in cast(Mapping[str, object], trial.get("settings") or {}).items()
        }
        training = cast(Mapping[str, object], trial.get("training") or {})
        own |= {f"training.{key}": str(value) for key, value in training.items() if key != "seed"}
        own |= {key: str(trial.get(key)) for key in ("encoder", "selection", "inductive")}
        settings.append(own)
    rows = [row_name(result) for result in results]
    labels = []
    for row, own, result in zip(rows, settings, results, strict=True):
        others = [
            other
            for name, other, beside in zip(rows, settings, results, strict=True)
            if name == row and beside.data == result.data
        ]
        differing = [
            f"{key}={value}" for key, value in own.items() if any(o.get(key) != value for o in others)
        ]
        labels.append(f"{row} ({', '.join(differing)})" if differing else row)
    return labels


def overview(results: Sequence[Result], labels: Sequence[str], title: str) -> Report:
    """Methods by data sets, their ranks and the critical-difference diagram."""
    try:
        comparison, notes = compare_results(results, labels=labels), []
    except DataError as error:
        notes = [f"Differences are not tested: {error}."]
        parts = [
            compare_results(
                [result for other, result in zip(labels, results, strict=True) if other == label],
                labels=[label] * labels.count(label),
            )
            for label in dict.fromkeys(labels)
        ]
        cells = {place: cell for part in parts for place, cell in part.cells.items()}
        columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
        words = tuple(dict.fromkeys(word for part in parts for word in part.words))
        comparison = Comparison(tuple(dict.fromkeys(labels)), columns, cells, {}, words)
    ranks = comparison.ranks if len(comparison.columns) > 1 else {}
    seeds = sorted({cell.summary.seeds for cell in comparison.cells.values()})
    table, diagram = _overview_table(comparison, ranks), None
    means = complete(comparison.means())
    if len(ranks) > 1 and means.shape[1] > 1:
        difference = critical_difference(*means.shape)
        caption = (
            f"Above: average ranks over the {means.shape[1]} data sets that every method has. A bar "
            "joins methods whose ranks differ by less than the critical difference of "
            f"{difference:.2f} (Nemenyi, 5 %)."
        )
        table = replace(table, caption=f"{table.caption} {caption}")
        figure = critical_difference_diagram(ranks, difference)
        diagram = ReportFigure("Critical-difference diagram", svg_of(figure))
    sentences = _overview_lead(comparison, ranks)
    sets = "1 data set" if len(comparison.columns) == 1 else f"{len(comparison.columns)} data sets"
    return Report(
        title=title or f"{len(comparison.methods)} methods on {sets}",
        lead=" ".join(sentences),
        verdict=ReportVerdict("even", sentences[0].rstrip("."), sentences[1:], table, diagram),
        about={
            "methods": str(len(comparison.methods)),
            "data sets": ", ".join(comparison.columns),
            "seeds": " to ".join(str(number) for number in dict.fromkeys((seeds[0], seeds[-1]))),
        },
        protocol=" ".join(comparison.words) + SEED,
        warnings=[LEAKY] if comparison.leaky else [],
        notes=notes,
    )


def _overview_lead(comparison: Comparison, ranks: Mapping[str, float]) -> list[str]:
    """The best method, and whether it differs from the control."""
    control = comparison.control
    if ranks:
        best = min(ranks, key=lambda method: ranks[method])
        text = f"{best} has the best average rank, {ranks[best]:.2f} of {len(ranks)}."
    else:
        column = comparison.columns[0]
        cells = {
            m: comparison.cells[m, column].summary.mean
            for m in comparison.methods
            if (m, column) in comparison.cells
        }
        best = max(cells, key=lambda method: cells[method])
        text = f"{best} has the highest accuracy on {column}, {cells[best]:.1f} %."
    tested = {c: cell for (m, c), cell in comparison.cells.items() if m == best and cell.p_value is not None}
    if best == control or not tested:
        return [text]
    better, worse = (
        sum(
            cell.p_value < LEVEL and sign * (cell.difference or 0) > 0
            for cell in tested.values()
            if cell.p_value is not None
        )
        for sign in (1, -1)
    )
    return [
        text,
        f"Against {control}, it is significantly better on {better} of {len(tested)} data "
        f"{'set' if len(tested) == 1 else 'sets'} and significantly worse on {worse}.",
    ]


def _overview_table(comparison: Comparison, ranks: Mapping[str, float]) -> ReportTable:
    """Accuracies by method and data set, the best ranks first."""
    methods = sorted(comparison.methods, key=lambda method: ranks.get(method, np.inf))
    best = np.nanmax(comparison.means(), axis=0, initial=-np.inf)
    rows = []
    for method in methods:
        texts = []
        for column, highest in zip(comparison.columns, best, strict=True):
            cell = comparison.cells.get((method, column))
            if cell is None:
                texts.append("\N{EN DASH}")
                continue
            deviation = cell.summary.over_seeds_ddof1
            text = f"{cell.summary.mean:.1f}" + (
                "" if np.isnan(deviation) else f"\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{deviation:.1f}"
            )
            text += f"\N{NO-BREAK SPACE}{HIGHEST}" if cell.summary.mean == highest else ""
            if cell.difference is not None and cell.p_value is not None:
                mark = "" if cell.p_value >= LEVEL else f" {BETTER if cell.difference > 0 else WORSE}"
                text += f"\n{cell.difference:+.1f}{mark}"
            texts.append(text)
        rank = [f"{ranks[method]:.2f}"] if method in ranks else ["\N{EN DASH}"] if ranks else []
        rows.append([method, *rank, *texts])
    headers = ["Method", *(["Average rank"] if ranks else []), *comparison.columns]
    caption = (
        "Accuracy in per cent: mean over seeds ± standard deviation over seeds (ddof 1); "
        f"{HIGHEST} the highest of a data set. Below it, the "
        f"difference to {comparison.control} in points; {BETTER} significantly better, {WORSE} significantly "
        "worse at 5 %, corrected for the number of methods."
    )
    return ReportTable("Accuracy by method and data set", headers, rows, caption)


def class_table(matrix: NDArray[np.int64], classes: Sequence[str], seeds: int) -> ReportTable:
    scores = class_scores(matrix)
    measures = (scores.precision, scores.recall, scores.f1)
    rows = [
        [name, *(percent(measure[k]) for measure in measures), f"{scores.graphs[k]:,}"]
        for k, name in enumerate(classes)
    ]
    caption = (
        "In per cent. Precision: the share of graphs predicted as a class that belong to it. Recall: the "
        "share of graphs of a class that are predicted as it. F1 is their harmonic mean."
    )
    if seeds > 1:
        caption += f" Each graph counts once for each of {seeds} seeds."
    return ReportTable("Scores by class", ("Class", "Precision", "Recall", "F1", "Graphs"), rows, caption)
