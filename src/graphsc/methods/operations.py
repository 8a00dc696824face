"""Which operations the views of contrastive methods are made of, and as whose code has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.views import VIEWS, HistoricSubgraph, View
from graphsc.views.base import check_rate

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


class KeepingSubgraph(HistoricSubgraph):
    """GraphCL's sub-graph at a size of its own, whatever the rate of the operations beside it."""

    def __init__(self, keeps: float) -> None:
        self.keeps = keeps

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return super().counts(batch, self.keeps)
