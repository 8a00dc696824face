"""A fine-tuning run as one page: scores, what they rest on, curves, and the molecules to look at again."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.run_folder import RunFolder
from graphsc.evaluation.metrics import MEASURES, Task, confusion_matrix, measure
from graphsc.experiments.run_report import as_figure, metrics_of
from graphsc.finetuning.result import RULES, TransferResult, column_names, load_transfer
from graphsc.finetuning.splits import NAMES
from graphsc.report.curves import score_curves
from graphsc.report.html import Report, ReportCard, ReportFigure, ReportGallery, ReportTable
from graphsc.report.predictions import confusion_figure, parity_figure, roc_figure

# The held-out molecules of a fine-tuning run that are worth a look, drawn: doubtful ones, and errors.


MOST = 12

Rows = Sequence[Mapping[str, str]]


def molecule_galleries(path: Path, result: TransferResult) -> list[ReportGallery]:
    """The molecules on which seeds disagree most, and those predicted worst; none without predictions."""
    if not path.exists():
        return []
    names = column_names(result.tasks, result.kind, result.tasks)
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        predicted = _numbers(rows, [pair[0] for pair in names])
        spread = _numbers(rows, [pair[1] for pair in names])
        labels = _numbers(rows, result.tasks)
        test = np.array([row["part"] == "test" for row in rows], dtype=bool)
        smiles = [row["smiles"] for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFileError("not a table of predictions", where=str(path)) from error
    if not rows:
        return []
    found = []
    if spread.any():  # one seed agrees with itself
        caption = (
            "Held-out molecules by the spread over seeds: what the model knows least about, and worth a test."
        )
        places = _largest(spread)
        cards = [_card(smiles[i], result, k, predicted[i, k], labels[i, k], spread[i, k]) for i, k in places]
        found.append(ReportGallery("Most uncertain molecules", cards, caption))
    errors = np.where(test[:, None], np.abs(predicted - labels), np.nan)
    if result.kind == "regression":  # tasks have units of their own
        deviation = np.nanstd(np.where(np.isnan(labels).all(axis=0), 0.0, labels), axis=0)
        errors = errors / np.where(deviation > 0, deviation, 1.0)
    places = _largest(errors)
    if places:
        cards = [_card(smiles[i], result, k, predicted[i, k], labels[i, k], None) for i, k in places]
        caption = "Test molecules farthest from their label: an error of the model, or of the label."
        found.append(ReportGallery("Largest errors", cards, caption))
    return found


def _numbers(rows: Rows, names: Sequence[str]) -> NDArray[np.float64]:
    """Rows x names; what is empty is NaN."""
    found = [[np.nan if row[name] == "" else float(row[name]) for name in names] for row in rows]
    return np.array(found, dtype=np.float64).reshape(len(rows), len(names))


def _largest(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """The first (molecule, task) by each molecule's largest value; molecules without any are left out."""
    known = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-known.max(axis=1, initial=-np.inf), kind="stable")
    return [(int(i), int(known[i].argmax())) for i in order[:MOST] if np.isfinite(known[i]).any()]


def _card(
    smiles: str, result: TransferResult, task: int, predicted: float, label: float, spread: float | None
) -> ReportCard:
    name = "probability" if result.kind == "classification" else "predicted"
    facts = {"task": result.tasks[task]} if len(result.tasks) > 1 else {}
    digits = ".2f" if result.kind == "classification" else ".3g"
    facts[name] = f"{predicted:{digits}}" + ("" if spread is None else f" ± {spread:{digits}}")
    facts["label"] = "unknown" if np.isnan(label) else f"{label:g}"
    return ReportCard(smiles, facts, _picture(smiles))


def _picture(smiles: str) -> str:
    """The structure as SVG; nothing where it is too large for a card or no chemistry is installed."""
    if importlib.util.find_spec("rdkit") is None:
        return ""
    from graphsc.report.drawings import MAX_NODES
    from graphsc.report.molecules import draw_smiles, formula_svg

    drawing = draw_smiles(smiles)
    return "" if drawing is None or len(drawing.positions) > MAX_NODES else formula_svg(drawing)


MOST_CURVES = 6
MOST_TASKS = 40
_SAID = {"roc_auc": "ROC-AUC", "average_precision": "average precision", "rmse": "RMSE", "mae": "MAE"}


def is_transfer_run(path: Path) -> bool:
    """Whether a run folder is one of fine-tuning."""
    return "transfer" in RunFolder(path).load_config()


def transfer_reports(tuned: Sequence[Path], others: Sequence[Path] = ()) -> Report:
    """Fine-tuning runs, a section each; they are judged otherwise than vectors are, and not beside them."""
    if others:
        raise ConfigError(
            "fine-tuned models and vectors are judged by different rules", where=str(others[0]),
            hint="write a report for each kind of run",
        )  # fmt: skip
    pages = [transfer_report(path) for path in tuned]
    if len(pages) == 1:
        return pages[0]
    return Report(title="Fine-tuned models", lead=" ".join(page.lead for page in pages), parts=pages)


