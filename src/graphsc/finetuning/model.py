"""Fine-tuning as a method like others: an encoder, one linear layer on top, and labels to learn from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
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
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.data.molecules.rows import hash_of
from graphsc.encoders import ENCODERS
from graphsc.encoders.inference import embed
from graphsc.evaluation.metrics import MEASURES, Kind
from graphsc.losses import masked_bce, masked_mse
from graphsc.methods.base import Encoded, Losses, TrainedMethod, Views
from graphsc.training.model_io import check_sketch, check_weights, find_model, load_model


class FineTuned(TrainedMethod):
    """An encoder with a head of one output a task.

    A classification gives logits and is trained by binary cross-entropy, a regression gives numbers in the
    labels' own units and is trained on the squared error of standardised labels. What is missing counts
    nowhere. BatchNorm keeps its running statistics, as all of the literature on transfer does.
    """

    bn = "running"

    def __init__(self, encoder: nn.Module, *, tasks: int, kind: Kind = "classification") -> None:
        super().__init__()
        self.encoder = encoder
        self.kind = kind
        self.head = nn.Linear(int(encoder.dimensions), tasks)  # type: ignore[arg-type]
        self.register_buffer("mean", torch.zeros(tasks))
        self.register_buffer("deviation", torch.ones(tasks))
        self.mean: Tensor
        self.deviation: Tensor

    def standardise(self, labels: Tensor) -> None:
        """Take units and offset of a regression from the labels it trains on (graphs x tasks)."""
        there = ~labels.isnan()
        count = there.sum(0).clamp(min=1)
        mean = labels.nan_to_num(0.0).double().sum(0) / count
        squares = torch.where(there, (labels.double() - mean).square(), 0.0).sum(0) / count
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(squares > 0, squares.sqrt(), 1.0))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Raw outputs of the head, and the labels they are for."""
        batch = views["anchor"]
        assert batch.y is not None  # noqa: S101 - only labelled molecules are trained on
        return {"output": self.head(self.encoder(batch)), "labels": batch.y}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The mean over all labels that are there."""
        if self.kind == "classification":
            return {"bce": masked_bce(encoded["output"], encoded["labels"])}
        return {"mse": masked_mse(encoded["output"], (encoded["labels"] - self.mean) / self.deviation)}

    def forward(self, batch: GraphBatch) -> Tensor:
        """Graphs x tasks: logits, or numbers in the labels' own units."""
        output: Tensor = self.head(self.encoder(batch))
        return output if self.kind == "classification" else output * self.deviation + self.mean


# What fine-tuning starts from: the encoder of a trained run, or one with its first weights.


NONE = "none"  # as weights: start from nothing
ENCODER = "molecule-gin"  # of what starts from nothing


@dataclass(frozen=True)
class Start:
    """An encoder by name and settings, and the weights it begins with, if it does not begin anew."""

    method: str  # that has trained the weights, or "none"
    encoder: str
    settings: Mapping[str, object]
    features: FeatureScheme
    weights: Mapping[str, Tensor] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)  # where the weights come from

    def build(self, seed: int, dropout: float) -> nn.Module:
        """The encoder, ready to be tuned; without weights the seed alone decides its first ones."""
        make = ENCODERS.get(self.encoder)
        settings = check_arguments(
            make, self.tuned(dropout), f"encoder {self.encoder!r}", given=("features",)
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "initialisation"))
            encoder = make(self.features, **settings)
        if self.weights is not None:
            encoder.load_state_dict(dict(self.weights))
        return encoder

    def tuned(self, dropout: float) -> dict[str, object]:
        """The encoder's settings with this dropout, where it has any."""
        drops = "dropout" in inspect.signature(ENCODERS.get(self.encoder)).parameters
        return {**self.settings, **({"dropout": dropout} if drops else {})}


def start_from(
    weights: str | Path,
    features: FeatureScheme,
    *,
    encoder: str = ENCODER,
    settings: Mapping[str, object] | None = None,
) -> Start:
    """The encoder of a run folder or model file, or with `"none"` the named one untrained."""
    if str(weights) == NONE:
        given = dict(settings or {})
        check_arguments(ENCODERS.get(encoder), given, f"encoder {encoder!r}", given=("features",))
        return Start(NONE, encoder, {**encoder_defaults(encoder), **given}, features)
    if settings:
        raise ConfigError(
            f"{', '.join(settings)} cannot be set: trained weights bring their own encoder",
            hint="start from none to choose the encoder",
        )
    path, file = Path(weights), _model_file(weights)
    model = load_model(file)
    state = model.method.encoder.state_dict() if isinstance(model.method, TrainedMethod) else {}
    if not state or model.recipe.encoder is None:
        raise ConfigError(
            f"{model.recipe.method} has no encoder to fine-tune", where=str(path),
            hint="train a method that learns one, with --encoder molecule-gin",
        )  # fmt: skip
    facts: dict[str, object] = {"sha256": hash_of(file)}
    if path.is_dir():
        config = RunFolder(path).load_config()
        facts |= {key: config[key] for key in ("data", "settings", "training", "epochs") if key in config}
    return Start(
        model.recipe.method, model.recipe.encoder, model.recipe.encoder_settings, model.features, state, facts
    )


