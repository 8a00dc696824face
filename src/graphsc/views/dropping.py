"""Views with the same nodes: edges and feature columns dropped with given probabilities, one by one.

Node-level methods compare a node with its copy in another view, so that all nodes must stay.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import flatnonzero, take
from graphsc.views.base import NewFeatures, Perturbation, apply_perturbation
from graphsc.views.operations import edge_pairs


def drop_edges_and_features(
    batch: GraphBatch, edges: float | Tensor, features: float | Tensor, generator: torch.Generator
) -> GraphBatch:
    """Drop every edge, and every feature column of every graph, with its own probability.

    An undirected edge is dropped in both directions. A dropped column is zero for all nodes of its graph; a
    category is a column, as in one-hot rows. A graph whose nodes would lose all their features keeps them.

    Args:
        batch: N nodes in G graphs, with features that no other view has replaced.
        edges: A probability for all, or one for each of the `edge_pairs` (P).
        features: A probability for all, or one for each graph and column (G x width).
        generator: Source of all randomness.
    """
    pairs = edge_pairs(batch)
    dropped = flatnonzero(_draw(edges, pairs.source.shape, generator))
    return apply_perturbation(
        batch,
        Perturbation(
            edges=pairs.mask_without(dropped, batch.num_edges),
            dense=_without_columns(
                batch, _draw(features, (batch.num_graphs, batch.features.width), generator)
            ),
        ),
    )


def check_drop_rate(rate: float) -> None:
    """Raise `ConfigError` unless the probability lies in [0, 1)."""
    if not 0 <= rate < 1:
        raise ConfigError(f"the share that is dropped must lie between 0 and below 1, not {rate}")


def node_columns(batch: GraphBatch) -> Tensor:
    """N x K: the column of `dense_x()` in which each categorical feature of a node is one."""
    starts = torch.tensor((0, *batch.features.cardinalities[:-1]), device=batch.device).cumsum(0)
    return batch.codes + starts[: batch.codes.shape[1]]


def _draw(
    probability: float | Tensor, shape: torch.Size | tuple[int, ...], generator: torch.Generator
) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) < probability


def _without_columns(batch: GraphBatch, dropped: Tensor) -> NewFeatures | None:
    """New rows for the nodes that have a feature in a dropped column (G x width)."""
    columns = node_columns(batch)
    lost = take(dropped, batch.batch).gather(1, columns)
    floats = len(batch.features.float_names)
    if floats:
        lost = torch.cat([lost, take(dropped[:, -floats:], batch.batch)], 1)
    keeps = torch.zeros(batch.num_graphs, dtype=torch.bool, device=batch.device)
    keeps[batch.batch[~lost.all(1)]] = True
    lost &= take(keeps, batch.batch)[:, None]
    nodes = flatnonzero(lost.any(1))
    if not len(nodes):
        return None
    rows = torch.zeros(len(nodes), batch.features.width, device=batch.device)
    kept = (~lost[nodes]).to(rows.dtype)
    rows.scatter_(1, columns[nodes], kept[:, : columns.shape[1]])
    if floats:
        rows[:, -floats:] = batch.floats[nodes] * kept[:, -floats:]
    return NewFeatures(nodes, rows)