def transfer_report(path: Path) -> Report:
    """The page of a run that `graphsc finetune` made."""
    folder = RunFolder(path)
    config = folder.load_config()
    places = sorted(path.glob("seed-*"), key=lambda place: int(place.name.removeprefix("seed-")))
    places = [place for place in places if (place / "result.json").exists()]
    if not places:
        raise NotFoundError(
            "this run has not finished", where=str(path), hint="fine-tune it to its end first"
        )
    results = [load_transfer(place / "result.json") for place in places]
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
        protocol=f"{first.words} Models are judged {' and '.join(RULES[one] for one in first.rules)}.",
        tables=[
            _scores(results),
            _labels(first),
            *_by_task(results, rule),
        ],
        galleries=molecule_galleries(path / "predictions.csv", first),
        figures=[*_curves(places, first), *_pictures(first, rule)],
        config=dump_yaml(config),
        environment={key: str(value) for key, value in environments[-1].items()} if environments else {},
    )


def _lead(results: Sequence[TransferResult], rule: str, name: str) -> str:
    mean = float(np.mean([one.score(rule) for one in results]))
    what = _said(results[0].main)
    if np.isnan(mean):
        return f"No test molecule of {name} can tell how good the predictions are."
    seeds = f"{len(results)} seed{'s' if len(results) > 1 else ''}"
    return f"{what} {mean:.3f} on test molecules of {name}, {RULES[rule]} ({seeds})."


def _said(measure: str) -> str:
    """A measure as people write it."""
    return _SAID.get(measure, measure.replace("_", " "))


def _scores(results: Sequence[TransferResult]) -> ReportTable:
    first = results[0]
    rows = []
    for rule, judged in first.rules.items():
        for name in MEASURES[first.kind]:
            values = np.array([one.score(rule, "test", name) for one in results])
            epochs = "-" if judged.epoch is None else ", ".join(str(one.rules[rule].epoch) for one in results)
            rows.append(
                [
                    f"{RULES[rule]}: {_said(name)}",
                    f"{values.mean():.4f}",
                    f"{values.std():.4f}",
                    epochs,
                ]
            )
    return ReportTable(
        "Scores on test molecules", ("Model", "Mean", "Over seeds", "Epochs"), rows,
        "Means over the tasks that have a score. The deviation is over seeds (ddof 0).",
    )  # fmt: skip


def _labels(result: TransferResult) -> ReportTable:
    counts = np.bincount(result.parts, minlength=3)
    rows = [[name, f"{counts[part]:,}"] for part, name in enumerate(NAMES)]
    return ReportTable("Split", ("Part", "Molecules"), rows)


def _by_task(results: Sequence[TransferResult], rule: str) -> list[ReportTable]:
    first = results[0]
    if len(first.tasks) > MOST_TASKS:
        return []
    values = {
        name: np.array([measure(one.rules[rule].test, one.kind)[name] for one in results]).mean(axis=0)
        for name in MEASURES[first.kind]
    }
    rows = []
    for k, task in enumerate(first.tasks):
        labels = first.rules[rule].test[k].labels
        known = (
            f"{int((labels > 0.5).sum())} / {int((labels <= 0.5).sum())}"
            if first.kind == "classification"
            else f"{len(labels)}"
        )
        scores = ["-" if np.isnan(found[k]) else f"{found[k]:.4f}" for found in values.values()]
        rows.append([task, *scores, known])
    heads = ("Task", *(_said(name) for name in values),
             "Positives / negatives" if first.kind == "classification" else "Labels")  # fmt: skip
    caption = f"The model {RULES[rule]}, mean over seeds. A dash: only one class among the test molecules."
    return [ReportTable("Scores by task", heads, rows, caption)]


def _curves(places: Sequence[Path], result: TransferResult) -> list[ReportFigure]:
    """Scores from epoch to epoch, as far as all seeds went; none where learning rates were searched."""
    seeds = [rows for place in places if (rows := metrics_of(RunFolder(place)))]
    names = [f"{part}_{result.main}" for part in ("valid", "test")]
    epochs = min((len(rows) for rows in seeds), default=0)
    series = {
        name.split("_")[0]: [[row[name] for row in rows[:epochs]] for rows in seeds]
        for name in names
        if epochs and all(name in row for rows in seeds for row in rows[:epochs])
    }
    if not series:
        return []
    figure = score_curves(range(1, epochs + 1), series, _said(result.main))
    caption = "Mean over seeds; the band is one deviation. A picture of training: test chooses nothing."
    return [as_figure("Scores during training", figure, caption)]


def _pictures(result: TransferResult, rule: str) -> list[ReportFigure]:
    """ROC curves and a confusion matrix, or predicted against measured; of the first seed."""
    tasks: dict[str, Task] = dict(zip(result.tasks, result.rules[rule].test, strict=True))
    shown = dict(list(tasks.items())[:MOST_CURVES])
    if result.kind == "regression":
        return [
            as_figure(
                f"{name}: predicted and measured", parity_figure(task, name), "Test molecules, first seed."
            )
            for name, task in shown.items()
            if len(task.labels)
        ]
    found = []
    scored = {name: task for name, task in shown.items() if len(np.unique(task.labels)) == 2}
    if scored:
        caption = "Test molecules, first seed; the number is the area under the curve."
        found.append(as_figure("ROC curves", roc_figure(scored), caption))
    if len(tasks) == 1 and scored:
        task = next(iter(scored.values()))
        # Scores are logits: above zero the class is the likelier of the two.
        matrix = confusion_matrix((task.labels > 0.5).astype(np.int64), (task.scores > 0).astype(np.int64), 2)
        caption = "Test molecules, first seed, at a probability of one half."
        found.append(as_figure("Confusion matrix", confusion_figure(matrix, ["0", "1"]), caption))
    return found
