"""A linear map whose result has rows that begin where a CPU likes them to.

A matrix product into rows of 300 floats, which begin in the middle of what a CPU loads at once, takes half as
long again as into rows of 304. So the rows are laid out 304 apart, and the last four places are never looked
at. Values and gradients are those of `torch.nn.functional.linear`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import linear

STEP = 16  # floats, 64 bytes
EASY = 8  # floats, 32 bytes: rows that are multiples of it are fast as they are
FEW = 64  # rows below which the price of a call is all that counts


def aligned_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`x @ weight.T + bias`: R x outputs from R x inputs, for 32-bit floats on a CPU; elsewhere plain."""
    plain = (
        x.device.type != "cpu"
        or x.dtype != torch.float32
        or len(x) < FEW
        or not (weight.shape[0] % EASY or weight.shape[1] % EASY)
        or torch.is_autocast_enabled("cpu")
    )
    if plain:
        return linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _aligned(rows: int, width: int, like: Tensor) -> Tensor:
    """Room for rows x width, each row at a multiple of 64 bytes from the first, or of 32."""
    if width % EASY == 0:
        return like.new_empty(rows, width)
    # Strided from the start: a slice would be a view, which nobody could change in place.
    return like.new_empty_strided((rows, width), (-(-width // STEP) * STEP, 1))


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.mT, out=_aligned(len(x), len(weight), x))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        to_x = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            to_x = torch.mm(gradient, weight, out=_aligned(len(x), weight.shape[1], x))
        # Whichever way round gives long rows.
        turned = bool(weight.shape[1] % EASY)
        to_weight = torch.mm(x.mT, gradient).mT if turned else torch.mm(gradient.mT, x)
        return to_x, to_weight, gradient.sum(0)
