"""Methods by name; one file a method."""

from graphsc.methods import baselines, graphsc
from graphsc.methods.base import Player, TrainedMethod
from graphsc.methods.registry import METHODS, MethodEntry, Recipe, make_recipe

__all__ = [
    "METHODS",
    "MethodEntry",
    "Player",
    "Recipe",
    "TrainedMethod",
    "baselines",
    "graphsc",
    "make_recipe",
]
