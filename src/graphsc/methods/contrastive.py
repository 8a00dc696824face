"""A projection head: the small network between an encoder and a contrastive loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.views import VIEWS, GraphCLSubgraph, View
from graphsc.views.base import check_rate


def projection(inputs: int, outputs: int | None = None) -> nn.Sequential:
    """Linear - ReLU - Linear, Xavier-uniform weights and zero biases."""
    head = nn.Sequential(nn.Linear(inputs, inputs), nn.ReLU(), nn.Linear(inputs, outputs or inputs))
    for layer in head:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return head


def through_own_head(heads: nn.ModuleList, rows: Tensor, which: Tensor) -> Tensor:
    """Each row through the head that is named for it: B x d, and B positions in `heads`.

    Rows are sorted by head and back again, so that the price is that of one head. A head that no row names
    gets a gradient of zero.
    """
    if len(heads) == 1:
        result: Tensor = heads[0](rows)
        return result
    order = which.argsort(stable=True)
    counts = torch.bincount(which, minlength=len(heads)).tolist()
    parts = torch.split(rows[order], counts)
    done = torch.cat([head(part) for head, part in zip(heads, parts, strict=True)])
    return done[order.argsort()]


# Views that come with what was drawn to make them.


class SampledViews(dict[str, GraphBatch]):
    """Batches by name, and in `drawn` tensors with one row a graph or a node, in the order of the batches.

    No positions among them: rows of several batches can be put end to end, as the batches can.
    """

    def __init__(self, views: Mapping[str, GraphBatch], **drawn: Tensor) -> None:
        super().__init__(views)
        self.drawn = drawn


# Which operations the views of contrastive methods are made of, and as whose code has them.


Augmentations = Literal["fixed", "graphcl"]


def resolve_operations(settings: dict[str, object], collection: GraphCollection) -> dict[str, object]:
    """`auto`: node dropping and sub-graphs where nodes have labels (molecules, proteins); node dropping
    and edge perturbation where they have none (social graphs), as GraphCL's rules of thumb have it.
    """
    operations = settings["operations"]
    if isinstance(operations, (tuple, list)) and "auto" in operations:
        chosen = ["drop-nodes", "subgraph" if collection.nodes.columns else "perturb-edges"]
        return {**settings, "operations": chosen}
    return settings


def make_operations(
    names: Sequence[str], augmentations: Augmentations = "fixed", subgraph_keeps: float = 0.2
) -> list[View]:
    """The operations by name; "graphcl" takes those of GraphCL's published code where it has its own.

    There the sub-graph has a rate of its own, which is what it keeps: `subgraph_keeps`.
    """
    if "auto" in names:
        raise ConfigError("operations 'auto' is resolved from the graphs; make the method by its name")
    if not names:
        raise ConfigError("operations must name at least one view")
    if augmentations == "fixed":
        return [VIEWS.get(name)() for name in names]
    check_rate(subgraph_keeps)
    own = {name: f"graphcl-{name}" for name in names if f"graphcl-{name}" in VIEWS}
    return [
        KeepingSubgraph(subgraph_keeps) if name == "subgraph" else VIEWS.get(own.get(name, name))()
        for name in names
    ]


class KeepingSubgraph(GraphCLSubgraph):
    """GraphCL's sub-graph at a size of its own, whatever the rate of the operations beside it."""

    def __init__(self, keeps: float) -> None:
        self.keeps = keeps

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return super().counts(batch, self.keeps)
