"""Compute nodes that a GNN layer cannot distinguish only once.

Nodes with equal features have equal embeddings, and so have, layer by layer, nodes whose neighbourhood sums
have equal terms: the colour classes of the Weisfeiler-Leman test. A layer needs one row per class. Of the
14,000 nodes in the three views of 256 drug-like molecules, the first layer distinguishes a few hundred, the
third two thirds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.encoders.ops import Adjacency, embedding_sum


@dataclass(frozen=True, eq=False)
class LayerRows:
    """The R rows that one layer computes for N nodes; rows of a part are consecutive.

    `of_node` and `counts` are None if every node has its own row.
    """

    adjacency: Adjacency  # R x rows of the previous layer: a node's neighbours, then the node itself
    weight: Tensor | None  # weights of the adjacency's entries
    edges: Tensor  # R x K: sums over a node's edges that are added to those over its neighbours
    of_node: Tensor | None  # N, int64: the row of each node
    counts: Tensor | None  # R, int64: number of nodes per row
    parts: list[int]  # number of rows per part


@dataclass(frozen=True, eq=False)
class NodeClasses:
    """A partition of N nodes into R classes, numbered by their first node."""

    first: Tensor  # R, int64, sorted: the first node of each class
    of_node: Tensor  # N, int64: the class of each node

    @classmethod
    def from_keys(cls, key: Tensor) -> NodeClasses:
        """Group nodes with equal keys (N, int64)."""
        ordered, order = torch.sort(key, stable=True)
        is_first = torch.ones_like(key, dtype=torch.bool)
        torch.ne(ordered[1:], ordered[:-1], out=is_first[1:])
        first, by_node = order[is_first].sort()
        place = torch.empty_like(by_node)
        place[by_node] = torch.arange(len(by_node), device=key.device)
        of_node = torch.empty_like(order)
        of_node[order] = place[is_first.cumsum(0) - 1]
        return cls(first, of_node)


def deduplicate_layers(
    batch: GraphBatch, edges: Tensor, depth: int, parts: Sequence[int], *, shared_layers: int
) -> tuple[NodeClasses | None, list[LayerRows]]:
    """Find the distinct rows of each layer.

    Args:
        batch: N nodes.
        edges: N x K, sums over each node's edges that a layer adds to the sum over its neighbours; integers
            if layers are shared.
        depth: Number of layers.
        parts: Numbers of consecutive nodes. Nodes of different parts never share a row, so that each part can
            be normalised separately.
        shared_layers: The first so many layers compute each class once; the others have one row per node.

    Returns:
        The classes of the input (None if every node has its own row), and the rows of each layer.
    """
    loops = with_self_loops(batch)
    weight = _self_loop_weights(batch)
    one_per_node = LayerRows(loops, weight, edges, None, None, list(parts))
    if not shared_layers or weight is not None:
        return None, [one_per_node] * depth
    before = start = NodeClasses.from_keys(_input_key(batch, parts))
    edge_key = (edges.long() * _hash(torch.arange(edges.shape[1], device=edges.device), 1)).sum(1)
    layers: list[LayerRows] = []
    for _ in range(min(shared_layers, depth)):
        total = loops.source.new_zeros(len(loops.source) + 1, dtype=torch.int64)
        torch.cumsum(_hash(before.of_node, 2)[loops.source], 0, out=total[1:])
        now = NodeClasses.from_keys(total[loops.rowptr].diff().add_(edge_key))
        layers.append(_layer_rows(loops, before, now, edges, parts))
        before = now
    return start, layers + [one_per_node] * (depth - len(layers))


def expand_rows(rows: Tensor, of_node: Tensor | None) -> Tensor:
    """N x width from one row per class."""
    return rows if of_node is None else embedding_sum(of_node[:, None], rows)


def _layer_rows(
    loops: Adjacency, before: NodeClasses, now: NodeClasses, edges: Tensor, parts: Sequence[int]
) -> LayerRows:
    """One node of each class, with its neighbours replaced by their classes in the previous layer."""
    starts = loops.rowptr.index_select(0, now.first)
    lengths = loops.rowptr.index_select(0, now.first + 1) - starts
    rowptr = loops.rowptr.new_zeros(len(now.first) + 1)
    torch.cumsum(lengths, 0, out=rowptr[1:])
    total = int(rowptr[-1])
    entry = torch.arange(total, device=rowptr.device, dtype=torch.int32)
    entry += torch.repeat_interleave(starts - rowptr[:-1], lengths, output_size=total)
    source = before.of_node.index_select(0, loops.source.index_select(0, entry)).int()
    ends = torch.tensor(parts, device=rowptr.device).cumsum(0)
    bounds = [0, *torch.searchsorted(now.first, ends).tolist()]
    return LayerRows(
        Adjacency(rowptr, source, len(before.first)),
        None,
        edges.index_select(0, now.first),
        now.of_node,
        torch.bincount(now.of_node, minlength=len(now.first)),
        [last - first for first, last in pairwise(bounds)],
    )


def with_self_loops(batch: GraphBatch) -> Adjacency:
    """The batch's adjacency with each node appended to its own row."""
    nodes = torch.arange(batch.num_nodes + 1, dtype=torch.int32, device=batch.device)
    source = batch.source.new_empty(batch.num_edges + batch.num_nodes)
    source[_edge_positions(batch)] = batch.source
    source[(batch.rowptr[1:] + nodes[:-1]).long()] = nodes[:-1]
    return Adjacency(batch.rowptr + nodes, source, batch.num_nodes, batch.undirected)


def _self_loop_weights(batch: GraphBatch) -> Tensor | None:
    """The batch's edge weights, with 1 for each self-loop."""
    if batch.edge_weight is None:
        return None
    ones = batch.edge_weight.new_ones(batch.num_edges + batch.num_nodes)
    return ones.index_copy(0, _edge_positions(batch), batch.edge_weight)


def _edge_positions(batch: GraphBatch) -> Tensor:
    """E, int64: positions of the batch's edges once every earlier row has one more entry."""
    return torch.arange(batch.num_edges, device=batch.device) + batch.destination


def _input_key(batch: GraphBatch, parts: Sequence[int]) -> Tensor:
    """N, int64: equal for nodes of one part with equal codes; unique for a node with a dense row."""
    if batch.floats.shape[1]:
        return torch.arange(batch.num_nodes, device=batch.device)
    key = torch.zeros(batch.num_nodes, dtype=torch.int64, device=batch.device)
    for column in batch.codes.unbind(1):
        key = _hash(key + column, 3)
    if batch.replaced is not None:
        key[batch.replaced] = _hash(batch.replaced, 4)
    sizes = torch.tensor(parts, device=batch.device)
    number = torch.arange(len(parts), device=batch.device)
    return key + _hash(number, 5).repeat_interleave(sizes, output_size=batch.num_nodes)


def _hash(numbers: Tensor, salt: int) -> Tensor:
    """A fixed 64-bit hash, so that sums of different multisets of hashes differ.

    The probability that a layer confuses any two of 10,000 different nodes is 3e-12.
    """
    # The finalising steps of splitmix64; products wrap around.
    mixed = (numbers.long() + (salt << 40)) * -7046029254386353131
    mixed = (mixed ^ (mixed >> 30)) * -4658895280553007687
    mixed = (mixed ^ (mixed >> 27)) * -7723592293110705685
    return mixed ^ (mixed >> 31)
