"""Methods by name; one file a method."""

from graphsc.methods import baselines, graphsc
from graphsc.methods.base import Player, TrainedMethod
from graphsc.methods.fitted import FittedMethod
from graphsc.methods.registry import (
    METHODS,
    AnyMethod,
    MethodEntry,
    Recipe,
    make_recipe,
    training_settings,
)

__all__ = [
    "METHODS",
    "AnyMethod",
    "FittedMethod",
    "MethodEntry",
    "Player",
    "Recipe",
    "TrainedMethod",
    "baselines",
    "graphsc",
    "make_recipe",
    "training_settings",
]
