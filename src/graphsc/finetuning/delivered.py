"""The score of a fine-tuning run as it is delivered, beside simple models on the same split.

`graphsc predict` averages the seeds of a run, so this average is scored, and not the single seeds. Everything
is computed from two tables in the run folder: `predictions.csv`, with the label, the average prediction and
the spread of every held-out molecule, and `baselines.csv`, with the predictions of simple models for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import read_rows, write_rows
from graphsc.core.tables import safe_cell
from graphsc.data.molecules.labels import CENSORED
from graphsc.evaluation.metrics import (
    ERRORS,
    MEASURES,
    Kind,
    Task,
    mean_over_tasks,
    measure,
    spearman,
    tasks_of,
)
from graphsc.evaluation.significance import bootstrap, percentile_interval
from graphsc.finetuning.baselines import CLASSICAL, MINIMOL, Rows, fit_baseline, has_minimol, rows_for
from graphsc.finetuning.calibration import expected_calibration_error
from graphsc.finetuning.dataset import MoleculeDataset, select_labelled
from graphsc.finetuning.ensemble import PART_TITLES, PARTS, Ensemble
from graphsc.finetuning.features import RawFeatures
from graphsc.finetuning.property_model import PropertyModel
from graphsc.finetuning.splits import NAMES, TRAIN, VALID, Parts

PREDICTIONS, BASELINES = "predictions.csv", "baselines.csv"
PART_SCORES = "parts.csv"
UNCALIBRATED = "uncalibrated"
NEAREST = ("nearest_training", "nearest_similarity")  # columns: the most similar training molecule
NEW = "new"  # part of a molecule without any label that is not in the validation or test set
MODEL = "model"
TITLES = {
    MODEL: "this model",
    "ecfp-forest": "a forest on fingerprints",
    "ecfp-linear": "a linear model on fingerprints",
    "ecfp-boosting": "boosting on fingerprints",
    "rdkit-forest": "a forest on descriptors",
    "rdkit-linear": "a linear model on descriptors",
    "rdkit-boosting": "boosting on descriptors",
    "minimol-linear": "a linear model on MiniMol",
    "constant": "a constant",
}
MEASURE_TITLES = {
    "roc_auc": "ROC-AUC", "average_precision": "average precision", "accuracy": "accuracy", "rmse": "RMSE",
    "mae": "MAE", "r2": "R²", "spearman": "Spearman",
}  # fmt: skip
RESAMPLES = 1000
MOST_LABELS = 200_000  # of training; with more, forests would take longer than the model
MOST_NAMED = 4  # simple models in a sentence
FEWEST = 10  # molecules, below which a correlation says nothing
RELATED = 0.3  # Spearman correlation of spread and error from which the spread is called informative


# The tables.


def column_names(tasks: Sequence[str], kind: Kind, taken: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Names of the columns for the prediction of each task and its spread, different from those `taken`."""
    what = "probability" if kind == "classification" else "predicted"
    used = set(taken)
    names = []
    for task in tasks:
        pair = []
        for ending in (what, "spread"):
            name = f"{task}_{ending}"
            while name in used:
                name += "_new"
            used.add(name)
            pair.append(name)
        names.append((pair[0], pair[1]))
    return names


