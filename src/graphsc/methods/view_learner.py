"""AD-GCL's view learner: a network that says of every edge how likely it is to stay."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.encoders.edge_mlp import edge_mlp
from graphsc.encoders.gin import linear
from graphsc.views.edge_pairs import edge_pairs
from graphsc.views.memo import once_per_batch


@dataclass(frozen=True, eq=False)
class Edges:
    """What has one fate: P edges, in order of their graphs."""

    source: Tensor  # P, int32
    destination: Tensor  # P, int32
    graph: Tensor  # P, int64
    counts: Tensor  # G, int64: edges of each graph
    of_entry: Tensor | None  # E, int64: the edge of each entry of the batch; None if they are the same


@once_per_batch
def undirected_edges(batch: GraphBatch) -> Edges:
    """Both directions as one edge, where the batch has no directions; else each by itself."""
    if not batch.undirected:
        return directed_edges(batch)
    pairs = edge_pairs(batch)
    number = torch.arange(len(pairs.source), device=batch.device)
    of_entry = torch.empty(batch.num_edges, dtype=torch.int64, device=batch.device)
    of_entry[pairs.all_entries(number)] = number.repeat(2)
    graph = batch.batch.index_select(0, pairs.destination)
    return Edges(pairs.source, pairs.destination, graph, pairs.ptr.diff(), of_entry)


@once_per_batch
def directed_edges(batch: GraphBatch) -> Edges:
    """Every entry by itself."""
    return Edges(batch.source, batch.destination, batch.edge_batch, batch.edge_ptr.diff(), None)


class ViewLearner(nn.Module):
    """An encoder of its own, an MLP on the two ends of an edge, and a relaxed coin for each edge.

    The weight of an edge is sigmoid((logit + noise) / temperature), the noise that of a logistic variable;
    the colder, the nearer to zero or one.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        hidden: int,
        temperature: float,
        both_directions: bool,
        bias: float = 1e-4,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.first = linear(2 * width, hidden)
        self.second = linear(hidden, 1)
        self.temperature = temperature
        self.both_directions = both_directions
        self.bias = bias  # keeps the noise finite

    def edges(self, batch: GraphBatch) -> Edges:
        """What gets a weight; depends on the batch alone."""
        return undirected_edges(batch) if self.both_directions else directed_edges(batch)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The weight of each entry (E), and the share of each graph's edges that is dropped (G)."""
        edges = self.edges(batch)
        logits = self.logits(batch)
        uniform = torch.rand(len(logits), device=logits.device) * (1 - 2 * self.bias) + self.bias
        weight = torch.sigmoid((logits + torch.logit(uniform)) / self.temperature)
        total = weight.new_zeros(batch.num_graphs).index_add(0, edges.graph, 1 - weight)
        dropped = total / edges.counts.clamp(min=1)
        return weight if edges.of_entry is None else weight.index_select(0, edges.of_entry), dropped

    def logits(self, batch: GraphBatch) -> Tensor:
        """P: the larger, the likelier an edge stays. An edge without direction has the mean of both ways."""
        edges = self.edges(batch)
        nodes: Tensor = self.encoder.nodes(batch)  # type: ignore[operator]
        # The first layer on [h_u, h_v] is a sum of one on h_u and one on h_v: once a node, not once an edge.
        start, end = (nodes @ part.mT for part in self.first.weight.chunk(2, 1))
        start = start + self.first.bias
        weight = self.second.weight[0]
        found = edge_mlp(start, end, weight, edges.source, edges.destination)
        if edges.of_entry is not None:
            found = (found + edge_mlp(start, end, weight, edges.destination, edges.source)) / 2
        return found + self.second.bias
