"""GCA: graph contrastive learning with adaptive augmentation (Zhu et al., WWW 2021).

GRACE whose views lose unimportant edges and features more often. With a centrality phi of nodes:

    w_uv = (phi(u) + phi(v)) / 2 for an edge,  w_c = sum over the nodes with feature c of phi for a column
    s = log(1 + w),  p = min((max s - s) / (max s - mean s) * rate, 0.7)

Maximum and mean are those of a graph: on average it loses the given share, its most central edge never.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.methods.base import BatchNormEmbedding
from graphsc.methods.grace import GRACE, NodeNegatives
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import take
from graphsc.views.base import cache_per_batch
from graphsc.views.centrality import Centrality, centrality
from graphsc.views.dropping import drop_edges_and_features, node_columns
from graphsc.views.operations import edge_pairs

# The defaults of the authors' script, for networks of one graph each.
PUBLISHED: Mapping[str, object] = {
    "max_nodes": None,
    "projection_width": 256,
    "encoder.depth": 2,
    "encoder.width": 256,
    "encoder.layers": "last",
    "training.learning_rate": 0.01,
    "training.weight_decay": 1e-5,
    "training.epochs": 3000,
}


class GCA(GRACE):
    """GRACE with edges and features dropped by centrality."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        centrality: Centrality = "degree",
        cut: float = 0.7,  # no edge and no feature is dropped with a higher probability
        edge_rates: tuple[float, float] = (0.3, 0.4),  # share of edges that the two views lose, on average
        feature_rates: tuple[float, float] = (0.1, 0.0),  # the same of feature columns
        temperature: float = 0.4,
        negatives: NodeNegatives = "batch",  # "graph": nodes of the same graph only
        max_nodes: int | None = 384,  # of a batch that are contrasted, drawn per step; None: all
        projection_width: int = 32,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(
            encoder, edge_rates=edge_rates, feature_rates=feature_rates, temperature=temperature,
            negatives=negatives, max_nodes=max_nodes, projection_width=projection_width,
            batch_norm_embedding=batch_norm_embedding,
        )  # fmt: skip
        if not 0 < cut <= 1:
            raise ConfigError(f"cut is the largest probability of a drop, above 0 up to 1, not {cut}")
        self.centrality: Centrality = centrality
        self.cut = cut
        self._weights = cache_per_batch(self._drop_weights)

    def _view(
        self, batch: GraphBatch, edge_rate: float, feature_rate: float, generator: torch.Generator
    ) -> GraphBatch:
        edges, features = self._weights(batch)
        return drop_edges_and_features(
            batch,
            (edges * edge_rate).clamp(max=self.cut),
            (features * feature_rate).clamp(max=self.cut),
            generator,
        )

    def _drop_weights(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """How likely each edge (P) and each column of each graph (G x width) is to be dropped, mean one."""
        values = centrality(batch, self.centrality)
        pairs = edge_pairs(batch)
        of_edge = take(values, pairs.destination)
        if batch.undirected:
            of_edge = (of_edge + take(values, pairs.source)) / 2
        columns = column_centrality(batch, values)
        graph, column = (columns > 0).nonzero(as_tuple=True)
        features = torch.zeros_like(columns)
        features[graph, column] = drop_weights(columns[graph, column], graph, batch.num_graphs)
        return drop_weights(of_edge, take(batch.batch, pairs.destination), batch.num_graphs), features


def drop_weights(importance: Tensor, graph: Tensor, graphs: int) -> Tensor:
    """(max s - s) / (max s - mean s) with s = log(1 + importance), within each graph.

    Args:
        importance: M, of edges or columns.
        graph: M, the graph of each.
        graphs: G.

    Returns:
        M, from 0 for the most important, with a mean of one in each graph; one where all are equal.
    """
    scores = importance.double().log1p()
    largest = scores.new_zeros(graphs).scatter_reduce_(0, graph, scores, "amax")
    below = take(largest, graph) - scores
    counts = torch.bincount(graph, minlength=graphs).clamp(min=1)
    mean = below.new_zeros(graphs).index_add_(0, graph, below) / counts
    spread = take(mean, graph)
    # Equal up to rounding, as in a ring.
    return torch.where(spread > 1e-6, below / spread, 1.0).float()


def column_centrality(batch: GraphBatch, values: Tensor) -> Tensor:
    """G x width: the sum over the nodes of a graph of their features' sizes times their centralities."""
    width, columns = batch.features.width, node_columns(batch)
    places = (batch.batch[:, None] * width + columns).flatten()
    sums = values.new_zeros(batch.num_graphs * width)
    sums.index_add_(0, places, values.repeat_interleave(columns.shape[1]))
    result = sums.view(batch.num_graphs, width)
    if batch.floats.shape[1]:
        weighted = batch.floats.abs() * values[:, None]
        result[:, -weighted.shape[1] :].index_add_(0, batch.batch, weighted)
    return result


METHODS.register("gca")(
    MethodEntry(
        GCA,
        "Graph Contrastive Learning with Adaptive Augmentation",
        2021,
        "GRACE with unimportant edges and features dropped more often",
        contrast="two views of a node",
        negatives="other nodes of both views",
        augmentation="edges and features dropped by centrality",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
