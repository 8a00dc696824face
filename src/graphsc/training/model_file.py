"""A learned method as one file: weights, recipe and the features it was trained on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.tensors import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.embedding import embed
from graphsc.methods import METHODS, AnyMethod, FittedMethod, Recipe, TrainedMethod
from graphsc.training.sixteen_bits import from_sixteen_bits


@dataclass(frozen=True)
class Model:
    """A method ready to embed, and what must be true of the graphs it embeds."""

    method: AnyMethod
    recipe: Recipe
    features: FeatureScheme

    @property
    def dimensions(self) -> int:
        """The length of a row."""
        if isinstance(self.method, FittedMethod):
            return self.method.dimensions()
        return self.method.dimensions(self.features)

    @property
    def gram(self) -> bool:
        """True where rows are kernel values against the training graphs, not vectors."""
        return METHODS.get(self.recipe.method).kind == "gram"

    def fit_features(self, collection: GraphCollection) -> GraphCollection:
        """The same graphs with features as this model knows them, or an error that names what differs."""
        return collection.with_features(self.features)

    def embed(self, collection: GraphCollection) -> NDArray[np.float32]:
        """One row a graph, for any graphs; features are matched by meaning."""
        known = self.fit_features(collection)
        if isinstance(self.method, TrainedMethod):
            return embed(self.method, known)
        if not self.method.inductive:
            raise ConfigError(
                f"{self.recipe.method} has vectors only for the graphs it was fitted on",
                hint="fit it on these graphs, or take another method for unseen ones",
            )
        return self.method.transform(known)


def save_model(
    path: str | os.PathLike[str], method: AnyMethod, recipe: Recipe, features: FeatureScheme
) -> None:
    """Write the model, whole or not at all."""
    facts: dict[str, object] = {"recipe": recipe.to_json(), "features": features.to_json()}
    if isinstance(method, TrainedMethod):
        save_tensors(path, "model", method.state_dict(), facts)
        return
    arrays = method.state()
    facts["dtypes"] = {name: value.dtype.str for name, value in arrays.items()}
    save_tensors(path, "model", {name: _as_tensor(value) for name, value in arrays.items()}, facts)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model; nothing is loaded in part."""
    tensors, facts = load_tensors(path, "model")
    damaged = "model file is damaged"
    try:
        stored = cast(dict[str, dict[str, object]], facts)
        encoder = stored["recipe"]["encoder"]
        recipe = Recipe(
            str(stored["recipe"]["method"]),
            cast(dict[str, object], stored["recipe"]["settings"]),
            None if encoder is None else str(encoder),
            cast(dict[str, object], stored["recipe"]["encoder_settings"]),
        )
        features = FeatureScheme.from_json(stored["features"])
        if not isinstance(recipe.settings, dict) or not isinstance(recipe.encoder_settings, dict):
            raise ValueError("settings have no names")
        packed = facts.get("part") == "encoder"
        if packed:
            tensors = from_sixteen_bits(tensors)
        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        method = _build(recipe, features, shapes, str(path), packed)
    except (KeyError, TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    if isinstance(method, TrainedMethod):
        (method.encoder if packed else method).load_state_dict(tensors)
        return Model(method.eval(), recipe, features)
    try:
        dtypes = stored["dtypes"]
        method.load_state(
            {name: value.numpy().view(np.dtype(str(dtypes[name]))) for name, value in tensors.items()}
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    return Model(method, recipe, features)


def _build(
    recipe: Recipe, features: FeatureScheme, shapes: Mapping[str, tuple[int, ...]], where: str, packed: bool
) -> AnyMethod:
    """The method with fresh weights, once its shapes are known to be those of the file."""
    if recipe.encoder is not None:
        check_sketch(lambda: _learned(recipe.build(features, seed=0), packed), shapes, where)
    method = recipe.build(features, seed=0)
    learned = _learned(method, packed)
    if learned is not None:
        check_weights(learned, shapes, where)
    return method


def _learned(method: AnyMethod, packed: bool) -> nn.Module | None:
    """What a file's weights are of: a packed one has the encoder alone, which is all that embedding needs."""
    if not isinstance(method, TrainedMethod):
        return None
    return method.encoder if packed else method


def check_sketch(
    make: Callable[[], nn.Module | None], shapes: Mapping[str, tuple[int, ...]], where: str
) -> None:
    """Refuse weights of another module than `make` makes, without memory for the module.

    A small file may ask for a model of any size.
    """
    sketch = None
    # An encoder of somebody else's may look at its numbers and cannot be sketched without them.
    with suppress(RuntimeError, NotImplementedError), torch.device("meta"):
        sketch = make()
    if sketch is not None:
        check_weights(sketch, shapes, where)


def check_weights(module: nn.Module, shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
    """Refuse weights of another method, width or depth, naming the first difference of each kind."""
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    missing, extra = sorted(expected.keys() - shapes.keys()), sorted(shapes.keys() - expected.keys())
    other = [name for name in expected if name in shapes and expected[name] != shapes[name]]
    problems = []
    if missing:
        problems.append(f"{len(missing)} weights are missing, {missing[0]} first")
    if extra:
        problems.append(f"{len(extra)} weights have no place, {extra[0]} first")
    if other:
        problems.append(f"{other[0]} has shape {shapes[other[0]]}, not {expected[other[0]]}")
    if problems:
        raise ConfigError(f"these weights are of another model: {'; '.join(problems)}", where=where)


# Unsigned numbers wider than a byte are stored as signed ones of the same width: torch has little for them.
_SIGNED = {np.dtype(f"uint{bits}"): np.dtype(f"int{bits}") for bits in (16, 32, 64)}


def _as_tensor(array: NDArray[np.generic]) -> Tensor:
    array = np.ascontiguousarray(array)
    return torch.from_numpy(array.view(_SIGNED.get(array.dtype, array.dtype)))
