"""GraphCL: graph contrastive learning with augmentations (You et al., NeurIPS 2020).

Two views of each graph by random operations go through one encoder and one projection head. NT-Xent pulls the
two views of a graph together and pushes all other graphs of the batch away:

    L = -1/B sum_i log(S_ii / sum_{j != i} S_ij),  S_ij = exp(cos(z'_i, z''_j) / tau)

The defaults follow the paper's text, with operations that do what their names say. The preset `published` is
what the repository runs: the graph itself against one view, smaller rates, and its own augmentations and
self-loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.losses import graphcl_nt_xent
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import (
    KEEP_SELF_LOOPS,
    Augmentations,
    check_contrast,
    choice_of,
    make_operations,
    projection,
    resolve_operations,
    retrieval,
)
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views.base import check_rate
from graphsc.views.graphcl_compat import add_self_loops

# The repository's script for TU data. Its subgraph keeps a fifth and never leaves the first neighbourhood.
PUBLISHED: Mapping[str, object] = {
    "two_views": False,
    "rate": 0.1,
    "augmentations": "graphcl",
    "subgraph_keeps": 0.2,
    "self_loops": True,
    "batch_norm_embedding": "running",
    "encoder.depth": 3,
    "encoder.width": 32,
    "training.learning_rate": 0.01,
    "training.epochs": 20,
    "training.batch_size": 128,
}

# The repository's script for molecules, with subgraphs that do leave the first neighbourhood.
MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "operations": ["drop-nodes", "subgraph"],
    "rate": 0.2,
    "two_views": True,
    "temperature": 0.1,
    "training.epochs": 80,
}


class GraphCL(TrainedMethod):
    """Graph contrastive learning with augmentations."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        operations: tuple[str, ...] = ("auto",),  # one is drawn per graph and view
        rate: float = 0.2,
        two_views: bool = True,  # False: the graph itself against one view of it
        augmentations: Augmentations = "fixed",
        subgraph_keeps: float = 0.2,  # the share of nodes that the published subgraph keeps at most
        # As GraphCL's loader: a self-loop at each node but the last, which most views have not.
        self_loops: bool = False,
        temperature: float = 0.2,
        negatives: int | None = None,  # K other graphs drawn for each; None: all of the batch
        positive_in_denominator: bool = False,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_rate(rate)
        check_contrast(temperature, negatives)
        self.view = choice_of(make_operations(operations, augmentations, subgraph_keeps))
        self.rate = rate
        self.two_views = two_views
        self.self_loops = self_loops
        self.contrast = partial(
            graphcl_nt_xent,
            temperature=temperature,
            negatives=negatives,
            positive_in_denominator=positive_in_denominator,
        )
        self.head = projection(self.graph_width)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Two views of each graph, drawn independently, or the graph and one view."""
        whole = self._with_loops(batch)
        perturbed = whole if isinstance(self.view, KEEP_SELF_LOOPS) else batch
        anchor = self.view(perturbed, self.rate, generator) if self.two_views else whole
        return {"anchor": anchor, "positive": self.view(perturbed, self.rate, generator)}

    def embed(self, batch: GraphBatch) -> Tensor:
        """One embedding per graph: B x `dimensions`."""
        return super().embed(self._with_loops(batch))

    def _with_loops(self, batch: GraphBatch) -> GraphBatch:
        return add_self_loops(batch) if self.self_loops else batch

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent of the projected vectors; with `negatives`, each row draws new ones."""
        anchor, positive = self.head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        return {"contrast": self.contrast(anchor, positive)}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a view is nearest to the other view of its graph."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))


METHODS.register("graphcl")(
    MethodEntry(
        GraphCL,
        "Graph Contrastive Learning with Augmentations",
        2020,
        "two perturbed views of a graph against all other graphs of the batch",
        contrast="two views of a graph",
        negatives="other graphs of the batch",
        augmentation="random perturbations",
        passes=2,
        presets={"published": PUBLISHED, "molecules": MOLECULES},
        resolve=resolve_operations,
    )
)
