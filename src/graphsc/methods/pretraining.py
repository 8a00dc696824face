"""Shared by the methods that pre-train on molecules: Hu et al.'s training settings, and masked nodes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.methods.registry import ON_MOLECULES
from graphsc.views.array_ops import flatnonzero
from graphsc.views.base import apply_perturbation, nodes_per_graph
from graphsc.views.operations import MaskAttributes

# All four pre-training tasks of Hu et al. (ICLR 2020) are trained with these settings.
HU_TRAINING: Mapping[str, object] = {
    "batch_norm_embedding": "running",
    "training.learning_rate": 1e-3,
    "training.batch_size": 256,
    "training.epochs": 100,
}

# The same with the readout that all codes for molecules have, and BatchNorm as for every other method here.
HU_MOLECULES: Mapping[str, object] = {**ON_MOLECULES, "training.epochs": 100}

# The mask token of the features where they have one, else a row of zeros.
_MASK = MaskAttributes(mean=0.0, std=0.0)


def mask_nodes(batch: GraphBatch, rate: float, generator: torch.Generator) -> GraphBatch:
    """Mask int(rate n + 1) uniformly drawn nodes of each graph, at most all n."""
    sizes = nodes_per_graph(batch)
    counts = torch.minimum((sizes.double() * rate + 1).long(), sizes)
    return apply_perturbation(batch, _MASK.order(batch, counts, generator)(counts))


def masked_nodes(batch: GraphBatch) -> Tensor:
    """Ascending indices (int64) of the nodes that `mask_nodes` has masked."""
    token = batch.features.hidden
    if token is not None:
        return flatnonzero(batch.codes[:, 0] == token)
    if batch.replaced is None:
        return torch.zeros(0, dtype=torch.int64, device=batch.device)
    return batch.replaced


def check_mask_rate(rate: float) -> None:
    """Refuse a rate outside [0, 1)."""
    if not 0 <= rate < 1:
        raise ConfigError(f"rate is the share of each graph's nodes to mask, from 0 to below 1, not {rate}")
