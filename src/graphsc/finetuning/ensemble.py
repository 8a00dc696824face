"""The ensemble that `graphsc finetune` delivers: its parts, their weights, and what it is stored as.

Parts are the fine-tuned encoder (its seeds averaged), a linear model on fingerprints and descriptors, another
on the vectors of the frozen encoder, and a random forest and gradient boosting on all of these. Log-odds of
a classification are scaled per part, then averaged with weights, then calibrated per task; all three are
fitted on validation molecules. Values of a regression are averaged with weights. The epoch of a fine-tuned
encoder is chosen on validation, too, so its scores for these molecules are those of epochs that were chosen
without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphsc.core.errors import DamagedFileError
from graphsc.core.random import numpy_generator
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.evaluation.metrics import MEASURES, Kind, Task, mean_over_tasks, measure, tasks_of
from graphsc.finetuning.calibration import Calibration, fit_platt, log_odds, sigmoid
from graphsc.finetuning.classical import (
    ClassWeight,
    Family,
    Models,
    TreeModels,
    fit_models,
    models_from_arrays,
)
from graphsc.finetuning.dataset import MoleculeDataset
from graphsc.finetuning.features import (
    BLOCKS,
    MoleculeFeatures,
    RawFeatures,
    Scaler,
    descriptor_names,
)
from graphsc.finetuning.model import NONE, EncoderSpec, Predictor
from graphsc.training.model_io import check_on_meta, check_weights

Part = Literal["encoder", "linear", "vectors", "forest", "boosting"]
ModelName = Literal["ensemble", "encoder", "linear", "vectors", "forest", "boosting"]
PARTS: tuple[Part, ...] = ("encoder", "linear", "vectors", "forest", "boosting")
FAMILIES: Mapping[str, Family] = {
    "linear": "linear", "vectors": "linear", "forest": "forest", "boosting": "boosting"
}  # fmt: skip
PART_TITLES = {
    "encoder": "fine-tuned encoder",
    "linear": "linear model on fingerprints and descriptors",
    "vectors": "linear model on frozen vectors",
    "forest": "random forest on all features",
    "boosting": "gradient boosting on all features",
}
ENSEMBLE = "ensemble.safetensors"
BAGS, FEWER_BAGS = 20, 5  # samples of the validation molecules on which weights are chosen
MANY_TASKS = 50  # beyond which there are fewer bags
STEPS = 10  # parts added to the mean of all, at most
# What decides the weights; a stored result has it, so that it is computed again if the rule changes.
RULE: Mapping[str, object] = {
    "start": "standard errors", "bags": BAGS, "steps": STEPS, "encoder": "cross-fitted epochs",
}  # fmt: skip

Scores = Mapping[str, NDArray[np.float64]]  # by part: molecules x tasks, log-odds or values


@dataclass(frozen=True)
class FrozenEncoder:
    """An encoder that is not trained further, and the standardisation of its vectors."""

    spec: EncoderSpec  # without weights
    module: nn.Module
    scaler: Scaler

    @classmethod
    def fit(
        cls, spec: EncoderSpec, collection: GraphCollection, train: NDArray[np.bool_]
    ) -> tuple[FrozenEncoder, NDArray[np.float32]]:
        """Re-estimate BatchNorm and standardise on the training molecules; also the vectors of all."""
        module = spec.build(0, dropout=0.0)
        graphs = replace(collection, labels=None, tasks=()).with_features(spec.features)
        reestimate_batchnorm(module, graphs.take(np.flatnonzero(train)))
        vectors = embed(module, graphs)
        frozen = cls(replace(spec, weights=None), module.eval(), Scaler.fit(vectors[train]))
        return frozen, frozen.scaler.transform(vectors)

    def vectors(self, collection: GraphCollection) -> NDArray[np.float32]:
        graphs = replace(collection, labels=None, tasks=()).with_features(self.spec.features)
        return self.scaler.transform(embed(self.module, graphs))

    @property
    def width(self) -> int:
        return len(self.scaler.mean)


@dataclass(frozen=True)
class Ensemble:
    """The parts of a model with their weights; the fine-tuned encoders are in files of their own."""

    kind: Kind
    tasks: tuple[str, ...]
    classes: Mapping[str, tuple[str, str]]
    groups: Mapping[str, tuple[str, ...]]
    model: ModelName  # what was asked for
    weights: Mapping[str, float]  # by part; they add up to 1
    slopes: Mapping[str, float]  # by part, of the log-odds of a classification
    calibrations: tuple[Calibration, ...]  # by task
    features: MoleculeFeatures = field(default_factory=lambda: MoleculeFeatures(()))
    frozen: FrozenEncoder | None = None
    models: Mapping[str, Models] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Columns of the rows that trees see."""
        return self.features.width + (0 if self.frozen is None else self.frozen.width)

    def part_scores(
        self,
        collection: GraphCollection,
        smiles: Sequence[str],
        predictors: Sequence[Predictor],
        raw: RawFeatures | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """The scores of each part: molecules x tasks, log-odds or values.

        Args:
            collection: The molecules.
            smiles: Their SMILES.
            predictors: The fine-tuned encoders, one per seed.
            raw: Their features, if they are known.
        """
        blocks = BLOCKS if self.models else predictors[0].features.blocks if predictors else ()
        if raw is None:
            raw = RawFeatures.of(smiles, blocks)
        scores: dict[str, NDArray[np.float64]] = {}
        if "encoder" in self.weights:
            scores["encoder"] = encoder_scores(predictors, collection, raw)
        if self.models:
            rows = self.features.rows(raw)
            vectors = None if self.frozen is None else self.frozen.vectors(collection)
            for name, models in self.models.items():
                scores[name] = models.scores(_rows_of(name, rows, vectors))
        return scores

    def part_predictions(self, scores: Scores, *, calibrated: bool = True) -> dict[str, NDArray[np.float64]]:
        """Probabilities or values of each part, as if it were the whole model."""
        if self.kind == "regression":
            return dict(scores)
        return {
            name: sigmoid(self._calibrated(self.slopes[name] * values) if calibrated else values)
            for name, values in scores.items()
        }

    def combine(self, scores: Scores, *, calibrated: bool = True) -> NDArray[np.float64]:
        """Probabilities or values: molecules x tasks."""
        total = combine_scores(scores, self.weights, self.slopes)
        if self.kind == "regression":
            return total
        return sigmoid(self._calibrated(total) if calibrated else total)

    def decision(self, scores: Scores) -> NDArray[np.float64]:
        """Calibrated log-odds or values, in which contributions of atoms are measured."""
        total = combine_scores(scores, self.weights, self.slopes)
        return total if self.kind == "regression" else self._calibrated(total)

    @property
    def members(self) -> str | None:
        """What the spread of a prediction is over; None for a single model, which has no spread."""
        if len(self.weights) > 1:
            return "parts"
        return {"encoder": "seeds", "forest": "trees"}.get(next(iter(self.weights)))

    def spread_over_trees(
        self, collection: GraphCollection, smiles: Sequence[str], raw: RawFeatures | None = None
    ) -> NDArray[np.float64]:
        """Of a forest alone: the standard deviation of its trees, of votes or values; molecules x tasks."""
        forest = self.models["forest"]
        assert isinstance(forest, TreeModels)  # noqa: S101 - narrows the type
        rows = self.features.rows(RawFeatures.of(smiles, BLOCKS) if raw is None else raw)
        vectors = None if self.frozen is None else self.frozen.vectors(collection)
        return forest.deviations(_rows_of("forest", rows, vectors))

    def spread(self, scores: Scores) -> NDArray[np.float64]:
        """The weighted standard deviation of the parts: molecules x tasks; 0 with a single one."""
        members = self.part_predictions(scores)
        mean = np.sum([self.weights[name] * values for name, values in members.items()], axis=0)
        square = np.sum(
            [self.weights[name] * (values - mean) ** 2 for name, values in members.items()], axis=0
        )
        spread: NDArray[np.float64] = np.sqrt(square)
        return spread

    def _calibrated(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([own.apply(scores[:, k]) for k, own in enumerate(self.calibrations)], axis=1)

    def save(self, path: Path) -> None:
        """Write the file atomically: tensors and JSON, no pickle."""
        facts: dict[str, object] = {
            "kind": self.kind,
            "tasks": list(self.tasks),
            "classes": {task: list(names) for task, names in self.classes.items()},
            "groups": {column: list(tasks) for column, tasks in self.groups.items()},
            "model": self.model,
            "weights": dict(self.weights),
            "slopes": dict(self.slopes),
            "calibrations": [[one.slope, one.shift] for one in self.calibrations],
            "parts": list(self.models),
            "descriptors": list(descriptor_names()) if self.models else [],
        }
        tensors: dict[str, Tensor] = {}
        for name, models in self.models.items():
            for key, array in models.arrays(name).items():
                tensors[key] = torch.from_numpy(np.ascontiguousarray(array))
        if self.features.scaler is not None:
            tensors |= _scaler_tensors("descriptors", self.features.scaler)
        if self.frozen is not None:
            spec = self.frozen.spec
            facts["frozen"] = {
                "encoder": spec.encoder, "settings": dict(spec.settings), "method": spec.method,
                "features": spec.features.to_json(),
            }  # fmt: skip
            tensors |= _scaler_tensors("vectors", self.frozen.scaler)
            tensors |= {f"frozen.{key}": value for key, value in self.frozen.module.state_dict().items()}
        save_tensors(path, "ensemble", tensors, facts)


def _scaler_tensors(name: str, scaler: Scaler) -> dict[str, Tensor]:
    return {
        f"{name}.mean": torch.from_numpy(scaler.mean),
        f"{name}.deviation": torch.from_numpy(scaler.deviation),
    }


def _rows_of(
    name: str, rows: NDArray[np.float32], vectors: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """The features that a part sees."""
    if name == "linear" or vectors is None:
        return rows
    return vectors if name == "vectors" else np.concatenate([rows, vectors], axis=1)


def load_ensemble(path: Path) -> Ensemble:
    """Read an ensemble, completely or not at all."""
    tensors, facts = load_tensors(path, "ensemble")
    try:
        kind = cast(Kind, facts["kind"])
        tasks = tuple(cast(list[str], facts["tasks"]))
        if kind not in MEASURES or not tasks:
            raise ValueError(f"it predicts {len(tasks)} tasks of kind {kind!r}")
        classes = {
            task: (names[0], names[1]) for task, names in cast(dict[str, list[str]], facts["classes"]).items()
        }
        groups = {column: tuple(own) for column, own in cast(dict[str, list[str]], facts["groups"]).items()}
        weights = {name: float(value) for name, value in cast(dict[str, float], facts["weights"]).items()}
        slopes = {name: float(value) for name, value in cast(dict[str, float], facts["slopes"]).items()}
        pairs = cast(list[tuple[float, float]], facts["calibrations"])
        names = cast(list[str], facts["parts"])
        if len(pairs) != len(tasks) or not weights or not set(weights) <= {*names, "encoder"} <= set(PARTS):
            raise ValueError("its parts do not fit each other")
        if set(slopes) != set(weights) or not np.isfinite([*weights.values(), *slopes.values()]).all():
            raise ValueError("its weights do not fit its parts")
        frozen = _stored_frozen(cast("dict[str, object] | None", facts.get("frozen")), tensors, str(path))
        features, models = MoleculeFeatures(()), {}
        if names:
            if facts["descriptors"] != list(descriptor_names()):
                raise ValueError("this version of RDKit has other descriptors")
            features = MoleculeFeatures(BLOCKS, _stored_scaler("descriptors", tensors))
            arrays = {key: value.numpy() for key, value in tensors.items()}
            vectors = 0 if frozen is None else frozen.width
            widths = {"linear": features.width, "vectors": vectors}
            for name in names:
                width = widths.get(name, features.width + vectors)
                models[name] = models_from_arrays(FAMILIES[name], name, arrays, kind, len(tasks), width)
        model = cast(ModelName, facts["model"])
    except (LookupError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"ensemble file is damaged: {error}", where=str(path)) from error
    calibrations = tuple(Calibration(float(slope), float(shift)) for slope, shift in pairs)
    return Ensemble(
        kind, tasks, classes, groups, model, weights, slopes, calibrations, features, frozen, models
    )


def _stored_scaler(name: str, tensors: Mapping[str, Tensor]) -> Scaler:
    mean, deviation = (tensors[f"{name}.{key}"].numpy() for key in ("mean", "deviation"))
    if mean.shape != deviation.shape or mean.ndim != 1:
        raise ValueError("its standardisation has another shape")
    return Scaler(mean, deviation)


def _stored_frozen(
    facts: dict[str, object] | None, tensors: Mapping[str, Tensor], where: str
) -> FrozenEncoder | None:
    if facts is None:
        return None
    spec = EncoderSpec(
        str(facts["method"]), str(facts["encoder"]), dict(cast(dict[str, object], facts["settings"])),
        FeatureScheme.from_json(cast(dict[str, object], facts["features"])),
    )  # fmt: skip
    state = {
        name.removeprefix("frozen."): value for name, value in tensors.items() if name.startswith("frozen.")
    }
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    check_on_meta(lambda: spec.build(0, 0.0), shapes, where)
    module = spec.build(0, 0.0)
    check_weights(module, shapes, where)
    module.load_state_dict(state)
    scaler = _stored_scaler("vectors", tensors)
    if scaler.mean.shape != (int(module.dimensions),):  # type: ignore[arg-type]
        raise ValueError("its vectors have another width")
    return FrozenEncoder(spec, module.eval(), scaler)


def encoder_scores(
    predictors: Sequence[Predictor],
    collection: GraphCollection,
    raw: RawFeatures,
    places: NDArray[np.intp] | None = None,
    unchosen: Sequence[NDArray[np.float32] | None] = (),
) -> NDArray[np.float64]:
    """The mean over the seeds: of probabilities, as log-odds, or of values.

    The molecules at `places` have the scores of `unchosen` instead, where these are known.
    """
    outputs = np.stack([one.predict(collection, raw=raw) for one in predictors]).astype(np.float64)
    classification = predictors[0].kind == "classification"
    for output, scores in zip(outputs, unchosen, strict=False):
        if scores is None or places is None:
            continue
        own = scores.astype(np.float64)
        own = sigmoid(own) if classification else own
        output[places] = np.where(np.isnan(own), output[places], own)
    mean: NDArray[np.float64] = outputs.mean(axis=0)
    return log_odds(mean) if classification else mean


def combine_scores(
    scores: Scores, weights: Mapping[str, float], slopes: Mapping[str, float]
) -> NDArray[np.float64]:
    """The weighted mean of scaled scores: molecules x tasks."""
    total: NDArray[np.float64] = np.sum(
        [weight * slopes[name] * scores[name] for name, weight in weights.items()], axis=0
    )
    return total


# Fitting.


def parts_of(model: ModelName, weights: str | Path) -> tuple[Part, ...]:
    """The parts that a model has; vectors of an encoder without pre-training are no part."""
    if model != "ensemble":
        return (model,)
    return tuple(part for part in PARTS if part != "vectors" or str(weights) != NONE)


def fit_ensemble(
    molecules: MoleculeDataset,
    model: ModelName,
    parts: Sequence[Part],
    spec: EncoderSpec,
    train: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    predictors: Sequence[Predictor] = (),
    *,
    unchosen: Sequence[NDArray[np.float32] | None] = (),
    class_weight: ClassWeight = "none",
    seed: int = 0,
    jobs: int | None = None,
    raw: RawFeatures | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Ensemble, dict[str, NDArray[np.float64]]]:
    """Fit the classical parts on the training molecules, then scale, weigh and calibrate on validation.

    Args:
        molecules: All labelled molecules.
        model: The name of what is delivered, for the file.
        parts: Its parts.
        spec: The encoder; its vectors are used where it has pre-trained weights.
        train: Marks the molecules that parts are fitted on.
        valid: Marks the validation molecules.
        predictors: The fine-tuned encoders, one per seed.
        unchosen: Of each, its scores of the validation molecules from epochs that these had no part in
            choosing; NaN, or None for a whole encoder, where there are none.
        class_weight: Whether both classes count as much as each other in training.
        seed: Of forests, boosting and the samples of validation molecules.
        jobs: Threads, each with a task; by default one per core.
        raw: Fingerprints and descriptors of all molecules, if they are known.
        progress: Called with the tasks done and the tasks in total, over all parts.

    Returns:
        The ensemble, and the scores of each part for all molecules, with those of `unchosen` encoders.
    """
    classical = [part for part in parts if part != "encoder"]
    scores: dict[str, NDArray[np.float64]] = {}
    features, frozen = MoleculeFeatures(()), None
    models: dict[str, Models] = {}
    blocks = BLOCKS if classical else predictors[0].features.blocks if predictors else ()
    if raw is None:
        raw = RawFeatures.of(molecules.smiles, blocks)
    if classical:
        features = MoleculeFeatures.fit(BLOCKS, raw, train)
        rows = features.rows(raw)
        vectors = None
        if spec.weights is not None:
            frozen, vectors = FrozenEncoder.fit(spec, molecules.collection, train)
        for place, name in enumerate(classical):
            own = _rows_of(name, rows, vectors)
            start, tasks = place * len(molecules.tasks), len(molecules.tasks)
            models[name] = fit_models(
                FAMILIES[name], own, molecules.labels, train, valid, molecules.kind,
                class_weight=class_weight, seed=seed, jobs=jobs,
                progress=lambda done, _, start=start, tasks=tasks: progress(  # type: ignore[misc]
                    start + done, tasks * len(classical)
                ),
            )  # fmt: skip
            scores[name] = models[name].scores(own)
    if "encoder" in parts:
        scores["encoder"] = encoder_scores(
            predictors, molecules.collection, raw, np.flatnonzero(valid), unchosen
        )
    scores = {part: scores[part] for part in parts}
    labels = molecules.labels[valid]
    own_scores = {name: values[valid] for name, values in scores.items()}
    slopes = fit_slopes(own_scores, labels, molecules.kind)
    scaled = {name: slopes[name] * values for name, values in own_scores.items()}
    weights = choose_weights(scaled, labels, molecules.kind, seed)
    calibrations = [Calibration()] * len(molecules.tasks)
    if molecules.kind == "classification":
        total = combine_scores(own_scores, weights, slopes)
        calibrations = [fit_platt(task) for task in tasks_of(labels, total)]
    ensemble = Ensemble(
        molecules.kind, molecules.tasks, dict(molecules.classes), dict(molecules.groups), model, weights,
        slopes, tuple(calibrations), features, frozen, models,
    )  # fmt: skip
    return ensemble, scores


def fit_slopes(scores: Scores, labels: NDArray[np.floating], kind: Kind) -> dict[str, float]:
    """A factor of the log-odds of each part, over all its tasks, so that parts are of one scale."""
    if kind == "regression":
        return dict.fromkeys(scores, 1.0)
    slopes = {}
    known = ~np.isnan(labels)
    for name, values in scores.items():
        task = Task(labels[known], values[known])
        slopes[name] = fit_platt(task, with_shift=False).slope if known.any() else 1.0
    return slopes


def choose_weights(
    scores: Scores, labels: NDArray[np.floating], kind: Kind, seed: int = 0
) -> dict[str, float]:
    """Weights of the parts by greedy selection on validation, started from a cautious mean.

    The start is a mean of all parts in which each counts exp((its score - the best score) / standard error),
    the standard error being that of a score over samples of the validation molecules. So parts that cannot be
    told apart count the same, and one that is clearly worse counts little. On each of 20 such samples the
    selection adds, with replacement, the part that raises the score of the mean most, up to ten times. The
    shares are averaged over the samples.

    Args:
        scores: By part, of the validation molecules: molecules x tasks.
        labels: Molecules x tasks.
        kind: ROC-AUC decides in a classification, the squared error in a regression; means over tasks.
        seed: Of the samples.
    """
    names = list(scores)
    if len(names) == 1:
        return {names[0]: 1.0}
    stacked = np.stack([scores[name] for name in names])
    alone = np.array([_quality(part, labels, kind) for part in stacked])
    if np.isnan(alone).any():
        return dict.fromkeys(names, 1 / len(names))
    generator = numpy_generator(seed, "ensemble weights")
    bags = BAGS if labels.shape[1] <= MANY_TASKS else FEWER_BAGS
    samples = [generator.integers(0, len(labels), len(labels)) for _ in range(bags)]
    drawn = np.array([[_quality(part[rows], labels[rows], kind) for part in stacked] for rows in samples])
    deviations = [column[~np.isnan(column)].std() for column in drawn.T if not np.isnan(column).all()]
    error = max(float(np.mean(deviations)) if deviations else 0.0, 1e-6)
    start = np.exp((alone - alone.max()) / error)
    start *= len(names) / start.sum()
    total = np.zeros(len(names))
    for rows in samples:
        total += _greedy(stacked[:, rows], labels[rows], start, kind)
    return {name: float(share) for name, share in zip(names, total / bags, strict=True)}


def _greedy(
    scores: NDArray[np.float64], labels: NDArray[np.floating], start: NDArray[np.float64], kind: Kind
) -> NDArray[np.float64]:
    """Shares of the parts (parts x molecules x tasks) after additions to a mean with these weights."""
    counts = start.copy()
    current: NDArray[np.float64] = np.tensordot(counts, scores, 1)
    best = _quality(current / counts.sum(), labels, kind)
    for _ in range(STEPS):
        qualities = [_quality((current + part) / (counts.sum() + 1), labels, kind) for part in scores]
        if np.isnan(qualities).all() or not np.nanmax(qualities) > best:
            break
        place = int(np.nanargmax(qualities))
        best = qualities[place]
        counts[place] += 1
        current = current + scores[place]
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def _quality(scores: NDArray[np.float64], labels: NDArray[np.floating], kind: Kind) -> float:
    """Higher is better; NaN where no task can be scored."""
    tasks = tasks_of(labels, scores)
    if kind == "classification":
        return mean_over_tasks(measure(tasks, kind)["roc_auc"])
    errors = []
    for task in tasks:
        deviation = float(task.labels.std()) if len(task.labels) else 0.0
        if deviation > 0:
            errors.append(float(np.square(task.labels - task.scores).mean()) / deviation**2)
    return -float(np.mean(errors)) if errors else np.nan
