"""The fine-tuned model: an encoder with a linear head, its initialisation, and its file."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import load_tensors, save_tensors, stored_kind
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.data.molecules.rows import hash_of
from graphsc.encoders import ENCODERS
from graphsc.encoders.inference import embed
from graphsc.evaluation.metrics import MEASURES, Kind
from graphsc.finetuning.features import (
    BLOCKS,
    Block,
    MoleculeFeatures,
    RawFeatures,
    Scaler,
    descriptor_names,
)
from graphsc.losses import masked_bce, masked_mse
from graphsc.methods.base import Encoded, Losses, TrainedMethod, Views
from graphsc.training.distributed import pick_device
from graphsc.training.model_files import find_model, fine_tuned_files
from graphsc.training.model_io import check_on_meta, check_weights, load_model

HIDDEN = 128  # width to which the features beside the encoder are reduced


class FineTuned(TrainedMethod):
    """An encoder with a linear head of one output per task.

    With `extra`, the head also sees so many features of each molecule (fingerprints, descriptors), reduced to
    128 by a layer with dropout on both sides. A batch carries them in `y`, behind the labels of the tasks.
    With `class_weights`, both classes of a task count as much as each other in the loss.

    A classification outputs logits and is trained with binary cross-entropy. A regression outputs values in
    the units of the labels and is trained with the squared error of standardised labels. Missing labels (NaN)
    are ignored. BatchNorm keeps its running statistics, as in all of the literature on transfer.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        tasks: int,
        kind: Kind = "classification",
        extra: int = 0,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(encoder, batch_norm_embedding="running")
        self.kind = kind
        self.tasks = tasks
        self.extra = extra
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        if extra:
            self.reduce = nn.Sequential(
                nn.Dropout(dropout), nn.Linear(extra, HIDDEN), nn.ReLU(), nn.Dropout(dropout)
            )
        self.head = nn.Linear(width + (HIDDEN if extra else 0), tasks)
        self.class_weights: Tensor | None = None  # tasks x 2, of negatives and positives
        self.register_buffer("mean", torch.zeros(tasks))
        self.register_buffer("deviation", torch.ones(tasks))
        self.mean: Tensor
        self.deviation: Tensor

    def standardise(self, labels: Tensor) -> None:
        """Set mean and deviation of a regression to those of the training labels (graphs x tasks)."""
        known = ~labels.isnan()
        count = known.sum(0).clamp(min=1)
        mean = labels.nan_to_num(0.0).double().sum(0) / count
        squares = torch.where(known, (labels.double() - mean).square(), 0.0).sum(0) / count
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(squares > 0, squares.sqrt(), 1.0))

    def balance_classes(self, labels: Tensor) -> None:
        """Weigh the classes of each task by the training labels (graphs x tasks): halves of their number."""
        known, ones = (~labels.isnan()).sum(0).double(), (labels == 1).sum(0).double()
        zeros = known - ones
        both = (ones > 0) & (zeros > 0)
        weights = torch.stack([known / (2 * zeros.clamp(min=1)), known / (2 * ones.clamp(min=1))], dim=1)
        self.class_weights = torch.where(both[:, None], weights, 1.0).float()

    def outputs(self, batch: GraphBatch) -> Tensor:
        """Raw outputs of the head: graphs x tasks."""
        rows = self.encoder(batch)
        if self.extra:
            assert batch.y is not None  # noqa: S101 - callers add the features
            rows = torch.cat([rows, self.reduce(batch.y[:, self.tasks :].to(rows.dtype))], dim=1)
        output: Tensor = self.head(rows)
        return output

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Raw outputs of the head and the labels, both graphs x tasks."""
        batch = views["anchor"]
        assert batch.y is not None  # noqa: S101 - only labelled molecules are trained on
        return {"output": self.outputs(batch), "labels": batch.y[:, : self.tasks]}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The mean loss over all known labels."""
        if self.kind == "classification":
            labels = encoded["labels"]
            if self.class_weights is None:
                return {"bce": masked_bce(encoded["output"], labels)}
            negative, positive = self.class_weights.to(labels.device).T
            weights = torch.where(labels > 0.5, positive, negative)
            return {"bce": masked_bce(encoded["output"], labels, weights)}
        return {"mse": masked_mse(encoded["output"], (encoded["labels"] - self.mean) / self.deviation)}

    def forward(self, batch: GraphBatch) -> Tensor:
        """Logits, or values in the units of the labels: graphs x tasks."""
        output = self.outputs(batch)
        return output if self.kind == "classification" else output * self.deviation + self.mean


