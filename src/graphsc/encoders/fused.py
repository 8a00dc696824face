"""The middle of a GIN layer as one step: what a layer costs besides its products is passes over N x width."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import relu

from graphsc.encoders.sparse import Adjacency, aggregate, column_sums, row_sums

# What autograd itself calls for a ReLU; torch offers it nowhere else.
_relu_backward = torch.ops.aten.threshold_backward.default


def sum_and_activate(
    x: Tensor, adjacency: Adjacency, weight: Tensor | None, bias: Tensor, *, own: float = 1.0
) -> Tensor:
    """`relu(own x + A x + bias)`, N x width; the entries of A are all one or `weight`."""
    if weight is not None or x.dtype is not bias.dtype:  # mixed precision: autograd knows what goes where
        scaled = x if own == 1 else own * x
        return relu(scaled + aggregate(adjacency, x, weight) + bias)
    result: Tensor = _SumAndActivate.apply(x, bias, adjacency, own)  # type: ignore[no-untyped-call]
    return result


class _SumAndActivate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, bias: Tensor, adjacency: Adjacency, own: float) -> Tensor:
        hidden = row_sums(adjacency, x, None).add_(x, alpha=own).add_(bias).relu_()
        ctx.save_for_backward(hidden)
        ctx.adjacency, ctx.own = adjacency, own  # type: ignore[attr-defined]
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        (hidden,) = ctx.saved_tensors  # type: ignore[attr-defined]
        needs_x, needs_bias, *_ = ctx.needs_input_grad  # type: ignore[attr-defined]
        gradient = _relu_backward(gradient.contiguous(), hidden, 0)
        to_x = None
        if needs_x:
            adjacency, own = ctx.adjacency, ctx.own  # type: ignore[attr-defined]
            to_x = column_sums(adjacency, gradient).add_(gradient, alpha=own)
        return to_x, gradient.sum(0) if needs_bias else None, None, None
