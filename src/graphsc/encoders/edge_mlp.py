"""A two-layer network on the two ends of every edge, without a wide row for each edge in memory.

Dense graphs have so many edges that such rows would leave every cache, twice: forward and backward. Here they
are made a chunk at a time and once more when the gradient needs them.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

CHUNK = 2**18  # numbers; a megabyte


def edge_mlp(start: Tensor, end: Tensor, weight: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    """`weight . relu(start[source] + end[destination])` for each of P edges; differentiable in the floats.

    start, end: N x d, a linear layer on each end of an edge, applied once a node; weight: d; source and
    destination: P. Returns P, in full precision.
    """
    exact = torch.promote_types(start.dtype, torch.float32)
    parts = (part.to(exact) for part in (start, end, weight))
    with torch.autocast(start.device.type, enabled=False):
        result: Tensor = _EdgeMlp.apply(*parts, source, destination)  # type: ignore[no-untyped-call]
    return result


class _EdgeMlp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, start: Tensor, end: Tensor, weight: Tensor, source: Tensor, destination: Tensor
    ) -> Tensor:
        ctx.save_for_backward(start, end, weight, source, destination)
        result = start.new_empty(len(source))
        for part in _chunks(len(source), len(weight)):
            torch.mv(_hidden(start, end, source[part], destination[part]), weight, out=result[part])
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        start, end, weight, source, destination = ctx.saved_tensors  # type: ignore[attr-defined]
        to_start, to_end, to_weight = map(torch.zeros_like, (start, end, weight))
        for part in _chunks(len(source), len(weight)):
            hidden = _hidden(start, end, source[part], destination[part])
            to_weight.addmv_(hidden.mT, gradient[part])
            # One where the ReLU let through, which is all of its derivative; the weights come last.
            hidden.sign_().mul_(gradient[part, None])
            to_start.index_add_(0, source[part], hidden)
            to_end.index_add_(0, destination[part], hidden)
        return to_start.mul_(weight), to_end.mul_(weight), to_weight, None, None


def _chunks(edges: int, width: int) -> Iterator[slice]:
    size = max(1, CHUNK // max(width, 1))
    return (slice(first, first + size) for first in range(0, edges, size))


def _hidden(start: Tensor, end: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    return start.index_select(0, source).add_(end.index_select(0, destination)).relu_()