NONE = "none"  # in place of weights: random initialisation
ENCODER = "molecule-gin"  # the encoder without weights


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder by name and settings, with its pre-trained weights if it has any."""

    method: str  # the method that trained the weights, or "none"
    encoder: str
    settings: Mapping[str, object]
    features: FeatureScheme
    weights: Mapping[str, Tensor] | None = None  # None: random initialisation
    facts: Mapping[str, object] = field(default_factory=dict)  # origin of the weights

    def build(self, seed: int, dropout: float) -> nn.Module:
        """Build the encoder; without weights, the seed decides its random initialisation."""
        make = ENCODERS.get(self.encoder)
        settings = check_arguments(
            make, self.settings_with(dropout), f"encoder {self.encoder!r}", given=("features",)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "initialisation"))
            encoder = make(self.features, **settings)
        if self.weights is not None:
            encoder.load_state_dict(dict(self.weights))
        return encoder

    def settings_with(self, dropout: float) -> dict[str, object]:
        """The encoder's settings with this dropout, if it has dropout."""
        drops = "dropout" in inspect.signature(ENCODERS.get(self.encoder)).parameters
        return {**self.settings, **({"dropout": dropout} if drops else {})}


def resolve_encoder(
    weights: str | Path,
    features: FeatureScheme,
    *,
    encoder: str = ENCODER,
    settings: Mapping[str, object] | None = None,
) -> EncoderSpec:
    """The encoder of a run folder, model file or model name; with `"none"`, the named one without weights.

    `features`, `encoder` and `settings` are those of an encoder without weights.
    """
    if str(weights) == NONE:
        given = dict(settings or {})
        check_arguments(ENCODERS.get(encoder), given, f"encoder {encoder!r}", given=("features",))
        return EncoderSpec(NONE, encoder, {**encoder_defaults(encoder), **given}, features)
    if settings:
        raise ConfigError(
            f"{', '.join(settings)} cannot be set: trained weights bring their own encoder",
            hint="use none in place of weights to choose the encoder",
        )
    path, file = Path(weights), _model_file(weights)
    model = load_model(file)
    tuned = stored_kind(file) == "predictor"
    state = model.method.encoder.state_dict() if isinstance(model.method, TrainedMethod) else {}
    if not state or model.recipe.encoder is None:  # an encoder that is an object was refused when loaded
        raise ConfigError(
            f"{model.recipe.method} has no encoder to fine-tune", where=str(path),
            hint="train a method that learns one, with --encoder molecule-gin",
        )  # fmt: skip
    facts: dict[str, object] = {"sha256": hash_of(file)}
    if path.is_dir() and not tuned:
        config = RunFolder(path).load_config()
        facts |= {key: config[key] for key in ("data", "settings", "training", "epochs") if key in config}
    method = f"{load_predictor(file).encoder.method}, fine-tuned" if tuned else model.recipe.method
    return EncoderSpec(
        method, model.recipe.encoder, model.recipe.encoder_settings, model.features, state, facts
    )


def encoder_defaults(encoder: str = ENCODER) -> dict[str, object]:
    """The default settings of an encoder."""
    parameters = inspect.signature(ENCODERS.get(encoder)).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _model_file(weights: str | Path) -> Path:
    """The model file of a run folder, a model name or the given file itself, if it exists."""
    file = find_model(weights)
    if file.exists():
        return file
    if Path(weights).is_dir():
        raise NotFoundError(
            "this folder holds no finished run", where=str(weights), hint="finish its training first"
        )
    raise NotFoundError(
        "there are no such weights", where=str(weights),
        hint="give the folder of a trained run, a model file, a model's name, or the word none",
    )  # fmt: skip


@dataclass(frozen=True)
class Predictor:
    """A fine-tuned model with what is needed to predict new molecules."""

    method: FineTuned
    encoder: EncoderSpec  # without weights
    dropout: float
    tasks: tuple[str, ...]
    classes: Mapping[str, tuple[str, str]]
    facts: Mapping[str, object]  # selection rule, epoch, validation score, seed
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # tasks by column of several classes
    features: MoleculeFeatures = field(default_factory=lambda: MoleculeFeatures(()))  # beside the encoder

    @property
    def kind(self) -> Kind:
        return self.method.kind

    def scores(
        self,
        collection: GraphCollection,
        smiles: Sequence[str] | None = None,
        raw: RawFeatures | None = None,
    ) -> NDArray[np.float32]:
        """Logits of a classification or values of a regression: graphs x tasks.

        A model that sees fingerprints or descriptors needs the SMILES of the molecules, or these features.
        """
        rows = None
        if self.features.blocks:
            if raw is None:
                if smiles is None:
                    raise ConfigError(
                        "this model also sees fingerprints, which are computed from SMILES",
                        hint="give molecules as SMILES",
                    )
                raw = RawFeatures.of(smiles, self.features.blocks)
            rows = self.features.rows(raw)
        return embed(
            self.method, with_extra(collection.with_features(self.encoder.features), rows, len(self.tasks))
        )

    def predict(
        self,
        collection: GraphCollection,
        smiles: Sequence[str] | None = None,
        raw: RawFeatures | None = None,
    ) -> NDArray[np.float32]:
        """Probabilities of a classification or values of a regression: graphs x tasks."""
        scores = self.scores(collection, smiles, raw)
        if self.kind == "regression":
            return scores
        return torch.sigmoid(torch.from_numpy(scores)).numpy()

    def save(self, path: Path) -> None:
        """Write the model file atomically."""
        facts: dict[str, object] = {
            **self.facts,
            "encoder": self.encoder.encoder,
            "encoder_settings": dict(self.encoder.settings),
            "dropout": self.dropout,
            "features": self.encoder.features.to_json(),
            "method": self.encoder.method,
            "tasks": list(self.tasks),
            "kind": self.kind,
            "classes": {task: list(names) for task, names in self.classes.items()},
        }
        if self.groups:
            facts["groups"] = {column: list(tasks) for column, tasks in self.groups.items()}
        tensors = self.method.state_dict()
        if self.features.blocks:
            facts["with"] = list(self.features.blocks)
            facts["descriptors"] = list(descriptor_names()) if "rdkit" in self.features.blocks else []
        if (scaler := self.features.scaler) is not None:
            tensors[_SCALER[0]] = torch.from_numpy(scaler.mean)
            tensors[_SCALER[1]] = torch.from_numpy(scaler.deviation)
        save_tensors(path, "predictor", tensors, facts)


