"""What fine-tuning starts from: the encoder of a trained run, or one with its first weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.features import FeatureScheme
from graphsc.data.molecules.lines import hash_of
from graphsc.encoders import ENCODERS
from graphsc.methods import TrainedMethod
from graphsc.training.model_file import load_model
from graphsc.training.shipped import find_model

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
        config = RunFolder(path).settled()
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
