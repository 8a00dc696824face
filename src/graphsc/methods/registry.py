"""Methods by name: what each is, where it comes from, and how it is built from settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import torch
from torch import nn

from graphsc.core.config import check_arguments, parse_yaml
from graphsc.core.errors import ConfigError
from graphsc.core.random import derive_seed
from graphsc.core.registry import Registry, nearest
from graphsc.core.run_folder import ADDED_SETTINGS, RENAMED_SETTINGS, without_added
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders import ENCODERS, PygEncoder, as_encoder
from graphsc.methods.base import TrainedMethod
from graphsc.methods.fitted import FittedMethod

ENCODER = "gin"  # the default encoder of trained methods
MOLECULE_COLUMNS = (("atom", "chirality"), ("bond", "direction"))  # the first of nodes, those of edges
Kind = Literal["trained", "fitted", "gram"]
GraphKind = Literal["labelled", "unlabelled"]
TUNED = "tuned"  # the preset that a search chose; it exists for methods that have been searched
TUNED_FILE = Path(__file__).with_name("tuned.yaml")
AnyMethod = TrainedMethod | FittedMethod


@dataclass(frozen=True)
class MethodEntry:
    """A registered method: its line in `graphsc methods`, its constructor and its presets."""

    make: Callable[..., AnyMethod]
    paper: str
    year: int
    summary: str
    kind: Kind = "trained"
    # For the table of all methods; a test checks `passes` against a step.
    contrast: str = ""  # what is compared with what; empty: nothing is
    negatives: str = ""  # what it is told apart from; empty: no negatives
    augmentation: str = ""  # how views are made; empty: none are
    passes: int = 0  # graphs that a training step encodes, per graph of its batch
    only_gin: bool = False  # whether it takes no encoder but `gin`
    settings: Mapping[str, object] = field(default_factory=dict)  # what a variant changes
    # Settings by preset name; the keys `encoder.KEY` and `training.KEY` set the encoder and the loop. A
    # preset `NAME@DATA` extends NAME on the collection called DATA, for settings published per data set. On
    # others, `NAME@labelled` or `NAME@unlabelled` does, by whether nodes have labels or attributes.
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    # Replaces settings that depend on the graphs, such as "auto", by their values for this collection.
    resolve: Callable[[dict[str, object], GraphCollection], dict[str, object]] | None = None


METHODS: Registry[MethodEntry] = Registry("method")

# Shared by all published codes for molecules: Hu et al.'s encoder with the mean over atoms, Adam at 1e-3
# without weight decay, batches of 256. A mean over atoms has no size to keep.
ON_MOLECULES: Mapping[str, object] = {
    "encoder.readout": "mean",
    "batch_norm_embedding": "reestimate",
    "training.learning_rate": 1e-3,
    "training.batch_size": 256,
}


@dataclass(frozen=True)
class Recipe:
    """A method with every setting filled in: what a run stores, and what builds the method again."""

    method: str
    settings: Mapping[str, object]
    encoder: str | None  # None for a method that is not `trained`
    encoder_settings: Mapping[str, object]

    def build(
        self,
        features: FeatureScheme,
        seed: int,
        *,
        encoder: nn.Module | None = None,
        method: TrainedMethod | None = None,
    ) -> AnyMethod:
        """Build the method with randomly initialised weights, determined by the seed alone.

        Args:
            features: The feature scheme of the graphs.
            seed: Of the initialisation.
            encoder: The encoder, for a recipe with an encoder that was passed as an object.
            method: The method, for a recipe with a method that was passed as an object; it is returned.
        """
        if is_object(self.method):
            return cast(TrainedMethod, _check_object("method", self.method, method))
        make = METHODS.get(self.method).make
        settings = _check_method(self.method, self.settings)
        if self.encoder is None:
            return make(**settings)
        if is_object(self.encoder):
            module = as_encoder(_check_object("encoder", self.encoder, encoder), features)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive_seed(seed, "initialisation"))
                return make(module, **settings)
        make_encoder = ENCODERS.get(self.encoder)
        encoder_settings = _check_encoder(self.encoder, self.encoder_settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "initialisation"))
            return make(make_encoder(features, **encoder_settings), **settings)

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "settings": _with_lists(self.settings),
            "encoder": self.encoder,
            "encoder_settings": dict(self.encoder_settings),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Recipe:
        """Read what `to_json` wrote, today or under the older names of some settings.

        Raises:
            KeyError, TypeError, ValueError: where `stored` is no recipe.
        """
        method, encoder = str(stored["method"]), stored["encoder"]
        settings, encoder_settings = stored["settings"], stored["encoder_settings"]
        if not isinstance(settings, dict) or not isinstance(encoder_settings, dict):
            raise ValueError("settings have no names")
        return cls(
            method,
            _added_before(method) | _current_names(method, cast(dict[str, object], settings)),
            None if encoder is None else str(encoder),
            cast(dict[str, object], encoder_settings),
        )


OBJECT = "object:"  # begins the name, in a recipe, of what was passed as an object: its class


def is_object(name: str | None) -> bool:
    """Whether a recipe's method or encoder was passed as an object, and is not in the registry."""
    return name is not None and name.startswith(OBJECT)