def encoder_defaults(encoder: str = ENCODER) -> dict[str, object]:
    """The settings of an encoder that nobody has changed."""
    parameters = inspect.signature(ENCODERS.get(encoder)).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _model_file(weights: str | Path) -> Path:
    """The model file of a run folder, the file itself, or that of a shipped model's name."""
    file = find_model(weights)
    if file.exists():
        return file
    if Path(weights).is_dir():
        raise NotFoundError(
            "this folder holds no finished run", where=str(weights), hint="train it to its end"
        )
    raise NotFoundError(
        "there are no such weights", where=str(weights),
        hint="give the folder of a trained run, a model file, a model's name, or the word none",
    )  # fmt: skip


# A fine-tuned model as one file: weights, what they predict, and what the molecules must look like.


# The model of a seed by each rule.
FILES = {"last": "last.safetensors", "best": "best.safetensors"}


@dataclass(frozen=True)
class Predictor:
    """A fine-tuned model, ready for molecules it has never seen."""

    method: FineTuned
    start: Start  # the encoder's name and settings; without weights
    dropout: float
    tasks: tuple[str, ...]
    classes: Mapping[str, tuple[str, str]]
    facts: Mapping[str, object]  # rule, epoch, score on validation, seed

    @property
    def kind(self) -> Kind:
        return self.method.kind

    def scores(self, collection: GraphCollection) -> NDArray[np.float32]:
        """Graphs x tasks: logits of a classification, numbers of a regression."""
        return embed(self.method, collection.with_features(self.start.features))

    def predict(self, collection: GraphCollection) -> NDArray[np.float32]:
        """Graphs x tasks: probabilities of a classification, numbers of a regression."""
        scores = self.scores(collection)
        if self.kind == "regression":
            return scores
        return torch.sigmoid(torch.from_numpy(scores)).numpy()

    def save(self, path: Path) -> None:
        """Write the model, whole or not at all."""
        facts: dict[str, object] = {
            **self.facts,
            "encoder": self.start.encoder,
            "encoder_settings": dict(self.start.settings),
            "dropout": self.dropout,
            "features": self.start.features.to_json(),
            "method": self.start.method,
            "tasks": list(self.tasks),
            "kind": self.kind,
            "classes": {task: list(names) for task, names in self.classes.items()},
        }
        save_tensors(path, "predictor", self.method.state_dict(), facts)


def load_predictor(path: Path) -> Predictor:
    """Read a fine-tuned model; nothing is loaded in part."""
    tensors, facts = load_tensors(path, "predictor")
    where = str(path)
    try:
        start = Start(
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

        def make() -> FineTuned:
            return FineTuned(start.build(0, dropout), tasks=len(tasks), kind=kind)

        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        check_sketch(make, shapes, where)
        method = make()
        check_weights(method, shapes, where)
    except (LookupError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"predictor file is damaged: {error}", where=where) from error
    method.load_state_dict(tensors)
    return Predictor(method.eval(), replace(start, weights=None), dropout, tasks, classes, facts)


def _texts(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TypeError("its tasks have no names")
    return tuple(found)


def model_file(folder: Path, rule: str = "best") -> Path:
    """The model of a seed's folder by this rule; where nothing could be chosen by validation, the last."""
    path = folder / FILES[rule]
    return path if path.exists() else folder / FILES["last"]


def predictors_of(model: str | Path, rule: str = "best") -> list[Path]:
    """The model files of a fine-tuning run or of one seed of it; or the one file itself."""
    path = Path(model)
    if path.is_file():
        return [path]
    seeds = [folder for folder in path.glob("seed-*") if folder.name.removeprefix("seed-").isdecimal()]
    seeds.sort(key=lambda folder: int(folder.name.removeprefix("seed-")))
    found = [file for folder in (path, *seeds) if (file := model_file(folder, rule)).is_file()]
    if not found:
        raise NotFoundError(
            "there is no fine-tuned model here", where=str(path),
            hint="give the folder that graphsc finetune wrote, or a model file in it",
        )  # fmt: skip
    return found
