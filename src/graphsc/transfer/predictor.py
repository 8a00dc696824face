"""A fine-tuned model as one file: weights, what they predict, and what the molecules must look like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.tensors import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.embedding import embed
from graphsc.evaluation.tasks import MEASURES, Kind
from graphsc.training.model_file import check_sketch, check_weights
from graphsc.transfer.finetuned import FineTuned
from graphsc.transfer.start import Start

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