def object_name(module: nn.Module) -> str:
    """The name of an object in a recipe; of a wrapped PyG module, its own."""
    kind = type(module.module if isinstance(module, PygEncoder) else module)
    return f"{OBJECT}{kind.__module__}.{kind.__qualname__}"


def _check_object(kind: str, name: str, module: nn.Module | None) -> nn.Module:
    given = "none" if module is None else object_name(module).removeprefix(OBJECT)
    expected = name.removeprefix(OBJECT)
    if module is None or given != expected:
        raise ConfigError(
            f"the {kind} of this model was passed as an object of {expected}, and {given} is given",
            hint=f"pass such an object as {kind}=, with the arguments it was made with",
        )
    return module


def check_objects(method: object, encoder: object = ENCODER) -> None:
    """Raise `ConfigError` for a method or encoder that is neither a name nor an object, such as a class."""
    for kind, value, base in (("method", method, TrainedMethod), ("encoder", encoder, nn.Module)):
        if isinstance(value, type):
            name = value.__name__
            raise ConfigError(
                f"{kind} is the class {name}, not an object", hint=f"make one: {name}(...); or give a name"
            )
        if not isinstance(value, (str, base)):
            raise ConfigError(f"{kind} is a {type(value).__name__}", hint=f"give a name or a {base.__name__}")


def make_recipe(
    method: str | TrainedMethod,
    collection: GraphCollection,
    settings: Mapping[str, object] | None = None,
    *,
    preset: str = "default",
    encoder: str | nn.Module = ENCODER,
) -> Recipe:
    """Fill in all settings of a method for a collection.

    Later sources override earlier ones: constructor defaults, variant, preset, `settings`. Keys of `settings`
    that start with `encoder.` are the encoder's. An object has its own settings, so that none can be set.
    """
    settings = settings or {}
    if isinstance(method, TrainedMethod):
        if settings or preset != "default":
            raise ConfigError(
                "settings and presets are for methods by name", hint="set them when you make the object"
            )
        return Recipe(object_name(method), {}, object_name(method.encoder), {})
    entry = METHODS.get(method)
    kind = kind_of(collection)
    if isinstance(encoder, nn.Module):
        if of_encoder := [key for key in settings if key.startswith("encoder.")]:
            raise ConfigError(
                f"{of_encoder[0]} cannot be set: the encoder is an object",
                hint="set it when you make the object",
            )
        if entry.kind != "trained":
            raise ConfigError(f"{method} has no encoder")
    merged, encoder_settings = _merge(
        method, collection.name, settings, preset, encoder if isinstance(encoder, str) else None, kind
    )
    if entry.resolve is not None:
        merged = entry.resolve(merged, collection)
    name = encoder if isinstance(encoder, str) else object_name(encoder)
    return Recipe(method, merged, name if entry.kind == "trained" else None, encoder_settings)


def default_encoder(method: str, collection: GraphCollection) -> str:
    """The encoder where none is chosen: `gine`, which sees bonds, for molecules, else `gin`."""
    if METHODS.get(method).only_gin:
        return ENCODER
    nodes, edges = (
        tuple(column.name for column in table.columns) for table in (collection.nodes, collection.edges)
    )
    return "gine" if (nodes[:2], edges) == MOLECULE_COLUMNS else ENCODER


def trains(method: str) -> bool:
    """Whether a method has steps of training, so that settings of the loop mean something."""
    entry = METHODS.get(method)
    return entry.kind == "trained" and bool(getattr(entry.make, "trains", True))


def declared_settings(
    method: str,
    data: str,
    settings: Mapping[str, object] | None = None,
    *,
    preset: str = "default",
    encoder: str = ENCODER,
    kind: GraphKind | None = None,
) -> dict[str, object]:
    """All settings of a recipe before `resolve`, the encoder's as `encoder.KEY`.

    Settings that were added later are left out at the value that stands for what the method did before.
    """
    merged, encoder_settings = _merge(method, data, settings or {}, preset, encoder, kind)
    of_encoder = {f"encoder.{key}": value for key, value in encoder_settings.items()}
    return _with_lists(without_added({**merged, **of_encoder}))


def kind_of(collection: GraphCollection) -> GraphKind:
    """Whether nodes have labels or attributes, by which presets may differ."""
    return "labelled" if collection.nodes.columns else "unlabelled"


