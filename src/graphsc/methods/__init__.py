"""Methods by name; one file a method."""

from graphsc.methods import (
    adgcl,
    balanced,
    baselines,
    dgk,
    gl,
    graph2vec,
    graphcl,
    graphsc,
    graphsc_plus,
    infograph,
    joao,
    lagraph,
    rgcl,
    simgrace,
    sub2vec,
    wl,
)
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
    "adgcl",
    "balanced",
    "baselines",
    "dgk",
    "gl",
    "graph2vec",
    "graphcl",
    "graphsc",
    "graphsc_plus",
    "infograph",
    "joao",
    "lagraph",
    "make_recipe",
    "rgcl",
    "simgrace",
    "sub2vec",
    "training_settings",
    "wl",
]