_SCALER = ("features.mean", "features.deviation")  # of descriptors, in the file


def with_extra(collection: GraphCollection, rows: NDArray[np.float32] | None, tasks: int) -> GraphCollection:
    """The collection with features (graphs x width) behind its labels, where a batch carries them."""
    if rows is None:
        return collection
    labels = collection.labels
    if labels is None:
        labels = np.full((len(collection), tasks), np.nan, dtype=np.float32)
    names = (*(f"task {k}" for k in range(tasks)), *(f"feature {k}" for k in range(rows.shape[1])))
    joined = np.concatenate([np.asarray(labels[:, :tasks], np.float32), rows], axis=1)
    return replace(collection, labels=joined, tasks=names, classes={})


def load_predictor(path: Path, device: str = "cpu") -> Predictor:
    """Read a fine-tuned model, completely or not at all, onto `auto`, `cpu`, `cuda` or `mps`."""
    tensors, facts = load_tensors(path, "predictor")
    where = str(path)
    try:
        encoder = EncoderSpec(
            str(facts.pop("method")),
            str(facts.pop("encoder")),
            dict(cast(dict[str, object], facts.pop("encoder_settings"))),
            FeatureScheme.from_json(cast(dict[str, object], facts.pop("features"))),
        )
        tasks = _texts(facts.pop("tasks"))
        kind = cast(Kind, facts.pop("kind"))
        if kind not in MEASURES or not tasks:
            raise ValueError(f"it predicts {len(tasks)} tasks of kind {kind!r}")
        classes = {
            task: (names[0], names[1])
            for task, names in cast(dict[str, list[str]], facts.pop("classes")).items()
        }
        dropout = float(cast(float, facts.pop("dropout")))
        stored = cast(dict[str, object], facts.pop("groups", {}))
        groups = {column: _texts(names) for column, names in stored.items()}
        if not {task for names in groups.values() for task in names} <= set(tasks):
            raise ValueError("it has classes of no task")

        features = stored_features(facts, tensors)

        def make() -> FineTuned:
            return FineTuned(
                encoder.build(0, dropout), tasks=len(tasks), kind=kind, extra=features.width, dropout=dropout
            )

        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        check_on_meta(make, shapes, where)
        method = make()
        check_weights(method, shapes, where)
    except (LookupError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"predictor file is damaged: {error}", where=where) from error
    method.load_state_dict(tensors)
    return Predictor(
        method.eval().to(pick_device(device)), encoder, dropout, tasks, classes, facts, groups, features
    )


def stored_features(facts: dict[str, object], tensors: dict[str, Tensor]) -> MoleculeFeatures:
    """The features beside the encoder, which are taken out of the facts and tensors of a file."""
    blocks = _texts(facts.pop("with", []))
    names = _texts(facts.pop("descriptors", []))
    scaler = None
    if _SCALER[0] in tensors:
        mean, deviation = (tensors.pop(name).numpy() for name in _SCALER)
        if mean.shape != deviation.shape or mean.shape != (len(names),):
            raise ValueError("its descriptors have another number")
        scaler = Scaler(mean, deviation)
    if not set(blocks) <= set(BLOCKS) or ("rdkit" in blocks) != (scaler is not None):
        raise ValueError("it sees unknown features")
    if names and names != descriptor_names():
        raise ValueError("this version of RDKit has other descriptors")
    return MoleculeFeatures(cast(tuple[Block, ...], blocks), scaler)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError("its tasks have no names")
    return tuple(value)


def predictors_of(model: str | Path, rule: str = "best") -> list[Path]:
    """The model files of a fine-tuning run or of one of its seeds; a file is returned as it is.

    Of a folder of several label fractions, those of the largest.
    """
    path = Path(model)
    if path.is_file():
        return [path]
    files = fine_tuned_files(path, rule)
    if not files:
        raise NotFoundError(
            "there is no fine-tuned model here", where=str(path),
            hint="give the folder that graphsc finetune wrote, or a model file in it",
        )  # fmt: skip
    return files