def presets_of(method: str) -> dict[str, Mapping[str, object]]:
    """The presets of a method, with those that a search has frozen."""
    frozen = _frozen(TUNED_FILE).get(method, {})
    tuned = {f"{TUNED}@{name}": settings for name, settings in frozen.items()}
    return {**METHODS.get(method).presets, **({TUNED: {}} if tuned else {}), **tuned}


def searched_settings(method: str, data: str) -> Mapping[str, object]:
    """What a search chose for this method on this very data set; empty if there was none."""
    return _frozen(TUNED_FILE).get(method, {}).get(data, {})


@lru_cache
def _frozen(path: Path) -> dict[str, dict[str, Mapping[str, object]]]:
    """Frozen settings by method, then by data set or kind of graph; none before a search has run."""
    if not path.is_file():
        return {}
    return cast(dict[str, dict[str, Mapping[str, object]]], parse_yaml(path.read_text(), path.name))


def preset_settings(method: str, preset: str, data: str, kind: GraphKind | None = None) -> dict[str, object]:
    """The settings of a preset; `default` is empty.

    Args:
        method: A registered method.
        preset: Its preset.
        data: The name of the collection.
        kind: The kind of its graphs, for a collection that the preset does not know by name.

    Raises:
        ConfigError: The method has no such preset, or none for these graphs.
    """
    presets = presets_of(method)
    if preset == "default":
        return {}
    names = sorted({name.partition("@")[0] for name in presets})
    if preset not in names:
        raise ConfigError(
            f"method {method!r} has no preset {preset!r}", hint=nearest(preset, ["default", *names])
        )
    own = presets.get(f"{preset}@{data}", presets.get(f"{preset}@{kind}"))
    if own is None and preset == TUNED:
        raise ConfigError(
            f"the preset {TUNED!r} of {method!r} has no settings for {data!r} or {kind or 'its'} graphs",
            hint="choose another preset, or search on these graphs with graphsc sweep",
        )
    return {**presets.get(preset, {}), **(own or {})}


def training_settings(
    method: str, preset: str, data: str, kind: GraphKind | None = None
) -> dict[str, object]:
    """The settings of a variant and preset for the training loop: epochs, learning rate and the like."""
    merged = {**METHODS.get(method).settings, **preset_settings(method, preset, data, kind)}
    return {
        key.removeprefix("training."): value for key, value in merged.items() if key.startswith("training.")
    }


def _merge(
    method: str,
    data: str,
    settings: Mapping[str, object],
    preset: str,
    encoder: str | None,
    kind: GraphKind | None,
) -> tuple[dict[str, object], dict[str, object]]:
    """Checked settings of the method and of its encoder; an encoder that is an object (None) has its own."""
    entry = METHODS.get(method)
    own = {**entry.settings, **preset_settings(method, preset, data, kind)}
    merged = {key: value for key, value in own.items() if not key.startswith("training.")}
    merged |= _current_names(method, settings)
    encoder_settings = {
        key.removeprefix("encoder."): merged.pop(key) for key in list(merged) if key.startswith("encoder.")
    }
    checked = _check_method(method, {**_defaults(entry.make), **merged})
    if entry.kind != "trained" or encoder is None:
        return checked, {}
    return checked, _check_encoder(encoder, {**_defaults(ENCODERS.get(encoder)), **encoder_settings})


def _current_names(method: str, settings: Mapping[str, object]) -> dict[str, object]:
    """Settings under their current names; configs and models written before a renaming have the old ones."""
    if is_object(method):
        return dict(settings)
    accepted = inspect.signature(METHODS.get(method).make).parameters
    return {
        RENAMED_SETTINGS[key] if key not in accepted and RENAMED_SETTINGS.get(key) in accepted else key: value
        for key, value in settings.items()
    }


def _added_before(method: str) -> dict[str, object]:
    """The values of `ADDED_SETTINGS` that a method takes, as they are in files that do not have them."""
    if is_object(method):
        return {}
    accepted = inspect.signature(METHODS.get(method).make).parameters
    return {name: value for name, value in ADDED_SETTINGS.items() if name in accepted}


def _check_method(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    given = ("encoder",) if METHODS.get(name).kind == "trained" else ()
    return check_arguments(METHODS.get(name).make, settings, f"method {name!r}", given=given)


def _check_encoder(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    return check_arguments(ENCODERS.get(name), settings, f"encoder {name!r}", given=("features",))


def _defaults(make: Callable[..., object]) -> dict[str, object]:
    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(make).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is not parameter.empty
    }


def _with_lists(settings: Mapping[str, object]) -> dict[str, object]:
    """Tuples as lists, as JSON and YAML have them."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
