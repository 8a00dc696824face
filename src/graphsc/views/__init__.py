"""Graph augmentations: random perturbations of a whole batch at an exact rate."""

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily
from graphsc.views.base import VIEWS, AddedEdges, NewFeatures, Operation, Perturbation, View
from graphsc.views.composition import Choice, Compose, Coupling, check_strengths, weak_and_strong
from graphsc.views.diffusion import Diffusion
from graphsc.views.graphcl_compat import (
    GraphCLDropNodes,
    GraphCLMaskAttributes,
    GraphCLPerturbEdges,
    GraphCLSubgraph,
)
from graphsc.views.operations import (
    DropNodes,
    EdgePairs,
    Identity,
    MaskAttributes,
    PerturbEdges,
    edge_pairs,
)
from graphsc.views.sampling import smallest_per_segment
from graphsc.views.subgraph import Subgraph

if TYPE_CHECKING:  # PyG is slow to import
    from graphsc.views.pyg import ViewCollator as ViewCollator
    from graphsc.views.pyg import ViewTransform as ViewTransform

__all__ = [
    "VIEWS",
    "AddedEdges",
    "Choice",
    "Compose",
    "Coupling",
    "Diffusion",
    "DropNodes",
    "EdgePairs",
    "GraphCLDropNodes",
    "GraphCLMaskAttributes",
    "GraphCLPerturbEdges",
    "GraphCLSubgraph",
    "Identity",
    "MaskAttributes",
    "NewFeatures",
    "Operation",
    "PerturbEdges",
    "Perturbation",
    "Subgraph",
    "View",
    "check_strengths",
    "edge_pairs",
    "smallest_per_segment",
    "weak_and_strong",
    *export_lazily(__name__, {"pyg": "ViewCollator ViewTransform"}),
]
