"""Shared by pretext tasks on nodes: Hu et al.'s training settings, masked nodes, edges and absent pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.losses import roc_auc
from graphsc.methods.base import Encoded, Pretext, Views
from graphsc.methods.registry import ON_MOLECULES
from graphsc.views.array_ops import flatnonzero, pointer
from graphsc.views.base import apply_perturbation, nodes_per_graph
from graphsc.views.operations import MaskAttributes, absent_pairs, edge_pairs

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


def with_absent_pairs(batch: GraphBatch, per_edge: float, generator: torch.Generator) -> Views:
    """The graphs as "anchor", and their nodes joined by absent pairs, drawn without repetition, as "absent".

    Args:
        batch: The graphs.
        per_edge: Absent pairs per edge of a graph, as far as it has so many.
        generator: Source of all randomness.
    """
    pairs, absent = edge_pairs(batch), absent_pairs(batch)
    wanted = (pairs.ptr.diff() * per_edge).ceil().long()
    source, destination = absent.draw(torch.minimum(wanted, absent.counts), generator)
    # The pairs are already in the order in which a batch stores its edges.
    rowptr = pointer(torch.bincount(destination, minlength=batch.num_nodes)).int()
    joined = replace(
        batch, source=source, rowptr=rowptr, undirected=False, sorted_sources=True, edge_codes=None,
        edge_floats=None, edge_weight=None,
    )  # fmt: skip
    return {"anchor": batch, "absent": joined}


def pair_products(nodes: Tensor, views: Views) -> Encoded:
    """Inner products of nodes (N x d) over the pairs of `with_absent_pairs`: "edges" (P) and "absent" (Q).

    Edges have no self-loops. In full precision, because a product sums hundreds of terms.
    """
    if nodes.dtype is not torch.float64:
        nodes = nodes.float()
    pairs, absent = edge_pairs(views["anchor"]), views["absent"]
    no_loop = pairs.source != pairs.destination
    ends = {
        "edges": (pairs.source[no_loop], pairs.destination[no_loop]),
        "absent": (absent.source, absent.destination),
    }
    return {
        name: (nodes.index_select(0, source) * nodes.index_select(0, destination)).sum(1)
        for name, (source, destination) in ends.items()
    }


def edge_retrieval(encoded: Encoded) -> Pretext:
    """The task of `pair_products`: how often does an edge score above an absent pair?"""
    score = roc_auc(encoded["edges"], encoded["absent"])
    return Pretext("AUC of edges against pairs without one", score, 0.5)
