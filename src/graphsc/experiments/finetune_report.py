"""Reports on fine-tuning runs: scores, curves, and the molecules that are worth a second look."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.files import read_rows
from graphsc.core.run_folder import RunFolder
from graphsc.evaluation.metrics import MEASURES, Task, confusion_matrix, measure
from graphsc.finetuning.result import RULES, TransferResult, column_names, load_transfer
from graphsc.finetuning.splits import NAMES
from graphsc.report.curves import score_curves
from graphsc.report.figure import svg_of
from graphsc.report.html import Report, ReportCard, ReportFigure, ReportGallery, ReportTable
from graphsc.report.predictions import confusion_figure, parity_figure, roc_figure
from graphsc.training.callbacks import Metrics

MAX_TASKS = 40  # in the table by task
MAX_FIGURE_TASKS = 6  # in ROC curves and parity plots
MAX_MOLECULES = 12  # in a gallery
TITLES = {"roc_auc": "ROC-AUC", "average_precision": "average precision", "rmse": "RMSE", "mae": "MAE"}


def is_transfer_run(path: Path) -> bool:
    """Whether a run folder is that of a fine-tuning."""
    return "transfer" in RunFolder(path).load_config()


def transfer_reports(finetuned: Sequence[Path], others: Sequence[Path] = ()) -> Report:
    """Fine-tuning runs, a section each.

    Raises:
        ConfigError: Where there are `others`: runs whose embeddings are evaluated by another protocol.
    """
    if others:
        raise ConfigError(
            "fine-tuned models and embeddings are evaluated by different rules", where=str(others[0]),
            hint="write a report for each kind of run",
        )  # fmt: skip
    reports = [transfer_report(path) for path in finetuned]
    if len(reports) == 1:
        return reports[0]
    return Report(title="Fine-tuned models", lead=" ".join(report.lead for report in reports), parts=reports)


def transfer_report(path: Path) -> Report:
    """The report on one run of `graphsc finetune`."""
    folder = RunFolder(path)
    config = folder.load_config()
    seeds = sorted(path.glob("seed-*"), key=lambda seed: int(seed.name.removeprefix("seed-")))
    seeds = [seed for seed in seeds if (seed / "result.json").exists()]
    if not seeds:
        raise NotFoundError(
            "this run has not finished", where=str(path), hint="fine-tune it to its end first"
        )
    results = [load_transfer(seed / "result.json") for seed in seeds]
    first = results[0]
    rule = "best" if "best" in first.rules else "last"
    data = cast(dict[str, object], config["data"])
    environments = folder.environments()
    return Report(
        title=f"{data['name']}: {config['method']}, fine-tuned",
        lead=_lead(results, rule, str(data["name"])),
        about={
            "molecules": f"{data['name']}, {data['graphs']:,}",
            "to predict": ", ".join(first.tasks[:8]) + (" ..." if len(first.tasks) > 8 else ""),
            "pre-training": str(config["method"]),
            "seeds": str(len(results)),
            "run": path.name,
        },
        protocol=f"{first.words} Models are evaluated {' and '.join(RULES[name] for name in first.rules)}.",
        tables=[_score_table(results), _split_table(first), *_task_table(results, rule)],
        galleries=molecule_galleries(path / "predictions.csv", first),
        figures=[*_score_curves(seeds, first), *_prediction_figures(first, rule)],
        config=dump_yaml(config),
        environment={key: str(value) for key, value in environments[-1].items()} if environments else {},
    )


def _lead(results: Sequence[TransferResult], rule: str, name: str) -> str:
    mean = float(np.mean([result.score(rule) for result in results]))
    if np.isnan(mean):
        return f"{name} has no test molecules that predictions can be scored on."
    seeds = f"{len(results)} seed{'s' if len(results) > 1 else ''}"
    return f"{_title(results[0].main)} {mean:.3f} on test molecules of {name}, {RULES[rule]} ({seeds})."


def _title(measure: str) -> str:
    return TITLES.get(measure, measure.replace("_", " "))


# Tables.


def _score_table(results: Sequence[TransferResult]) -> ReportTable:
    rows = []
    for rule, scores in results[0].rules.items():
        epochs = "-" if scores.epoch is None else ", ".join(str(one.rules[rule].epoch) for one in results)
        for name in MEASURES[results[0].kind]:
            values = np.array([result.score(rule, "test", name) for result in results])
            title = f"{RULES[rule]}: {_title(name)}"
            rows.append([title, f"{values.mean():.4f}", f"{values.std():.4f}", epochs])
    return ReportTable(
        "Scores on test molecules", ("Model", "Mean", "Over seeds", "Epochs"), rows,
        "Means over the tasks that have a score. The deviation is over seeds (ddof 0).",
    )  # fmt: skip


def _split_table(result: TransferResult) -> ReportTable:
    counts = np.bincount(result.parts, minlength=3)
    rows = [[name, f"{counts[part]:,}"] for part, name in enumerate(NAMES)]
    return ReportTable("Split", ("Part", "Molecules"), rows)


def _task_table(results: Sequence[TransferResult], rule: str) -> list[ReportTable]:
    """Scores by task; no table where there are many tasks."""
    first = results[0]
    if len(first.tasks) > MAX_TASKS:
        return []
    classification = first.kind == "classification"
    means = {
        name: np.array([measure(result.rules[rule].test, result.kind)[name] for result in results]).mean(
            axis=0
        )
        for name in MEASURES[first.kind]
    }
    rows = []
    for k, task in enumerate(first.tasks):
        labels = first.rules[rule].test[k].labels
        both = f"{int((labels > 0.5).sum())} / {int((labels <= 0.5).sum())}"
        counts = both if classification else f"{len(labels)}"
        scores = ["-" if np.isnan(values[k]) else f"{values[k]:.4f}" for values in means.values()]
        rows.append([task, *scores, counts])
    headers = ("Task", *map(_title, means), "Positives / negatives" if classification else "Labels")
    caption = f"The model {RULES[rule]}, mean over seeds. A dash: only one class among the test molecules."
    return [ReportTable("Scores by task", headers, rows, caption)]


# Figures.


def _score_curves(seeds: Sequence[Path], result: TransferResult) -> list[ReportFigure]:
    """Scores by epoch, over the epochs that all seeds have; none where learning rates were searched."""
    metrics = [rows for seed in seeds if (rows := Metrics(RunFolder(seed).metrics, keep=10**9).rows)]
    epochs = min((len(rows) for rows in metrics), default=0)
    series = {}
    for part in ("valid", "test"):
        name = f"{part}_{result.main}"
        if epochs and all(name in row for rows in metrics for row in rows[:epochs]):
            series[part] = [[row[name] for row in rows[:epochs]] for rows in metrics]
    if not series:
        return []
    figure = score_curves(range(1, epochs + 1), series, _title(result.main))
    caption = "Mean over seeds; the band is one deviation. The test score is not used to choose an epoch."
    return [ReportFigure("Scores during training", svg_of(figure), caption)]


def _prediction_figures(result: TransferResult, rule: str) -> list[ReportFigure]:
    """ROC curves and a confusion matrix, or predicted against measured values, of the first seed."""
    tasks: dict[str, Task] = dict(zip(result.tasks, result.rules[rule].test, strict=True))
    shown = dict(list(tasks.items())[:MAX_FIGURE_TASKS])
    if result.kind == "regression":
        return [
            ReportFigure(
                f"{name}: predicted and measured", svg_of(parity_figure(task, name)),
                "Test molecules, first seed.",
            )
            for name, task in shown.items()
            if len(task.labels)
        ]  # fmt: skip
    scored = {name: task for name, task in shown.items() if len(np.unique(task.labels)) == 2}
    if not scored:
        return []
    caption = "Test molecules, first seed; the number is the area under the curve."
    figures = [ReportFigure("ROC curves", svg_of(roc_figure(scored)), caption)]
    if len(tasks) == 1:
        task = next(iter(scored.values()))
        # Scores are logits: above zero the positive class is more likely.
        matrix = confusion_matrix((task.labels > 0.5).astype(np.int64), (task.scores > 0).astype(np.int64), 2)
        caption = "Test molecules, first seed, at a probability of one half."
        figures.append(
            ReportFigure("Confusion matrix", svg_of(confusion_figure(matrix, ["0", "1"])), caption)
        )
    return figures


# Held-out molecules with uncertain or wrong predictions, drawn.


def molecule_galleries(path: Path, result: TransferResult) -> list[ReportGallery]:
    """The molecules on which seeds disagree most, and those with the largest errors.

    Args:
        path: The table of predictions of a run; without it there are no galleries.
        result: A result of the run, for its tasks.
    """
    if not path.exists():
        return []
    names = column_names(result.tasks, result.kind, result.tasks)
    rows = read_rows(path, "predictions", hint="remove the file to report without molecules")
    try:
        predicted = _numbers(rows, [prediction for prediction, _ in names])
        spread = _numbers(rows, [deviation for _, deviation in names])
        labels = _numbers(rows, result.tasks)
        test = np.array([row["part"] == "test" for row in rows], dtype=bool)
        smiles = [row["smiles"] for row in rows]
    except (ValueError, KeyError) as error:
        raise DamagedFileError("not a table of predictions", where=str(path)) from error
    if not rows:
        return []
    galleries = []
    if spread.any():  # zero with a single seed
        cards = [
            _card(smiles[i], result, k, predicted[i, k], labels[i, k], spread[i, k])
            for i, k in _largest(spread)
        ]
        caption = "Held-out molecules by their spread over seeds: the model is least certain about them."
        galleries.append(ReportGallery("Most uncertain molecules", cards, caption))
    errors = np.where(test[:, None], np.abs(predicted - labels), np.nan)
    if result.kind == "regression":  # tasks have different units
        deviation = np.nanstd(np.where(np.isnan(labels).all(axis=0), 0.0, labels), axis=0)
        errors = errors / np.where(deviation > 0, deviation, 1.0)
    cards = [_card(smiles[i], result, k, predicted[i, k], labels[i, k]) for i, k in _largest(errors)]
    if cards:
        caption = "Test molecules farthest from their label: an error of the model, or of the label."
        galleries.append(ReportGallery("Largest errors", cards, caption))
    return galleries


def _numbers(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> NDArray[np.float64]:
    """Columns as an array, rows x names; empty cells are NaN."""
    values = [[np.nan if row[name] == "" else float(row[name]) for name in names] for row in rows]
    return np.array(values, dtype=np.float64).reshape(len(rows), len(names))


def _largest(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """(molecule, task) of the molecules with the largest values; molecules without any are left out."""
    known = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-known.max(axis=1, initial=-np.inf), kind="stable")
    return [(int(i), int(known[i].argmax())) for i in order[:MAX_MOLECULES] if np.isfinite(known[i]).any()]


def _card(
    smiles: str,
    result: TransferResult,
    task: int,
    predicted: float,
    label: float,
    spread: float | None = None,
) -> ReportCard:
    classification = result.kind == "classification"
    digits = ".2f" if classification else ".3g"
    facts = {"task": result.tasks[task]} if len(result.tasks) > 1 else {}
    value = f"{predicted:{digits}}" + ("" if spread is None else f" ± {spread:{digits}}")
    facts["probability" if classification else "predicted"] = value
    facts["label"] = "unknown" if np.isnan(label) else f"{label:g}"
    return ReportCard(smiles, facts, _structure(smiles))


def _structure(smiles: str) -> str:
    """The structure as SVG; empty where it is too large for a card or RDKit is not installed."""
    if importlib.util.find_spec("rdkit") is None:
        return ""
    from graphsc.report.drawings import MAX_NODES
    from graphsc.report.molecules import draw_smiles, formula_svg

    drawing = draw_smiles(smiles)
    return "" if drawing is None or len(drawing.positions) > MAX_NODES else formula_svg(drawing)
