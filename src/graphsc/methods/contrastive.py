"""Shared by the contrastive methods: projection head, view operations, and the retrieval pretext task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.encoders.base import nodes_and_graphs
from graphsc.losses import retrieval_accuracy
from graphsc.methods.base import Pretext
from graphsc.views import (
    VIEWS,
    Choice,
    GraphCLPerturbEdges,
    GraphCLSubgraph,
    MaskAttributes,
    PerturbEdges,
    View,
)
from graphsc.views.array_ops import flatnonzero
from graphsc.views.base import check_rate

# "fixed": operations that do what their names say; "graphcl": those of GraphCL's published code.
Augmentations = Literal["fixed", "graphcl"]
# GraphCL's training loop removes self-loops from all views but these.
KEEP_SELF_LOOPS = (PerturbEdges, GraphCLPerturbEdges, MaskAttributes)


def projection(
    inputs: int, outputs: int | None = None, *, activation: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """A projection head: Linear - ReLU - Linear, Xavier-uniform weights and zero biases."""
    head = nn.Sequential(nn.Linear(inputs, inputs), activation(), nn.Linear(inputs, outputs or inputs))
    for layer in head:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return head


class SampledViews(dict[str, GraphBatch]):
    """Views together with the random choices that made them.

    `sampled` holds tensors by name, with one row per graph or node in the order of the batches. They contain
    no indices into a batch, so the rows of several batches can be concatenated as the batches can.
    """

    def __init__(self, views: Mapping[str, GraphBatch], **sampled: Tensor) -> None:
        super().__init__(views)
        self.sampled = sampled


def encode_chosen_nodes(encoder: nn.Module, views: Mapping[str, GraphBatch]) -> dict[str, Tensor]:
    """Encode two views with the same nodes, of which "chosen" marks those to keep.

    Returns:
        "anchor" and "positive" (B x D), the graphs; "nodes" and "copies" (n x D), the chosen nodes of the two
        views in the order of their graphs; "size" (B), how many each graph has.
    """
    assert isinstance(views, SampledViews)  # noqa: S101 - as these methods make them
    batch, chosen = views["anchor"], flatnonzero(views.sampled["chosen"])
    nodes, graphs = nodes_and_graphs(encoder, batch, rows=chosen)
    copies, perturbed = nodes_and_graphs(encoder, views["positive"], rows=chosen)
    size = torch.bincount(batch.batch[chosen], minlength=batch.num_graphs)
    return {"anchor": graphs, "positive": perturbed, "nodes": nodes, "copies": copies, "size": size}


def resolve_operations(settings: dict[str, object], collection: GraphCollection) -> dict[str, object]:
    """Resolve `operations: auto` by GraphCL's rules of thumb.

    Node dropping and subgraphs where nodes have labels (molecules, proteins), node dropping and edge
    perturbation where they have none (social graphs).
    """
    operations = settings["operations"]
    if isinstance(operations, (tuple, list)) and "auto" in operations:
        chosen = ["drop-nodes", "subgraph" if collection.nodes.columns else "perturb-edges"]
        return {**settings, "operations": chosen}
    return settings


def make_operations(
    names: Sequence[str],
    augmentations: Augmentations = "fixed",
    subgraph_keeps: float = 0.2,
    *,
    keep_rates: bool = False,
) -> list[View]:
    """Make view operations by name.

    Args:
        names: registered views.
        augmentations: "graphcl" takes the operations of GraphCL's published code where it has its own.
        subgraph_keeps: the share of nodes that GraphCL's published subgraph keeps at most; it has a rate of
            its own.
        keep_rates: operations whose rate is the share kept take the share that is left out, as others do.
    """
    if "auto" in names:
        raise ConfigError(
            "operations 'auto' depends on the graphs",
            hint="name them, such as operations=['drop-nodes', 'subgraph'], or give the method by its name",
        )
    if not names:
        raise ConfigError("operations must name at least one view")
    if augmentations == "fixed":
        kept = {"graphcl-subgraph": _LeavingOutSubgraph} if keep_rates else {}
        return [kept.get(name, VIEWS.get(name))() for name in names]
    check_rate(subgraph_keeps)
    own = {name: f"graphcl-{name}" for name in names if f"graphcl-{name}" in VIEWS}
    return [
        _FixedRateSubgraph(subgraph_keeps) if name == "subgraph" else VIEWS.get(own.get(name, name))()
        for name in names
    ]


def choice_of(operations: Sequence[View]) -> View:
    """The only operation, or a random choice per graph among several."""
    return operations[0] if len(operations) == 1 else Choice(operations)


def check_contrast(temperature: float, negatives: int | None = None) -> None:
    """Check the settings of NT-Xent before the first step."""
    if temperature <= 0:
        raise ConfigError(f"temperature must be above zero, not {temperature}")
    if negatives is not None and negatives < 1:
        raise ConfigError(f"negatives must be at least 1, not {negatives}; leave it out to take all")


def retrieval(anchor: Tensor, other: Tensor) -> Pretext:
    """The task of NT-Xent on projected rows (B x d): how often is the own row the nearest of all B?"""
    return Pretext("own view nearest in the batch", retrieval_accuracy(anchor, other), 1 / len(anchor))


class _LeavingOutSubgraph(GraphCLSubgraph):
    """GraphCL's subgraph by the share of nodes that it leaves out at least."""

    grows_with_rate = True

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return super().counts(batch, round(1 - rate, 12))  # 1 - 0.8 is less than 0.2


class _FixedRateSubgraph(GraphCLSubgraph):
    """GraphCL's subgraph at its own size, whatever the rate of the operations beside it."""

    def __init__(self, keeps: float) -> None:
        self.keeps = keeps

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return super().counts(batch, self.keeps)