def mean_and_spread(
    predictions: Sequence[NDArray[np.floating]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean over the seeds, and their standard deviation (ddof 0), the spread."""
    stacked = np.stack(predictions).astype(np.float64)
    return stacked.mean(axis=0), stacked.std(axis=0)


def write_predictions(
    path: Path,
    molecules: MoleculeDataset,
    parts: Parts,
    model: PropertyModel,
    raw: RawFeatures | None = None,
) -> None:
    """Write label, prediction, spread and nearest training molecule of those that no model was trained on.

    These are the validation and test molecules, and those without any label. Nothing is written if there are
    none. `raw` are the features of all molecules, if they are known.
    """
    labels = molecules.labels
    unlabelled = np.isnan(labels).all(axis=1)
    rows = np.flatnonzero((parts != TRAIN) | unlabelled)
    if not len(rows):
        return
    smiles = [molecules.smiles[row] for row in rows.tolist()]
    own = None if raw is None else raw.take(rows)
    mean, spread = model.predict(molecules.collection.take(rows), smiles, own)
    spreads = "" if model.members is None else "{:.6g}"
    near = None if model.domain is None else model.domain.nearest(smiles)
    tasks, ids = molecules.tasks, molecules.ids
    header = ["row", *([] if ids is None else ["id"]), "smiles", "part"]
    if near is not None:
        header += list(NEAREST)
    for task, pair in zip(tasks, column_names(tasks, molecules.kind, tasks), strict=True):
        header += [task, *pair]
    table = []
    for place, position in enumerate(rows.tolist()):
        cells = [str(molecules.rows[position])]
        if ids is not None:
            cells.append(safe_cell(ids[position]))
        part = NEW if parts[position] == TRAIN else NAMES[parts[position]]
        cells += [safe_cell(molecules.smiles[position]), part]
        if near is not None and model.domain is not None:
            cells += [safe_cell(model.domain.names[near[0][place]]), f"{near[1][place]:.3f}"]
        for k in range(len(tasks)):
            label = labels[position, k]
            cells += [
                molecules.limits.get((position, tasks[k]), "") if np.isnan(label) else f"{label:g}",
                f"{mean[place, k]:.6g}",
                spreads.format(spread[place, k]),
            ]  # fmt: skip
        table.append(cells)
    write_rows(path, [safe_cell(cell) for cell in header], table)


def write_baselines(
    path: Path,
    molecules: MoleculeDataset,
    parts: Parts,
    fraction: float = 1.0,
    seeds: Sequence[int] = (0,),
    progress: Callable[[int, int], None] = lambda done, total: None,
    raw: RawFeatures | None = None,
) -> None:
    """Fit simple models and write their predictions for the validation and test molecules.

    MiniMol is among them where its package is installed.

    They are trained on the molecules that the model was trained on; with a fraction of the labels, which each
    seed draws anew, their predictions are averaged over the seeds, too. Probabilities in a classification.
    `raw` are the features of all molecules, if they are known.
    """
    held_out = np.flatnonzero(parts != TRAIN)
    candidates = np.flatnonzero(parts == TRAIN)
    known = int((~np.isnan(molecules.labels[candidates])).sum())
    ways = [*(CLASSICAL if known <= MOST_LABELS else ()), *([MINIMOL] if has_minimol() else []), "constant"]
    if not len(held_out):
        return
    features: dict[str, Rows] = {}
    repetitions = list(seeds) if fraction < 1 else [0]
    scores: dict[str, NDArray[np.float64]] = {}
    for number, way in enumerate(ways):
        total = np.zeros((len(held_out), len(molecules.tasks)))
        described = way.partition("-")[0]
        if described not in features:
            features[described] = rows_for(way, molecules.smiles, parts == TRAIN, raw)
        for seed in repetitions:
            train = np.zeros(len(parts), dtype=bool)
            train[select_labelled(molecules.labels, candidates, molecules.kind, fraction, seed)] = True
            fitted = fit_baseline(
                way, features[described], molecules.labels, train, parts == VALID, molecules.kind, seed
            )
            total += fitted[held_out] / len(repetitions)
        scores[way] = total
        progress(number + 1, len(ways))
    _write_scores(path, molecules, held_out, scores)


def _write_scores(
    path: Path,
    molecules: MoleculeDataset,
    held_out: NDArray[np.int64],
    scores: Mapping[str, NDArray[np.float64]],
) -> None:
    """A column per task and model: `scores` are held-out molecules x tasks."""
    ways = list(scores)
    header = ["row", *(f"{task}_{way}" for task in molecules.tasks for way in ways)]
    table = [
        [
            str(molecules.rows[row]),
            *(f"{scores[way][place, k]:.6g}" for k in range(len(molecules.tasks)) for way in ways),
        ]
        for place, row in enumerate(held_out.tolist())
    ]
    write_rows(path, [safe_cell(cell) for cell in header], table)


def write_parts(
    path: Path,
    molecules: MoleculeDataset,
    parts: Parts,
    ensemble: Ensemble,
    scores: Mapping[str, NDArray[np.float64]],
) -> None:
    """Write what each part of an ensemble predicts for the validation and test molecules, and the whole.

    `scores` are those of `fit_ensemble`. The column `uncalibrated` has the ensemble before its calibration.
    """
    held_out = np.flatnonzero(parts != TRAIN)
    own = {name: values[held_out] for name, values in scores.items()}
    table = ensemble.part_predictions(own, calibrated=False)
    if ensemble.kind == "classification":
        table[UNCALIBRATED] = ensemble.combine(own, calibrated=False)
    _write_scores(path, molecules, held_out, table)


@dataclass(frozen=True)
class HeldOut:
    """Molecules that no model of a run was trained on; tables are molecules x tasks, NaN without a label."""

    rows: list[int]
    ids: list[str] | None
    smiles: list[str]
    parts: list[str]
    labels: NDArray[np.float64]
    predicted: NDArray[np.float64]
    spread: NDArray[np.float64]  # 0 where the model has none
    baselines: Mapping[str, NDArray[np.float64]]
    parts_scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # of an ensemble
    similarity: NDArray[np.float64] | None = None  # to the nearest training molecule
    limited: NDArray[np.bool_] | None = None  # whether a missing label is a censored one

    def of(self, part: str) -> NDArray[np.bool_]:
        return np.array([own == part for own in self.parts], dtype=bool)


def read_held_out(folder: Path, tasks: Sequence[str], kind: Kind) -> HeldOut | None:
    """Read the two tables of a run folder; None without predictions, and no baselines without theirs."""
    path = folder / PREDICTIONS
    if not path.exists():
        return None
    rows = read_rows(path, "predictions", hint="remove the file to report without molecules")
    names = column_names(tasks, kind, tasks)
    try:
        numbers = [int(row["row"]) for row in rows]
        held_out = HeldOut(
            numbers,
            [row["id"] for row in rows] if "id" in rows[0] and "id" not in tasks else None,
            [row["smiles"] for row in rows],
            [row["part"] for row in rows],
            _numbers(rows, tasks),
            _numbers(rows, [prediction for prediction, _ in names]),
            np.nan_to_num(_numbers(rows, [spread for _, spread in names])),
            _read_scores(folder / BASELINES, numbers, tasks, TITLES),
            _read_scores(folder / PART_SCORES, numbers, tasks, (*PARTS, UNCALIBRATED)),
            _numbers(rows, NEAREST[1:])[:, 0] if NEAREST[1] in rows[0] and NEAREST[1] not in tasks else None,
            np.array([[_is_limit(row[safe_cell(task)]) for task in tasks] for row in rows]),
        )
    except (ValueError, KeyError) as error:
        raise DamagedFileError("not a table of predictions", where=str(path)) from error
    return held_out


def _read_scores(
    path: Path, rows: Sequence[int], tasks: Sequence[str], models: Iterable[str]
) -> dict[str, NDArray[np.float64]]:
    """Predictions of each model for these rows, NaN for a row that the table does not have."""
    if not path.exists():
        return {}
    stored = {int(row["row"]): row for row in read_rows(path, "predictions", hint="remove the file")}
    baselines = {}
    for way in models:
        names = [safe_cell(f"{task}_{way}") for task in tasks]
        if all(name in next(iter(stored.values())) for name in names):
            empty = dict.fromkeys(names, "")
            baselines[way] = _numbers([stored.get(row, empty) for row in rows], names)
    return baselines


def _numbers(rows: Sequence[Mapping[str, str]], names: Sequence[str]) -> NDArray[np.float64]:
    """Columns as an array, rows x names; empty cells and censored labels are NaN."""

    def number(cell: str) -> float:
        return np.nan if cell == "" or _is_limit(cell) else float(cell)

    values = [[number(row[safe_cell(name)]) for name in names] for row in rows]
    return np.array(values, dtype=np.float64).reshape(len(rows), len(names))


def _is_limit(cell: str) -> bool:
    return CENSORED.fullmatch(cell) is not None


# Their assessment.


@dataclass(frozen=True)
class Score:
    """A value with its 95 % interval over samples of the test molecules."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 3, sign: str = "") -> str:
        """The value and its interval; with `sign="+"`, positive numbers have one, too."""
        if np.isnan(self.value):
            return "no score"
        value, low, high = (f"{number:{sign}.{digits}f}" for number in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True)
class Counts:
    """Test molecules of the positive class of a task, at a probability of one half."""

    positives: int
    found: int  # positives above one half
    called: int  # molecules above one half

    def sentence(self, name: str) -> str:
        """Recall and precision in words; `name` is that of the positive class."""
        share = "" if not self.positives else f" ({100 * self.found / self.positives:.0f} %)"
        text = f"At a probability of one half it finds {self.found} of {self.positives} {name}{share}"
        if not self.called:
            return f"{text}: it calls no molecule so."
        return f"{text}; of {self.called} that it calls so, {self.found} are."


@dataclass(frozen=True)
class Contender:
    """The model or a simple one: scores on the test molecules, averaged over tasks."""

    name: str
    scores: Mapping[str, Score]
    by_task: Mapping[str, NDArray[np.float64]]
    counts: tuple[Counts, ...] = ()  # by task, in a classification
    gain: Score | None = (
        None  # of the model over this one, in the main metric; positive if the model is better
    )

    @property
    def title(self) -> str:
        return TITLES[self.name]


@dataclass(frozen=True)
class SpreadRelation:
    """How the spread over seeds, parts or trees and the error are related on the validation molecules."""

    correlation: Score  # Spearman, averaged over tasks
    molecules: int
    members: str = "seeds"  # or parts, or trees

    @property
    def informative(self) -> bool:
        """Whether a larger spread goes with a larger error, more than by chance."""
        return self.correlation.value >= RELATED and self.correlation.low > 0

    def sentence(self) -> str:
        if self.molecules < FEWEST or np.isnan(self.correlation.value):
            return (
                f"With {self.molecules} labelled validation molecules it cannot be said whether a larger "
                f"spread over {self.members} goes with a larger error."
            )
        text = (
            f"On {self.molecules} validation molecules, spread over {self.members} and error have a Spearman "
            f"correlation of {self.correlation.text(2)}: "
        )
        if self.informative:
            return f"{text}a larger spread tends to go with a larger error."
        if self.correlation.low > 0:
            return (
                f"{text}a larger spread goes with a larger error only weakly. Do not read it as uncertainty."
            )
        return f"{text}the spread does not tell which predictions are wrong. Do not read it as uncertainty."


@dataclass(frozen=True)
class PartScore:
    """One part of an ensemble: its weight, and its main metric on validation and on test molecules."""

    name: str
    weight: float
    valid: float
    test: float

    @property
    def title(self) -> str:
        return PART_TITLES[self.name]


@dataclass(frozen=True)
class CalibrationCheck:
    """The expected calibration error on test molecules, over the labels of all tasks."""

    before: float
    after: float
    labels: int

    def sentence(self) -> str:
        text = (
            f"Probabilities were calibrated on validation molecules. On {self.labels:,} test labels they are "
            f"off by {self.after:.3f} on average (expected calibration error); before, by {self.before:.3f}."
        )
        if self.after > self.before + 0.01:
            return f"{text} Here it has not helped, as can be where the two sets are of different scaffolds."
        return text


@dataclass(frozen=True)
class Assessment:
    """What a run is worth: its scores, those of simple models, and what its spread says."""

    kind: Kind
    tasks: tuple[str, ...]
    test: int  # molecules with a label
    contenders: tuple[Contender, ...]  # the model first
    spread: SpreadRelation | None  # None with a single seed
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    parts: tuple[PartScore, ...] = ()  # of an ensemble
    calibration: CalibrationCheck | None = None

    @property
    def main(self) -> str:
        """The metric of the verdict: ROC-AUC or RMSE."""
        return next(iter(MEASURES[self.kind]))

    @property
    def model(self) -> Contender:
        return self.contenders[0]

    @property
    def verdict(self) -> str:
        """In a word: `better` than all simple models, `even`, `worse` than one, `useless` or `unknown`."""
        gains = {other.name: other.gain for other in self.contenders[1:] if other.gain is not None}
        if not gains or any(np.isnan(gain.low) for gain in gains.values()):
            return "unknown"
        if "constant" in gains and gains["constant"].low <= 0:
            return "useless"
        if any(gain.high < 0 for gain in gains.values()):
            return "worse"
        return "better" if all(gain.low > 0 for gain in gains.values()) else "even"

    def sentences(self) -> list[str]:
        """The verdict in words."""
        score = self.model.scores[self.main]
        if np.isnan(score.value):
            return ["No test molecules have labels that predictions can be scored on."]
        what = f"{MEASURE_TITLES[self.main]} {score.text()} on {self.test:,} test molecules"
        return [f"{what}; in brackets the 95 % interval.", *self._comparison()]

    def _comparison(self) -> list[str]:
        simple = [other for other in self.contenders[1:] if other.gain is not None]
        if not simple:
            return []
        if self.verdict == "unknown":
            return ["There are too few test molecules to compare it with simple models."]
        # The model gains least over the best of them, which is named first.
        simple.sort(key=lambda other: np.inf if other.gain is None else other.gain.value)
        worse = [other.title for other in simple if other.gain is not None and other.gain.high < 0]
        even = [
            other.title
            for other in simple
            if other.gain is not None and other.gain.low <= 0 <= other.gain.high
        ]
        if self.verdict == "useless":
            return [
                "It is not clearly better than a constant, so its predictions say nothing on this test set."
            ]
        if worse:
            return [f"It is worse than {_listed(worse)} on the same split: use that instead."]
        if even:
            better = [other.title for other in simple if other.title not in even]
            also = f" It is better than {_listed(better)}." if better else ""
            return [f"There is no clear difference to {_listed(even)}, on the same split.{also}"]
        return [f"It is better than {_listed([other.title for other in simple])}, on the same split."]

    def first_counts(self, most: int = 3) -> list[tuple[str, Counts]]:
        """Task and counts of the first tasks of a classification; enough to be said in words."""
        return list(zip(self.tasks, self.model.counts, strict=False))[:most]

    def to_json(self) -> dict[str, object]:
        """For machines; None where a score is undefined."""

        def plain(score: Score) -> dict[str, float | None]:
            values = (("value", score.value), ("low", score.low), ("high", score.high))
            return {name: None if np.isnan(value) else round(value, 6) for name, value in values}

        return {
            "verdict": self.verdict,
            "test_molecules": self.test,
            "scores": {
                one.name: {name: plain(score) for name, score in one.scores.items()}
                for one in self.contenders
            },
            "gain_over": {
                other.name: plain(other.gain) for other in self.contenders[1:] if other.gain is not None
            },
            "spread_and_error": None if self.spread is None else plain(self.spread.correlation),
            "parts": {
                one.name: {
                    "weight": round(one.weight, 4),
                    "valid": None if np.isnan(one.valid) else round(one.valid, 6),
                    "test": None if np.isnan(one.test) else round(one.test, 6),
                }
                for one in self.parts
            },
            "calibration_error": None
            if self.calibration is None
            else {"before": round(self.calibration.before, 6), "after": round(self.calibration.after, 6)},
        }


def _listed(names: Sequence[str]) -> str:
    """Names in words; of many, the first two and the number of the others."""
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:2])} and {len(names) - 2} other simple models"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def assess(
    held_out: HeldOut,
    tasks: Sequence[str],
    kind: Kind,
    groups: Mapping[str, tuple[str, ...]] | None = None,
    ensemble: Ensemble | None = None,
) -> Assessment:
    """Score the delivered predictions and the simple models on the test molecules, with intervals.

    Intervals are of samples of the test molecules, drawn with replacement; those of a gain are paired. With
    the `ensemble` that made the predictions, its parts are scored, too, and its calibration.
    """
    test = held_out.of("test") & ~np.isnan(held_out.labels).all(axis=1)
    labels = held_out.labels[test]
    predictions = {MODEL: held_out.predicted[test]}
    predictions |= {name: values[test] for name, values in held_out.baselines.items()}
    columns = [[tasks.index(task) for task in own] for own in (groups or {}).values()]

    def scores_of(rows: NDArray[np.int64], values: NDArray[np.float64]) -> dict[str, float]:
        means = {
            name: mean_over_tasks(by_task)
            for name, by_task in measure(tasks_of(labels[rows], values[rows]), kind).items()
        }
        if columns:
            means["accuracy"] = float(
                np.mean([_accuracy(labels[rows], values[rows], own) for own in columns])
            )
        return means

    everything = np.arange(len(labels))
    point = {name: scores_of(everything, values) for name, values in predictions.items()}
    metrics = list(point[MODEL])

    def sampled(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        drawn = [scores_of(rows, values) for values in predictions.values()]
        return np.array([[scores[name] for name in metrics] for scores in drawn]).ravel()

    draws = np.full((1, len(predictions), len(metrics)), np.nan)
    if len(labels):
        resamples = max(100, min(RESAMPLES, 60_000 // len(tasks)))  # hundreds of tasks take long
        draws = bootstrap(sampled, len(labels), resamples=resamples).reshape(-1, *draws.shape[1:])
    main = next(iter(MEASURES[kind]))
    sign = -1.0 if main in ERRORS else 1.0
    contenders = []
    for place, (name, values) in enumerate(predictions.items()):
        scores = {
            metric: Score(point[name][metric], *percentile_interval(draws[:, place, k]))
            for k, metric in enumerate(metrics)
        }
        gain = None
        if name != MODEL:
            k = metrics.index(main)
            difference = sign * (draws[:, 0, k] - draws[:, place, k])
            gain = Score(sign * (point[MODEL][main] - point[name][main]), *percentile_interval(difference))
        by_task = measure(tasks_of(labels, values), kind)
        counts = tuple(map(_counts, tasks_of(labels, values))) if kind == "classification" else ()
        contenders.append(Contender(name, scores, by_task, counts, gain))
    members = "seeds" if ensemble is None else ensemble.members
    relation = None if members is None else spread_relation(held_out, members)
    return Assessment(
        kind, tuple(tasks), int(test.sum()), tuple(contenders), relation,
        dict(groups or {}), () if ensemble is None else _part_scores(held_out, ensemble),
        _calibration_check(held_out, kind),
    )  # fmt: skip


def _part_scores(held_out: HeldOut, ensemble: Ensemble) -> tuple[PartScore, ...]:
    """The parts of an ensemble in the order of their weights."""
    main = next(iter(MEASURES[ensemble.kind]))

    def score(values: NDArray[np.float64], part: str) -> float:
        rows = held_out.of(part)
        return mean_over_tasks(measure(tasks_of(held_out.labels[rows], values[rows]), ensemble.kind)[main])

    return tuple(
        PartScore(name, weight, *(score(held_out.parts_scores[name], part) for part in ("valid", "test")))
        for name, weight in sorted(ensemble.weights.items(), key=lambda item: -item[1])
        if name in held_out.parts_scores
    )


def _calibration_check(held_out: HeldOut, kind: Kind) -> CalibrationCheck | None:
    """Before and after; None where nothing was calibrated or no test molecule has a label."""
    before = held_out.parts_scores.get(UNCALIBRATED)
    rows = held_out.of("test")
    known = ~np.isnan(held_out.labels[rows])
    if kind == "regression" or before is None or not known.any():
        return None
    labels = held_out.labels[rows][known]
    errors = [
        expected_calibration_error(Task(labels, values[rows][known]))
        for values in (before, held_out.predicted)
    ]
    return CalibrationCheck(errors[0], errors[1], int(known.sum()))


def _accuracy(labels: NDArray[np.float64], values: NDArray[np.float64], columns: Sequence[int]) -> float:
    """The share of molecules whose most probable class is theirs; NaN where none has a label."""
    own = labels[:, columns]
    known = ~np.isnan(own).any(axis=1)
    if not known.any():
        return np.nan
    return float((own[known].argmax(axis=1) == values[known][:, columns].argmax(axis=1)).mean())


def _counts(task: Task) -> Counts:
    positive, called = task.labels > 0.5, task.scores > 0.5
    return Counts(int(positive.sum()), int((positive & called).sum()), int(called.sum()))


def spread_relation(held_out: HeldOut, members: str = "seeds") -> SpreadRelation | None:
    """Spearman's correlation of spread and absolute error on validation; None where there is no spread."""
    if not held_out.spread.any():
        return None
    valid = held_out.of("valid") & ~np.isnan(held_out.labels).all(axis=1)
    labels, spread = held_out.labels[valid], held_out.spread[valid]
    errors = np.abs(held_out.predicted[valid] - labels)  # NaN without a label

    def correlation(rows: NDArray[np.int64]) -> float:
        return mean_over_tasks(np.array([spearman(task) for task in tasks_of(errors[rows], spread[rows])]))

    if len(labels) < FEWEST:
        return SpreadRelation(Score(np.nan, np.nan, np.nan), len(labels), members)
    value = correlation(np.arange(len(labels)))
    draws = bootstrap(correlation, len(labels), resamples=RESAMPLES)
    return SpreadRelation(Score(value, *percentile_interval(draws)), len(labels), members)
