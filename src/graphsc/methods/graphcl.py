"""GraphCL: two perturbed versions of a graph know each other among the other graphs of the batch.

Two views of each graph by random operations, one encoder, one head, NT-Xent. The defaults are the paper's
description with operations that do what their names say; `published` is what the repository runs: the graph
itself against one view, smaller rates, and its own augmentations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.losses import nt_xent, retrieval_accuracy
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import Augmentations, make_operations, projection, resolve_operations
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views import Choice, View
from graphsc.views.base import check_rate

# What the repository's script for TU data runs. Its sub-graph keeps a fifth and never leaves the first ring.
PUBLISHED: Mapping[str, object] = {
    "two_views": False,
    "rate": 0.1,
    "augmentations": "graphcl",
    "subgraph_keeps": 0.2,
    "bn": "running",
    "encoder.depth": 3,
    "encoder.width": 32,
    "training.learning_rate": 0.01,
    "training.epochs": 20,
    "training.batch_size": 128,
}

# The repository's script for molecules, with sub-graphs that go beyond the first ring.
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
        operations: tuple[str, ...] = ("auto",),  # drawn per graph and view; auto: by the kind of graphs
        rate: float = 0.2,
        two_views: bool = True,  # False: the graph itself against one view of it
        augmentations: Augmentations = "fixed",  # "graphcl": as its published code has them
        subgraph_keeps: float = 0.2,  # the share of nodes that the published sub-graph keeps at most
        temperature: float = 0.2,
        negatives: int | None = None,  # K other graphs drawn for each; None: all in the batch
        positive_in_denominator: bool = False,
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_rate(rate)
        check_contrast(temperature, negatives)
        made = make_operations(operations, augmentations, subgraph_keeps)
        self.encoder = encoder
        self.view: View = made[0] if len(made) == 1 else Choice(made)
        self.rate = rate
        self.two_views = two_views
        self.contrast = partial(
            nt_xent,
            temperature=temperature,
            negatives=negatives,
            positive_in_denominator=positive_in_denominator,
        )
        self.bn = bn
        self.head = projection(int(encoder.dimensions))  # type: ignore[arg-type]

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Two views of each graph, drawn independently, or the graph and one view."""
        anchor = self.view(batch, self.rate, generator) if self.two_views else batch
        return {"anchor": anchor, "positive": self.view(batch, self.rate, generator)}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent of the projected vectors; the negatives of each row are drawn anew."""
        anchor, positive = self.head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        return {"contrast": self.contrast(anchor, positive)}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a view finds the other view of its graph among those of its batch."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))


def check_contrast(temperature: float, negatives: int | None = None) -> None:
    """Refuse settings of NT-Xent that mean nothing, before the first step."""
    if temperature <= 0:
        raise ConfigError(f"temperature must be above zero, not {temperature}")
    if negatives is not None and negatives < 1:
        raise ConfigError(f"negatives must be at least 1, not {negatives}; leave it out to take all")


def retrieval(anchor: Tensor, other: Tensor) -> Pretext:
    """The task of NT-Xent on projected rows (B x d): is the own row the nearest of all B?"""
    return Pretext("own view nearest in the batch", retrieval_accuracy(anchor, other), 1 / len(anchor))


METHODS.register("graphcl")(
    MethodEntry(
        GraphCL,
        "Graph Contrastive Learning with Augmentations",
        2020,
        "two perturbed versions of a graph against all others in the batch",
        presets={"published": PUBLISHED, "molecules": MOLECULES},
        resolve=resolve_operations,
    )
)
