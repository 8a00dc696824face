"""From node vectors to one vector a graph; graphs without nodes get zeros."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding_bag

from graphsc.data.batch import GraphBatch

Readout = Literal["sum", "mean", "max"]


def pool(batch: GraphBatch, nodes: Tensor, how: Readout) -> Tensor:
    """G x d from N x d: sum, mean or largest value over each graph's nodes."""
    if how == "max":
        empty = nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        index = batch.batch[:, None].expand_as(nodes)
        return empty.scatter_reduce(0, index, nodes, "amax", include_self=False)
    total: Tensor = _SegmentSum.apply(nodes, batch)  # type: ignore[no-untyped-call]
    if how == "mean":
        return total / batch.ptr.diff().clamp(min=1)[:, None]
    return total


class _SegmentSum(torch.autograd.Function):
    """Nodes of a graph lie together, so its sum is a run of rows, and its gradient a repetition."""

    @staticmethod
    def forward(ctx: FunctionCtx, nodes: Tensor, batch: GraphBatch) -> Tensor:
        ctx.batch = batch  # type: ignore[attr-defined]
        if not nodes.numel():
            return nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        rows = torch.arange(len(nodes), device=nodes.device)
        return embedding_bag(rows, nodes, batch.ptr, mode="sum", include_last_offset=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        # A layer's part of the joined vectors does not lie together, and is read eight times slower so.
        return gradient.contiguous().index_select(0, ctx.batch.batch), None  # type: ignore[attr-defined]
