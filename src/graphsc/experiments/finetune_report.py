"""Reports on fine-tuning runs: what the model is worth, curves, and molecules that deserve a second look."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.config import dump_yaml
from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.run_folder import RunFolder
from graphsc.data.molecules.conversion import RowOptions, read_molecules
from graphsc.data.molecules.rejected import common_reasons, read_rejected
from graphsc.data.readers.csv import MISSING, read_table, table_suffix
from graphsc.evaluation.metrics import (
    MEASURES,
    Kind,
    Task,
    confusion_matrix,
    mean_over_tasks,
    measure,
    tasks_of,
)
from graphsc.finetuning.calibration import expected_calibration_error, reliability
from graphsc.finetuning.dataset import ID_COLUMN
from graphsc.finetuning.delivered import (
    MEASURE_TITLES,
    NEW,
    TITLES,
    UNCALIBRATED,
    Assessment,
    HeldOut,
    assess,
    read_held_out,
)
from graphsc.finetuning.ensemble import ENSEMBLE, PART_TITLES, Ensemble, load_ensemble
from graphsc.finetuning.explain import explain
from graphsc.finetuning.model import Predictor, load_predictor
from graphsc.finetuning.predict import FAR, Predicted, read_predictions
from graphsc.finetuning.property_model import PropertyModel, load_property_model
from graphsc.finetuning.result import RULES, TransferResult, load_transfer
from graphsc.finetuning.splits import NAMES, TRAIN
from graphsc.report.charts import interval_chart
from graphsc.report.curves import learning_curve, score_curves
from graphsc.report.figure import svg_of
from graphsc.report.html import (
    Report,
    ReportCard,
    ReportFigure,
    ReportGallery,
    ReportTable,
    ReportVerdict,
)
from graphsc.report.predictions import confusion_figure, parity_figure, reliability_figure, roc_figure
from graphsc.training.callbacks import Metrics
from graphsc.training.distributed import pick_device
from graphsc.training.model_files import fraction_folders, model_file, trained_column

MAX_TASKS = 40  # in the table by task
MAX_FIGURE_TASKS = 6  # in ROC curves and parity plots
MAX_MOLECULES = 12  # in a gallery
MAX_EXPLAINED = 8  # in each gallery of explained molecules
MAX_NEW = 20_000  # molecules of a table of new ones that are predicted for a report
VERDICTS = {
    "better": ("good", "Better than simple models"),
    "even": ("even", "No clear difference to a simple model"),
    "worse": ("bad", "A simple model is better"),
    "useless": ("bad", "Not clearly better than a constant"),
    "unknown": ("unknown", "Not compared with simple models"),
}


def is_transfer_run(path: Path) -> bool:
    """Whether a folder is that of a fine-tuning, or of fine-tunings with several label fractions."""
    return bool(fraction_folders(path)) or "transfer" in RunFolder(path).load_config()


def transfer_reports(
    finetuned: Sequence[Path],
    others: Sequence[Path] = (),
    new: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Report:
    """Fine-tuning runs, a section each.

    Args:
        finetuned: Their folders.
        others: Runs whose embeddings are evaluated by another protocol; there must be none.
        new: A table of new molecules, of which the report draws those on which the seeds disagree most.
        options: How that table is read, as for the `smiles` reader.

    Raises:
        ConfigError: Where there are `others`.
    """
    if others:
        raise ConfigError(
            "fine-tuned models and embeddings are evaluated by different rules", where=str(others[0]),
            hint="write a report for each kind of run",
        )  # fmt: skip
    reports = [
        curve_report(folders, path, new, options)
        if (folders := fraction_folders(path))
        else transfer_report(path, new, options)
        for path in finetuned
    ]
    if len(reports) == 1:
        return reports[0]
    return Report(title="Fine-tuned models", lead=" ".join(report.lead for report in reports), parts=reports)


@dataclass(frozen=True)
class _Run:
    """What is stored of a fine-tuning run."""

    path: Path
    config: Mapping[str, object]
    seeds: Sequence[Path]  # finished
    started: Sequence[Path]  # not finished
    results: Sequence[TransferResult]
    predictor: Predictor | None  # of the first seed, for the names of classes
    held_out: HeldOut | None
    assessment: Assessment | None
    ensemble: Ensemble | None = None

    @property
    def kind(self) -> Kind:
        return cast(Kind, cast(dict[str, object], self.config["transfer"])["kind"])

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(cast(list[str], cast(dict[str, object], self.config["transfer"])["tasks"]))

    @property
    def classes(self) -> Mapping[str, tuple[str, str]]:
        model = self.ensemble or self.predictor
        return {} if model is None else model.classes

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        model = self.ensemble or self.predictor
        return {} if model is None else model.groups

    @property
    def delivered(self) -> str:
        """What predictions are made with, in words."""
        if self.ensemble is None:
            return "the mean over the seeds"
        if self.ensemble.model == "ensemble":
            return "the ensemble"
        return f"the {PART_TITLES[self.ensemble.model]}"

    @property
    def members(self) -> str:
        return "seeds" if self.ensemble is None else self.ensemble.members or "seeds"

    @property
    def rule(self) -> str:
        return "best" if self.results and "best" in self.results[0].rules else "last"


def _read_run(path: Path) -> _Run:
    config = RunFolder(path).load_config()
    folders = sorted(path.glob("seed-*"), key=lambda seed: int(seed.name.removeprefix("seed-")))
    seeds = [seed for seed in folders if (seed / "result.json").exists()]
    started = [seed for seed in folders if seed not in seeds]
    results = [load_transfer(seed / "result.json") for seed in seeds]
    predictor = load_predictor(model_file(seeds[0])) if seeds and model_file(seeds[0]).is_file() else None
    ensemble = load_ensemble(path / ENSEMBLE) if (path / ENSEMBLE).exists() else None
    run = _Run(path, config, seeds, started, results, predictor, None, None, ensemble)
    held_out = read_held_out(path, run.tasks, run.kind)
    if held_out is None:
        return run
    found = assess(held_out, run.tasks, run.kind, run.groups, ensemble)
    return replace(run, held_out=held_out, assessment=found)


def transfer_report(
    path: Path, new: str | None = None, options: Mapping[str, object] | None = None
) -> Report:
    """The report on one run of `graphsc finetune`; of an unfinished one, what there is so far."""
    run = _read_run(path)
    if not run.results and run.ensemble is None and not any(_metrics(seed) for seed in run.started):
        raise NotFoundError("this run has not finished an epoch", where=str(path), hint="let it train first")
    data = cast(dict[str, object], run.config["data"])
    environments = RunFolder(path).environments()
    galleries = []
    if run.held_out is not None:
        galleries = [
            *_explained(run),
            *molecule_galleries(run.held_out, run.tasks, run.kind, run.classes, run.members),
        ]
    if new is not None:
        galleries.insert(0, _new_molecules(run, new, options or {}))
    return Report(
        title=f"{data['name']}: {_model_title(run)}",
        lead=_lead(run, str(data["name"])),
        verdict=_verdict(run),
        about=_about(run, data),
        protocol=_protocol(run),
        tables=[
            *_part_table(run),
            *_reason_table(path),
            *_domain_table(run),
            *_score_table(run),
            *_split_table(run),
            *_task_table(run),
        ],
        galleries=galleries,
        figures=[*_score_curves([*run.seeds, *run.started], run.kind), *_prediction_figures(run)],
        config=dump_yaml(run.config),
        environment={key: str(value) for key, value in environments[-1].items()} if environments else {},
        warnings=_unfinished(run),
        notes=[f"{note}." for note in cast(list[str], _source(run).get("notes", []))],
    )


def curve_report(
    folders: Mapping[float, Path],
    path: Path,
    new: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Report:
    """The report on runs with several fractions of the labels: the learning curve, then the largest run."""
    runs = {fraction: _read_run(folder) for fraction, folder in folders.items()}
    last = next(reversed(runs.values()))
    report = transfer_report(last.path, new, options)
    assessed = {fraction: run.assessment for fraction, run in runs.items() if run.assessment is not None}
    if len(assessed) < 2:
        return replace(report, title=f"{report.title}, with several label fractions")
    main = next(iter(assessed.values())).main
    title = MEASURE_TITLES[main]
    counts = {fraction: _training_labels(runs[fraction], fraction) for fraction in assessed}
    names = dict.fromkeys(one.name for found in assessed.values() for one in found.contenders)
    rows, series = [], {}
    for name in names:
        scores = [
            next((one.scores[main] for one in found.contenders if one.name == name), None)
            for found in assessed.values()
        ]
        heading = TITLES[name]
        rows.append(
            [heading, *("-" if score is None else score.text().replace(" (", "\n(") for score in scores)]
        )
        series[heading] = [
            (np.nan,) * 3 if score is None else (score.value, score.low, score.high) for score in scores
        ]
    headers = ["Model", *(f"{fraction:.3g} ({counts[fraction]:,} labels)" for fraction in assessed)]
    table = ReportTable(
        f"{title} by share of the training labels", headers, rows,
        "On the same test molecules, with 95 % intervals over them.",
    )  # fmt: skip
    figure = ReportFigure(
        "Learning curve", svg_of(learning_curve(list(counts.values()), series, title)),
        "The score by the number of training labels. Where the curve still changes at its right end, more "
        "labels would change the model.",
    )  # fmt: skip
    return replace(
        report,
        title=f"{report.title}: learning curve",
        about={**report.about, "run": path.name},
        tables=[table, *report.tables],
        figures=[figure, *report.figures],
        notes=[*report.notes, "Everything except the learning curve is of the run with the most labels."],
    )


def _training_labels(run: _Run, fraction: float) -> int:
    """Labelled molecules that a seed of a run was trained on."""
    assert run.held_out is not None  # noqa: S101 - only runs with an assessment are in a learning curve
    labelled = int((run.results[0].parts == TRAIN).sum()) - Counter(run.held_out.parts)[NEW]
    return min(labelled, max(2, round(fraction * labelled)))


# Sentences.


def _model_title(run: _Run) -> str:
    if run.ensemble is None or run.ensemble.model == "encoder":
        return f"{run.config['method']}, fine-tuned"
    if run.ensemble.model == "ensemble":
        return f"an ensemble with {run.config['method']}, fine-tuned"
    return PART_TITLES[run.ensemble.model]


def _lead(run: _Run, name: str) -> str:
    if run.assessment is not None:
        return " ".join(run.assessment.sentences())
    if not run.results:
        return f"{name}: no seed has finished yet."
    mean = float(np.mean([result.score(run.rule) for result in run.results]))
    if np.isnan(mean):
        return f"{name} has no test molecules that predictions can be scored on."
    main = MEASURE_TITLES[run.results[0].main]
    return f"{main} {mean:.3f} on test molecules of {name}, the mean of {len(run.results)} single models."


def _unfinished(run: _Run) -> list[str]:
    asked = int(str(run.config.get("seeds", len(run.seeds))))
    if len(run.seeds) >= asked:
        return []
    states = [f"{seed.name} is at epoch {len(rows)}" for seed in run.started if (rows := _metrics(seed))]
    at = f"; {', '.join(states)} of {run.config['epochs']}" if states else ""
    return [f"This run is not finished: {len(run.seeds)} of {asked} seeds are{at}."]


def _protocol(run: _Run) -> str:
    words = run.results[0].words if run.results else ""
    if run.ensemble is None:
        averaged = (
            "Scores are of what graphsc predict gives: the mean over the seeds, each by the model "
            f"{RULES[run.rule]}. "
        )
    else:
        averaged = (
            f"Scores are of what graphsc predict gives: {run.delivered}. All parts were fitted on the "
            "training molecules; weights and calibration were fitted on the validation molecules, never on "
            "test ones. "
        )
    intervals = "95 % intervals are of 1,000 samples of the test molecules, drawn with replacement."
    return f"{words} {averaged if run.held_out is not None else ''}{intervals}".strip()


def _source(run: _Run) -> dict[str, object]:
    return cast(dict[str, object], run.config.get("source") or {})


def _about(run: _Run, data: Mapping[str, object]) -> dict[str, str]:
    graphs = int(str(data["graphs"]))
    rows = int(str(_source(run).get("rows", graphs)))
    return {
        "rows read": f"{rows:,}",
        "molecules used": f"{graphs:,}",
        "rows rejected": f"{rows - graphs:,}" + (", listed in rejected.csv" if rows > graphs else ""),
        "to predict": ", ".join(run.tasks[:8]) + (" ..." if len(run.tasks) > 8 else ""),
        "pre-training": str(run.config["method"]),
        **({} if run.ensemble is None else {"model": run.delivered.removeprefix("the ")}),
        "seeds": str(len(run.results)),
        "run": run.path.name,
    }


def _verdict(run: _Run) -> ReportVerdict | None:
    """The model beside simple ones, in words, numbers and a picture."""
    found = run.assessment
    if found is None or np.isnan(found.model.scores[found.main].value):
        return None
    status, title = VERDICTS[found.verdict]
    sentences = [*found.sentences(), *_counts_in_words(run)]
    if found.calibration is not None:
        sentences.append(found.calibration.sentence())
    if found.spread is not None:
        sentences.append(found.spread.sentence())
    metrics = list(found.model.scores)
    rows = []
    for one in found.contenders:
        cells = [one.scores[metric].text() for metric in metrics]
        cells.insert(1, "-" if one.gain is None else one.gain.text(sign="+"))
        rows.append([one.title, *(cell.replace(" (", "\n(") for cell in cells)])
    headers = ["", *(MEASURE_TITLES[metric] for metric in metrics)]
    headers.insert(2, "Gain of this model")
    caption = (
        "On the same test molecules; 95 % intervals over them in brackets. The gain is in "
        f"{MEASURE_TITLES[found.main]}; an interval that includes 0 is no clear difference."
    )
    if len(found.contenders) == 1:
        caption = "With 95 % intervals over the test molecules."
        headers, rows = [*headers[:2], *headers[3:]], [[*row[:2], *row[3:]] for row in rows]
    scores = {one.title: one.scores[found.main] for one in found.contenders}
    figure = None
    if all(np.isfinite([score.value, score.low, score.high]).all() for score in scores.values()):
        values = {name: (score.value, score.low, score.high) for name, score in scores.items()}
        figure = ReportFigure(
            MEASURE_TITLES[found.main], svg_of(interval_chart(values, MEASURE_TITLES[found.main]))
        )
    return ReportVerdict(status, title, sentences, ReportTable("", headers, rows, caption), figure)


def _counts_in_words(run: _Run) -> list[str]:
    """Recall and precision of the first tasks of a classification."""
    found = run.assessment
    if found is None:
        return []
    sentences = []
    for task, counts in found.first_counts():
        name = _class_names(run, task)[1]
        of_task = "" if len(found.tasks) == 1 or found.groups else f" in {task!r}"
        sentences.append(counts.sentence(f"molecules of class {name!r}{of_task}"))
    return sentences


def _class_names(run: _Run, task: str) -> tuple[str, str]:
    return run.classes.get(task, ("0", "1"))


# Tables.


def _part_table(run: _Run) -> list[ReportTable]:
    """The parts of an ensemble, the heaviest first."""
    found = run.assessment
    if found is None or len(found.parts) < 2:
        return []
    rows = [
        [
            one.title[:1].upper() + one.title[1:],
            f"{one.weight:.2f}",
            *("-" if np.isnan(value) else f"{value:.3f}" for value in (one.valid, one.test)),
        ]
        for one in found.parts
    ]
    valid = _held_out_score(run, "valid")
    test = found.model.scores[found.main].value
    rows.append(["The ensemble", "1.00", *("-" if np.isnan(v) else f"{v:.3f}" for v in (valid, test))])
    main = MEASURE_TITLES[found.main]
    caption = (
        "Parts are weighted by greedy selection on samples of the validation molecules, starting from a mean "
        "in which parts that cannot be told apart count the same. Validation scores are a little too "
        "good: the strength of linear models and the weights were chosen on them. Those of the encoder are "
        "of epochs chosen without the molecule."
    )
    headers = ("Part", "Weight", f"{main}, validation", f"{main}, test")
    return [ReportTable("Parts of the model", headers, rows, caption)]


def _held_out_score(run: _Run, part: str) -> float:
    assert run.held_out is not None  # noqa: S101 - asked for only then
    assert run.assessment is not None  # noqa: S101 - likewise
    rows = run.held_out.of(part)
    tasks = tasks_of(run.held_out.labels[rows], run.held_out.predicted[rows])
    return mean_over_tasks(measure(tasks, run.kind)[run.assessment.main])


def _domain_table(run: _Run) -> list[ReportTable]:
    """The error of test molecules by their similarity to the nearest training molecule."""
    if run.held_out is None or run.held_out.similarity is None:
        return []
    rows = []
    test = run.held_out.of("test")
    errors = np.abs(run.held_out.predicted - run.held_out.labels)[test]
    similarity = run.held_out.similarity[test]
    labelled = ~np.isnan(errors).all(axis=1)
    for low, high in ((0.0, FAR), (FAR, 0.5), (0.5, 0.7), (0.7, 1.01)):
        inside = labelled & (similarity >= low) & (similarity < high)
        known = errors[inside][~np.isnan(errors[inside])]
        title = f"{low:g} to {min(high, 1):g}"
        rows.append([title, f"{int(inside.sum()):,}", f"{known.mean():.3f}" if len(known) else "-"])
    caption = (
        "Similarity is that of fingerprints (Tanimoto) to the nearest training molecule; predictions have it "
        f"as a column. Below {FAR:g} a molecule is unlike everything the model was trained on."
    )
    headers = ("Similarity", "Test molecules", "Mean error")
    return [ReportTable("Applicability domain", headers, rows, caption)]


def _reason_table(path: Path) -> list[ReportTable]:
    """The most frequent reasons of rejected rows; no table where none was rejected."""
    listing = path / "rejected.csv"
    if not listing.exists():
        return []
    rejected = read_rejected(listing)
    rows = [[reason, f"{count:,}"] for reason, count in common_reasons((row.reason for row in rejected), 10)]
    caption = f"The most frequent reasons. The run's {listing.name} lists all {len(rejected):,} rows."
    return [ReportTable("Rejected rows", ("Reason", "Rows"), rows, caption)]


def _score_table(run: _Run) -> list[ReportTable]:
    """Single models by selection rule; the mean over the seeds of their scores."""
    if not run.results:
        return []
    rows = []
    for rule, scores in run.results[0].rules.items():
        epochs = "-" if scores.epoch is None else ", ".join(str(one.rules[rule].epoch) for one in run.results)
        for name in MEASURES[run.kind]:
            values = np.array([result.score(rule, "test", name) for result in run.results])
            deviation = "-" if len(values) < 2 else f"{values.std(ddof=1):.4f}"
            title = f"{RULES[rule]}: {MEASURE_TITLES[name]}"
            rows.append([title, f"{values.mean():.4f}", deviation, epochs])
    caption = (
        "Scores of the single models, as papers report them; the score of what is delivered is at the top. "
        "Means over the tasks that have a score; deviation over seeds with ddof 1."
    )
    headers = ("Model", "Mean", "Deviation", "Epochs")
    return [ReportTable("Single models by seed", headers, rows, caption)]


def _split_table(run: _Run) -> list[ReportTable]:
    if not run.results:
        return []
    counts = np.bincount(run.results[0].parts, minlength=3)
    rows = [[name, f"{counts[part]:,}"] for part, name in enumerate(NAMES)]
    if run.held_out is not None:
        without = np.isnan(run.held_out.labels).all(axis=1)
        for name, part in zip(NAMES, (NEW, *NAMES[1:]), strict=True):
            if count := int((without & run.held_out.of(part)).sum()):
                rows.append([f"of {name}, without any label", f"{count:,}"])
    return [ReportTable("Split", ("Part", "Molecules"), rows)]


def _task_table(run: _Run) -> list[ReportTable]:
    """Scores by task; no table where there are many tasks or only one."""
    found = run.assessment
    if found is None or not 1 < len(found.tasks) <= MAX_TASKS:
        return []
    rows = []
    for k, task in enumerate(found.tasks):
        scores = [
            "-" if np.isnan(values[k]) else f"{values[k]:.4f}" for values in found.model.by_task.values()
        ]
        if found.model.counts:
            counts = found.model.counts[k]
            scores.append(f"{counts.found} of {counts.positives}")
        rows.append([task, *scores])
    headers = ["Task", *(MEASURE_TITLES[name] for name in found.model.by_task)]
    if found.model.counts:
        headers.append("Positives found")
    caption = f"Of {run.delivered}. A dash: only one class among the test molecules."
    return [ReportTable("Scores by task", headers, rows, caption)]


# Figures.


def _metrics(seed: Path) -> list[dict[str, float]]:
    return Metrics(RunFolder(seed).metrics, keep=10**9).rows


def _score_curves(seeds: Sequence[Path], kind: Kind) -> list[ReportFigure]:
    """Scores by epoch, over the epochs that all seeds have; none where learning rates were searched."""
    metrics = [rows for seed in seeds if (rows := _metrics(seed))]
    epochs = min((len(rows) for rows in metrics), default=0)
    main = next(iter(MEASURES[kind]))
    series = {}
    for part in ("valid", "test"):
        name = f"{part}_{main}"
        if epochs and all(name in row for rows in metrics for row in rows[:epochs]):
            series[part] = [[row[name] for row in rows[:epochs]] for rows in metrics]
    if not series:
        return []
    figure = score_curves(range(1, epochs + 1), series, MEASURE_TITLES[main])
    caption = (
        "Mean over seeds, of single models; the band is one deviation. The test score is not used to choose "
        "an epoch."
    )
    if len({len(rows) for rows in metrics}) > 1:
        caption += f" Seeds stopped after {', '.join(str(len(rows)) for rows in metrics)} epochs."
    return [ReportFigure("Scores during training", svg_of(figure), caption)]


def _prediction_figures(run: _Run) -> list[ReportFigure]:
    """ROC curves and a confusion matrix, or predicted against measured values, of the mean over seeds."""
    if run.held_out is None:
        return []
    test = run.held_out.of("test")
    own = tasks_of(run.held_out.labels[test], run.held_out.predicted[test])
    tasks: dict[str, Task] = dict(zip(run.tasks, own, strict=True))
    shown = dict(list(tasks.items())[:MAX_FIGURE_TASKS])
    if run.kind == "regression":
        return [
            ReportFigure(
                f"{name}: predicted and measured", svg_of(parity_figure(task, name)),
                f"Test molecules, {run.delivered}.",
            )
            for name, task in shown.items()
            if len(task.labels)
        ]  # fmt: skip
    scored = {name: task for name, task in shown.items() if len(np.unique(task.labels)) == 2}
    figures = []
    if scored:
        caption = f"Test molecules, {run.delivered}; the number is the area under the curve."
        figures.append(ReportFigure("ROC curves", svg_of(roc_figure(scored)), caption))
    if len(tasks) == 1 and scored:
        name, task = next(iter(scored.items()))
        matrix = confusion_matrix(
            (task.labels > 0.5).astype(np.int64), (task.scores > 0.5).astype(np.int64), 2
        )
        caption = f"Test molecules, {run.delivered}, at a probability of one half."
        svg = svg_of(confusion_figure(matrix, _class_names(run, name)))
        figures.append(ReportFigure("Confusion matrix", svg, caption))
    return [*figures, *_reliability(run, test), *_class_figures(run, test)]


def _reliability(run: _Run, test: NDArray[np.bool_]) -> list[ReportFigure]:
    """The reliability curve over the labels of all tasks, before and after calibration."""
    assert run.held_out is not None  # noqa: S101 - asked for by `_prediction_figures` only
    labels = run.held_out.labels[test]
    known = ~np.isnan(labels)
    if not known.any():
        return []
    curves, errors = {}, []
    before = run.held_out.parts_scores.get(UNCALIBRATED)
    shown = {"calibrated": run.held_out.predicted} if before is not None else {}
    shown |= {"before calibration": before} if before is not None else {"predicted": run.held_out.predicted}
    for name, values in shown.items():
        task = Task(labels[known], values[test][known])
        curves[name] = [(one.probability, one.share, one.molecules) for one in reliability(task)]
        errors.append(f"{expected_calibration_error(task):.3f} {name}")
    caption = (
        f"Test molecules, in ten bins of equal width; larger dots hold more of {int(known.sum()):,} labels. "
        f"On the dashed line probabilities mean what they say. Expected calibration error: "
        f"{', '.join(errors)}."
    )
    return [ReportFigure("Reliability", svg_of(reliability_figure(curves)), caption)]


def _class_figures(run: _Run, test: NDArray[np.bool_]) -> list[ReportFigure]:
    """The confusion matrix of each column of several classes, by the most probable class."""
    assert run.held_out is not None  # noqa: S101 - asked for by `_prediction_figures` only
    figures = []
    for column, tasks in run.groups.items():
        places = [run.tasks.index(task) for task in tasks]
        labels = run.held_out.labels[test][:, places]
        known = ~np.isnan(labels).any(axis=1)
        if not known.any():
            continue
        names = [_class_names(run, task)[1] for task in tasks]
        chosen = run.held_out.predicted[test][known][:, places].argmax(axis=1)
        matrix = confusion_matrix(labels[known].argmax(axis=1), chosen, len(names))
        caption = f"Test molecules, {run.delivered}; predicted is the most probable class."
        figures.append(
            ReportFigure(f"{column}: confusion matrix", svg_of(confusion_figure(matrix, names)), caption)
        )
    return figures


# Molecules, drawn.


CONTRIBUTION_CAPTION = (
    "Atoms with a solid orange disc raise the prediction, those with a ringed blue one lower it; the area "
    "is the contribution beside the largest of the molecule. It is the change of the prediction when the "
    "atom is left out of the graph and of the fingerprint, in log-odds or in the unit of the labels. It "
    "shows what the model uses, not what causes an effect."
)


def _explained(run: _Run) -> list[ReportGallery]:
    """Test molecules with the least and the most spread, their atoms coloured by contribution."""
    assert run.held_out is not None  # noqa: S101 - asked for only then
    if importlib.util.find_spec("rdkit") is None:
        return []
    test = np.flatnonzero(run.held_out.of("test"))
    if not len(test) or (run.ensemble is None and run.predictor is None):
        return []
    held_out = run.held_out
    names = _Names(
        run.tasks, run.kind, [held_out.smiles[k] for k in test],
        None if held_out.ids is None else [held_out.ids[k] for k in test], run.classes,
        None if held_out.similarity is None else held_out.similarity[test],
    )  # fmt: skip
    return spread_galleries(
        load_property_model(run.path), names, held_out.predicted[test], held_out.spread[test],
        held_out.labels[test], "Test molecules",
    )  # fmt: skip


def spread_galleries(
    model: PropertyModel,
    names: _Names,
    predicted: NDArray[np.float64],
    spread: NDArray[np.float64],
    labels: NDArray[np.float64] | None,
    what: str,
) -> list[ReportGallery]:
    """Two galleries: molecules with the least and with the largest spread, explained.

    Without any spread, molecules are sorted by how far their probability is from one half; of values
    without spread nothing is shown.
    """
    if spread.any():
        doubt, by = spread, "spread"
    elif model.kind == "classification":
        doubt, by = 0.5 - np.abs(predicted - 0.5), "probability"
    else:
        return []
    galleries: list[ReportGallery] = []
    # Not called certain: whether the spread goes with the error is measured, and said at the top.
    titles = ("{} with the least spread", "{} with the most spread")
    if by == "probability":
        titles = ("{} with the clearest probabilities", "{} with probabilities near one half")
    for title, order in zip(titles, (-doubt, doubt), strict=True):
        cards: list[ReportCard] = []
        for i, k in _both_classes(order, predicted, model.kind) if order is not doubt else _largest(order):
            if len(cards) == MAX_EXPLAINED:
                break
            label = None if labels is None or np.isnan(labels[i, k]) else labels[i, k]
            card = names.card(i, k, predicted[i, k], label, spread[i, k] if by == "spread" else None)
            found = explain(model, names.smiles[i])
            if found is not None:
                card = replace(card, svg=_structure(names.smiles[i], found.contributions[:, k]))
            cards.append(card)
        caption = "Colours as above." if galleries else CONTRIBUTION_CAPTION
        if cards:
            galleries.append(ReportGallery(title.format(what), cards, caption))
    return galleries


def _both_classes(
    order: NDArray[np.float64], predicted: NDArray[np.float64], kind: Kind
) -> list[tuple[int, int]]:
    """As `_largest`; of a classification, half of them with a probability above one half, if there are any.

    Probabilities near 0 spread little, so rare positives would never be among those with the least spread.
    """
    if kind == "regression":
        return _largest(order)
    sides = [_largest(np.where(side, order, np.nan)) for side in (predicted >= 0.5, predicted < 0.5)]
    half = MAX_EXPLAINED // 2
    taken = [
        side[: max(half, MAX_EXPLAINED - len(other))] for side, other in zip(sides, sides[::-1], strict=True)
    ]
    molecules: dict[int, int] = {}
    for place, task in (*taken[0], *taken[1]):
        molecules.setdefault(place, task)
    return list(molecules.items())


def prediction_page(
    model: str | Path,
    source: str,
    done: Predicted,
    *,
    id_column: str | None = None,
    rule: str = "best",
    device: str = "auto",
) -> Report:
    """A page on a table of predictions: rows with the least and the most spread, their atoms coloured.

    Args:
        model: The folder of the run.
        source: The table that was predicted.
        done: What `predict_table` returned.
        id_column: The column with ids; by default that of the training table, or one called `id`.
        rule: As in `predict_table`.
        device: Likewise.
    """
    loaded = load_property_model(model, rule, pick_device(device))
    rows = read_predictions(done, loaded, id_column or trained_column(model, done.path, "id_column"))
    names = _Names(loaded.tasks, loaded.kind, rows.smiles, rows.ids, loaded.classes, rows.similarity)
    galleries = spread_galleries(loaded, names, rows.predicted, rows.spread, None, "Rows")
    notes = [] if done.spread is None else [done.spread]
    if rows.shown < done.rows - done.rejected:
        notes.append(f"The page is of the first {rows.shown:,} molecules; the table has all.")
    about = {"rows": f"{done.rows:,}", "without a molecule": f"{done.rejected:,}", "models": str(done.models)}
    if done.far is not None:
        about[f"less than {FAR:g} similar to training"] = f"{done.far:,}"
    return Report(
        title=f"Predictions for {Path(source).name}",
        lead=f"{done.rows - done.rejected:,} molecules, predicted by {Path(model).name}.",
        about=about,
        galleries=galleries,
        notes=notes,
    )


def molecule_galleries(
    held_out: HeldOut,
    tasks: Sequence[str],
    kind: Kind,
    classes: Mapping[str, tuple[str, str]] | None = None,
    members: str = "seeds",
) -> list[ReportGallery]:
    """Molecules without a label on which seeds or parts disagree most, and those with the largest errors."""
    names = _Names(tasks, kind, held_out.smiles, held_out.ids, classes or {}, held_out.similarity)
    predicted, labels = held_out.predicted, held_out.labels
    galleries = []
    tested = ~np.isnan(labels) if held_out.limited is None else ~np.isnan(labels) | held_out.limited
    unknown = np.where(tested, np.nan, held_out.spread)
    if held_out.spread.any() and not np.isnan(unknown).all():
        cards = [names.card(i, k, predicted[i, k], None, held_out.spread[i, k]) for i, k in _largest(unknown)]
        caption = NEW_CAPTION.format(members=members)
        galleries.append(ReportGallery(f"New molecules on which the {members} disagree most", cards, caption))
    errors = np.where(held_out.of("test")[:, None], np.abs(predicted - labels), np.nan)
    if kind == "regression":  # tasks have different units
        deviation = np.nanstd(np.where(np.isnan(labels).all(axis=0), 0.0, labels), axis=0)
        errors = errors / np.where(deviation > 0, deviation, 1.0)
    cards = [names.card(i, k, predicted[i, k], labels[i, k]) for i, k in _largest(errors)]
    if cards:
        caption = "Test molecules farthest from their label: an error of the model, or of the label."
        galleries.append(ReportGallery("Largest errors", cards, caption))
    return galleries


NEW_CAPTION = (
    "Molecules without a label, by their spread over {members}. Whether a larger spread goes with a larger "
    "error is said at the top of the page."
)


def _labelled(path: Path, tasks: Sequence[str], given: Mapping[str, object], rows: int) -> NDArray[np.bool_]:
    """Which labels a table of new molecules has already: rows x tasks."""
    labelled = np.zeros((rows, len(tasks)), dtype=bool)
    if not table_suffix(path):
        return labelled
    separator = given.get("separator")
    table = read_table(path, separator=None if separator is None else str(separator), strict=False)
    for k, task in enumerate(tasks):
        column = table.columns.get(task)
        if column is not None and len(column.codes) == rows:  # no row was malformed
            filled = np.array([value.strip() not in MISSING for value in column.values])
            labelled[:, k] = filled[column.codes]
    return labelled


def _new_molecules(run: _Run, source: str, given: Mapping[str, object]) -> ReportGallery:
    """Predict a table of new molecules; draw those on which seeds or parts disagree most."""
    model = load_property_model(run.path)
    for role in ("smiles_column", "id_column"):
        column = trained_column(run.path, Path(source), role)
        if column is not None:
            given = {role: column, **given}
    table = read_molecules(source, **cast(RowOptions, dict(given)))
    shown = np.arange(min(len(table.smiles), MAX_NEW))
    collection = table.collection.take(shown)
    smiles = table.smiles[: len(shown)]
    mean, spread = model.predict(collection, smiles)
    names = _Names(
        run.tasks, run.kind, smiles, [str(identity) for identity in collection.ids], run.classes,
        None if model.domain is None else model.domain.nearest(smiles)[1],
    )  # fmt: skip
    spreads = bool(spread.any())
    labelled = _labelled(Path(source), run.tasks, given, table.rows)[table.kept[: len(shown)]]
    cards = [
        names.card(i, k, mean[i, k], None, spread[i, k] if spreads else None)
        for i, k in _largest(np.where(labelled, np.nan, spread if spreads else mean))
    ]
    sorted_by = f"by their spread over {run.members}" if spreads else "by their prediction"
    caption = (
        f"{len(shown):,} molecules of {Path(source).name}, {sorted_by}; {len(table.rejected):,} rows have no "
        f"molecule, {int(labelled.all(axis=1).sum()):,} have a label already and are left "
        "out. Whether a larger spread goes with a larger error is said at the top of the page."
    )
    return ReportGallery("Worth a test: new molecules", cards, caption)


@dataclass(frozen=True)
class _Names:
    """What a card says of a molecule."""

    tasks: Sequence[str]
    kind: Kind
    smiles: Sequence[str]
    ids: Sequence[str] | None
    classes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    similarity: NDArray[np.float64] | None = None  # to the nearest training molecule

    def card(
        self, molecule: int, task: int, predicted: float, label: float | None, spread: float | None = None
    ) -> ReportCard:
        classification = self.kind == "classification"
        facts = {} if self.ids is None else {ID_COLUMN: self.ids[molecule]}
        if len(self.tasks) > 1:
            facts["task"] = self.tasks[task]
        if classification:
            facts["probability"] = f"{predicted:.2f}"
        else:
            facts["predicted"] = _digits(predicted, 3)
        if spread is not None:
            # On a line of its own: "6.72 ± 0.05" would be read as an uncertainty, which it need not be.
            facts["spread"] = f"{spread:.2f}" if classification else _digits(spread, 2)
        if label is not None:
            names = self.classes.get(self.tasks[task])
            facts["label"] = f"{label:g}" if names is None else names[int(label > 0.5)]
        if self.similarity is not None:
            facts["similarity"] = f"{self.similarity[molecule]:.2f}"
        return ReportCard(self.smiles[molecule], facts, _structure(self.smiles[molecule]))


def _digits(value: float, count: int) -> str:
    """A number with this many significant digits, zeros included: 6.00, 0.050, 123."""
    return f"{value:#.{count}g}".rstrip(".")


def _largest(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """(molecule, task) of the molecules with the largest values; molecules without any are left out."""
    known = np.where(np.isnan(values), -np.inf, values)
    order = np.argsort(-known.max(axis=1, initial=-np.inf), kind="stable")
    return [(int(i), int(known[i].argmax())) for i in order[:MAX_MOLECULES] if np.isfinite(known[i]).any()]


def _structure(smiles: str, contributions: NDArray[np.float64] | None = None) -> str:
    """The structure as SVG; empty where it is too large for a card or RDKit is not installed."""
    if importlib.util.find_spec("rdkit") is None:
        return ""
    from graphsc.report.drawings import MAX_NODES
    from graphsc.report.molecules import draw_smiles, formula_svg

    drawing = draw_smiles(smiles)
    return (
        "" if drawing is None or len(drawing.positions) > MAX_NODES else formula_svg(drawing, contributions)
    )
