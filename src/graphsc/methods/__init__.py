"""Graph representation learning methods by name; one module per method."""

from graphsc.methods import (  # noqa: F401 - importing a module registers its methods
    adgcl,
    attrmasking,
    baselines,
    contextpred,
    dgk,
    edgepred,
    gl,
    graph2vec,
    graphcl,
    graphlog,
    graphsc,
    graphsc_plus,
    infograph,
    infomax,
    joao,
    lagraph,
    rgcl,
    simgrace,
    sub2vec,
    wl,
)
from graphsc.methods.base import Player, Pretext, TrainedMethod
from graphsc.methods.fitted import FittedMethod
from graphsc.methods.registry import (
    METHODS,
    AnyMethod,
    MethodEntry,
    Recipe,
    make_recipe,
    training_settings,
    trains,
)

__all__ = [
    "METHODS",
    "AnyMethod",
    "FittedMethod",
    "MethodEntry",
    "Player",
    "Pretext",
    "Recipe",
    "TrainedMethod",
    "make_recipe",
    "training_settings",
    "trains",
]
