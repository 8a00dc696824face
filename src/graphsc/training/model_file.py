"""A trained method as one file: weights, recipe and the features it was trained on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import cast

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.tensors import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.methods import Recipe, TrainedMethod


@dataclass(frozen=True)
class Model:
    """A method ready to embed, and what must be true of the graphs it embeds."""

    method: TrainedMethod
    recipe: Recipe
    features: FeatureScheme

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self.method.dimensions(self.features)

    def fit_features(self, collection: GraphCollection) -> GraphCollection:
        """The same graphs with features as this model knows them, or an error that names what differs."""
        return collection.with_features(self.features)


def save_model(
    path: str | os.PathLike[str], method: TrainedMethod, recipe: Recipe, features: FeatureScheme
) -> None:
    """Write the model, whole or not at all."""
    facts = {"recipe": recipe.to_json(), "features": features.to_json()}
    save_tensors(path, "model", method.state_dict(), facts)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model; nothing is loaded in part."""
    tensors, facts = load_tensors(path, "model")
    try:
        stored = cast(dict[str, dict[str, object]], facts)
        recipe = Recipe(
            str(stored["recipe"]["method"]),
            cast(dict[str, object], stored["recipe"]["settings"]),
            str(stored["recipe"]["encoder"]),
            cast(dict[str, object], stored["recipe"]["encoder_settings"]),
        )
        features = FeatureScheme.from_json(stored["features"])
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"model file is damaged: {error}", where=str(path)) from error
    method = recipe.build(features, seed=0)
    check_weights(method, {name: tuple(value.shape) for name, value in tensors.items()}, str(path))
    method.load_state_dict(tensors)
    return Model(method.eval(), recipe, features)


def check_weights(method: TrainedMethod, shapes: dict[str, tuple[int, ...]], where: str) -> None:
    """Refuse weights of another method, width or depth, naming the first difference of each kind."""
    expected = {name: tuple(value.shape) for name, value in method.state_dict().items()}
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
