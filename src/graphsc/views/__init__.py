"""Graph augmentations: random perturbations of a whole batch at an exact rate."""

from graphsc.views.base import VIEWS, Operation, View
from graphsc.views.composition import Choice, Compose, Coupling, check_strengths, weak_and_strong
from graphsc.views.graphcl_compat import (
    GraphCLDropNodes,
    GraphCLMaskAttributes,
    GraphCLPerturbEdges,
    GraphCLSubgraph,
)
from graphsc.views.operations import DropNodes, Identity, MaskAttributes, PerturbEdges
from graphsc.views.subgraph import Subgraph

__all__ = [
    "VIEWS",
    "Choice",
    "Compose",
    "Coupling",
    "DropNodes",
    "GraphCLDropNodes",
    "GraphCLMaskAttributes",
    "GraphCLPerturbEdges",
    "GraphCLSubgraph",
    "Identity",
    "MaskAttributes",
    "Operation",
    "PerturbEdges",
    "Subgraph",
    "View",
    "check_strengths",
    "weak_and_strong",
]
