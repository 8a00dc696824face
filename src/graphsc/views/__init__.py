"""Random changes of graphs, each at any strength: one file a view, a whole batch at once."""

from graphsc.views.base import VIEWS, Operation, View
from graphsc.views.choice import Choice
from graphsc.views.compose import Compose
from graphsc.views.drop_nodes import DropNodes
from graphsc.views.historic import (
    HistoricDropNodes,
    HistoricMaskAttributes,
    HistoricPerturbEdges,
    HistoricSubgraph,
)
from graphsc.views.identity import Identity
from graphsc.views.mask_attributes import MaskAttributes
from graphsc.views.perturb_edges import PerturbEdges
from graphsc.views.strengths import Coupling, check_strengths, weak_and_strong
from graphsc.views.subgraph import Subgraph

__all__ = [
    "VIEWS",
    "Choice",
    "Compose",
    "Coupling",
    "DropNodes",
    "HistoricDropNodes",
    "HistoricMaskAttributes",
    "HistoricPerturbEdges",
    "HistoricSubgraph",
    "Identity",
    "MaskAttributes",
    "Operation",
    "PerturbEdges",
    "Subgraph",
    "View",
    "check_strengths",
    "weak_and_strong",
]
