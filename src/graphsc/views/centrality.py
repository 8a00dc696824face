"""How central a node is in its graph, for all graphs of a batch at once."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import take

Centrality = Literal["degree", "pagerank", "eigenvector"]

EIGENVECTOR_STEPS = 100  # of the power iteration


def centrality(batch: GraphBatch, kind: Centrality) -> Tensor:
    """N: the number of edges that end at a node, its PageRank or its eigenvector centrality.

    The last two have a mean of one in each graph, so that they do not depend on its size.
    """
    if kind == "degree":
        return batch.in_degree.float()
    values = pagerank(batch) if kind == "pagerank" else eigenvector_centrality(batch)
    return values * take(batch.ptr.diff(), batch.batch)


def pagerank(
    batch: GraphBatch, restart: Tensor | None = None, *, damping: float = 0.85, steps: int = 50
) -> Tensor:
    """PageRank, personalised by the restart probabilities of the nodes; power iteration.

    A walk follows an edge from source to destination with probability `damping`, and restarts otherwise or
    where it finds no edge.

    Args:
        batch: N nodes.
        restart: N, with a sum of one in each graph, or N x C for C walks at once; None for uniform.
        damping: Probability that a walk continues.
        steps: Of the iteration, which starts with `restart`; the error is at most `damping` to this power.

    Returns:
        Of the shape of `restart`, with a sum of one in each graph.
    """
    if restart is None:
        restart = take(batch.ptr.diff().clamp(min=1).float().reciprocal(), batch.batch)
    start = restart if restart.dim() == 2 else restart[:, None]
    out = batch.in_degree if batch.undirected else torch.bincount(batch.source, minlength=batch.num_nodes)
    share = torch.where(out > 0, damping / out.clamp(min=1), 0.0).to(start.dtype)[:, None]
    ends = bool((out == 0).any())  # somewhere a walk finds no edge
    ranks = start
    for _ in range(steps):
        moved = _sum_over_sources(batch, ranks * share)
        restarting = take(1 - _sum_over_graphs(batch, moved), batch.batch) if ends else 1 - damping
        ranks = moved + start * restarting
    return ranks.view_as(restart)


def eigenvector_centrality(batch: GraphBatch) -> Tensor:
    """The leading eigenvector of each graph's adjacency matrix, with a sum of one in each graph.

    Power iteration on the matrix plus the identity, which has the same eigenvectors and, other than the
    matrix of a bipartite graph, one largest eigenvalue. In a graph of several components that of the largest
    eigenvalue takes all; a graph without edges is uniform.
    """
    values = take(batch.ptr.diff().clamp(min=1).float().reciprocal(), batch.batch)[:, None]
    for _ in range(EIGENVECTOR_STEPS):
        values = values + _sum_over_sources(batch, values)
        values = values / take(_sum_over_graphs(batch, values), batch.batch)
    return values[:, 0]


def _sum_over_sources(batch: GraphBatch, rows: Tensor) -> Tensor:
    """N x C: the sum of the rows of the nodes from which an edge comes."""
    if not batch.num_edges:
        return torch.zeros_like(rows)
    return embedding_bag(batch.source, rows, batch.rowptr, mode="sum", include_last_offset=True)


def _sum_over_graphs(batch: GraphBatch, rows: Tensor) -> Tensor:
    return rows.new_zeros(batch.num_graphs, rows.shape[1]).index_add_(0, batch.batch, rows)
