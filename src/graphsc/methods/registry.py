"""Methods by name: what each is, where it comes from, and how it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError
from graphsc.core.random import derive_seed
from graphsc.core.registry import Registry, nearest
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders import ENCODERS
from graphsc.methods.base import TrainedMethod
from graphsc.methods.fitted import FittedMethod

ENCODER = "gin"  # what methods are trained with unless another is asked for
Kind = Literal["trained", "fitted", "gram"]
AnyMethod = TrainedMethod | FittedMethod


@dataclass(frozen=True)
class MethodEntry:
    """A line of `graphsc methods`, and what makes the method."""

    make: Callable[..., AnyMethod]
    paper: str
    year: int
    summary: str
    kind: Kind = "trained"
    settings: Mapping[str, object] = field(default_factory=dict)  # what a variant changes
    # Settings that came after results were stored, at the values those were made with.
    later: Mapping[str, object] = field(default_factory=dict)
    # Settings by preset; `encoder.KEY` and `training.KEY` reach further. A preset named `NAME@DATA` is added
    # to NAME's where the collection is called DATA: settings that were published for one data set.
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    # Settings that depend on the graphs ("auto"), to what they mean for these.
    resolve: Callable[[dict[str, object], GraphCollection], dict[str, object]] | None = None


METHODS: Registry[MethodEntry] = Registry("method")

# What all published codes for molecules share: Hu et al.'s encoder with the mean over atoms, Adam at 1e-3
# without decay, batches of 256.
ON_MOLECULES: Mapping[str, object] = {
    "encoder.readout": "mean",
    "training.learning_rate": 1e-3,
    "training.batch_size": 256,
}


@dataclass(frozen=True)
class Recipe:
    """A method with every setting filled in: what a run stores and what makes the method again."""

    method: str
    settings: Mapping[str, object]
    encoder: str | None  # None for a method that is not `trained`
    encoder_settings: Mapping[str, object]

    def build(self, features: FeatureScheme, seed: int) -> AnyMethod:
        """The method with fresh weights; the seed alone decides them."""
        make = METHODS.get(self.method).make
        if self.encoder is None:
            return make(**_checked_method(self.method, self.settings))
        make_encoder = ENCODERS.get(self.encoder)
        of_encoder = _checked_encoder(self.encoder, self.encoder_settings)
        settings = _checked_method(self.method, self.settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "initialisation"))
            return make(make_encoder(features, **of_encoder), **settings)

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "settings": _lists(self.settings),
            "encoder": self.encoder,
            "encoder_settings": dict(self.encoder_settings),
        }


def make_recipe(
    method: str,
    collection: GraphCollection,
    settings: Mapping[str, object] | None = None,
    *,
    preset: str = "default",
    encoder: str = ENCODER,
) -> Recipe:
    """Fill in a method's settings: constructor, then variant, then preset, then the caller's.

    Keys that start with `encoder.` are the encoder's.
    """
    entry = METHODS.get(method)
    merged, of_encoder = _split(method, collection.name, settings or {}, preset, encoder)
    if entry.resolve is not None:
        merged = entry.resolve(merged, collection)
    return Recipe(method, merged, encoder if entry.kind == "trained" else None, of_encoder)


def declared_settings(
    method: str,
    data: str,
    settings: Mapping[str, object] | None = None,
    *,
    preset: str = "default",
    encoder: str = ENCODER,
) -> dict[str, object]:
    """All settings of a recipe, the encoder's as `encoder.KEY`, before any is resolved from the graphs."""
    merged, of_encoder = _split(method, data, settings or {}, preset, encoder)
    return _lists({**merged, **{f"encoder.{key}": value for key, value in of_encoder.items()}})


def _split(
    method: str, data: str, settings: Mapping[str, object], preset: str, encoder: str
) -> tuple[dict[str, object], dict[str, object]]:
    """Checked settings of the method and of its encoder: constructor, variant, preset, then the caller's."""
    entry = METHODS.get(method)
    ours = {**entry.settings, **preset_settings(method, preset, data)}
    given = {key: value for key, value in ours.items() if not key.startswith("training.")} | dict(settings)
    of_encoder = {
        key.removeprefix("encoder."): given.pop(key) for key in list(given) if key.startswith("encoder.")
    }
    merged = _checked_method(method, {**_defaults(entry.make), **given})
    if entry.kind != "trained":
        return merged, {}
    return merged, _checked_encoder(encoder, {**_defaults(ENCODERS.get(encoder)), **of_encoder})


def preset_settings(method: str, preset: str, data: str) -> dict[str, object]:
    """What a preset sets for the data set of this name; `default` sets nothing."""
    presets = METHODS.get(method).presets
    if preset == "default":
        return {}
    names = sorted({name.partition("@")[0] for name in presets})
    if preset not in names:
        raise ConfigError(
            f"method {method!r} has no preset {preset!r}", hint=nearest(preset, ["default", *names])
        )
    return {**presets.get(preset, {}), **presets.get(f"{preset}@{data}", {})}


def training_settings(method: str, preset: str, data: str) -> dict[str, object]:
    """What a preset says of the loop: epochs, learning rate and the like."""
    found = {**METHODS.get(method).settings, **preset_settings(method, preset, data)}
    return {
        key.removeprefix("training."): value for key, value in found.items() if key.startswith("training.")
    }


def _checked_method(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    given = ("encoder",) if METHODS.get(name).kind == "trained" else ()
    return check_arguments(METHODS.get(name).make, settings, f"method {name!r}", given=given)


def _checked_encoder(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    return check_arguments(ENCODERS.get(name), settings, f"encoder {name!r}", given=("features",))


def _defaults(make: Callable[..., object]) -> dict[str, object]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(make).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _lists(settings: Mapping[str, object]) -> dict[str, object]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
