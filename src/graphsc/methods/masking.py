"""Nodes hidden from the encoder, as the systems that pre-train on molecules hide them."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import flatnonzero
from graphsc.views.base import apply_perturbation, nodes_per_graph
from graphsc.views.operations import MaskAttributes

# The features' own token where they have one. Else a row of zeros: one-hot codes of which none is set.
_HIDE = MaskAttributes(mean=0.0, std=0.0)


def hide_nodes(batch: GraphBatch, rate: float, generator: torch.Generator) -> GraphBatch:
    """The batch with int(rate n + 1) uniformly drawn nodes of each graph hidden, at most all n."""
    sizes = nodes_per_graph(batch)
    counts = torch.minimum((sizes.double() * rate + 1).long(), sizes)
    return apply_perturbation(batch, _HIDE.order(batch, counts, generator)(counts))


def hidden_nodes(batch: GraphBatch) -> Tensor:
    """Where the nodes are that `hide_nodes` has hidden, int64, rising."""
    token = batch.features.hidden
    if token is not None:
        return flatnonzero(batch.codes[:, 0] == token)
    if batch.replaced is None:
        return torch.zeros(0, dtype=torch.int64, device=batch.device)
    return batch.replaced


def check_hidden_rate(rate: float) -> None:
    """Refuse a share of hidden nodes that is no share."""
    if not 0 <= rate < 1:
        raise ConfigError(f"rate is the share of each graph's nodes to hide, from 0 to below 1, not {rate}")
