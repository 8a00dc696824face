"""Several processes that train one method: each encodes its share of a batch, all see the whole of it.

Every rank computes the loss of the gathered batch. Gathering has an exact adjoint, so that the mean over
ranks of the gradients is the gradient that one process would have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable


@dataclass(frozen=True)
class Ranks:
    """One process among its like; alone it needs no process group."""

    rank: int = 0
    size: int = 1

    @classmethod
    def here(cls) -> Ranks:
        """As torch.distributed has it."""
        if not dist.is_available() or not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes files and speaks."""
        return self.rank == 0

    def purpose(self, name: str) -> str:
        """A purpose of random draws that differ between ranks."""
        return name if self.size == 1 else f"{name} of rank {self.rank}"

    def share(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take this rank's graphs of a batch: a run of it, so that gathering gives back their order."""
        return rows if self.size == 1 else np.array_split(rows, self.size)[self.rank]

    def gather(self, encoded: dict[str, Tensor]) -> dict[str, Tensor]:
        """Every tensor with the rows of all ranks, in the order of the ranks; differentiable."""
        if self.size == 1:
            return encoded
        return {name: gather_rows(value) for name, value in encoded.items()}

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their means over ranks; a parameter without one here counts as zero."""
        if self.size == 1:
            return
        held = [parameter for parameter in parameters if parameter.requires_grad]
        if not held:
            return
        flat = torch.cat([_gradient(parameter).reshape(-1) for parameter in held])
        dist.all_reduce(flat)
        flat /= self.size
        offset = 0
        for parameter in held:
            part = flat[offset : offset + parameter.numel()].view_as(parameter)
            parameter.grad = part.clone()
            offset += parameter.numel()

    def agree(self, number: int | None) -> int | None:
        """The largest number that any rank has; None where none has one. A signal may reach one rank only."""
        if self.size == 1:
            return number
        found = torch.tensor(-1 if number is None else number)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return None if int(found) < 0 else int(found)

    def wait(self) -> None:
        """Until all ranks are here."""
        if self.size > 1:
            dist.barrier()


def gather_rows(rows: Tensor) -> Tensor:
    """The rows of all ranks, which may differ in number, one rank after the other; differentiable."""
    gathered: Tensor = _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, rows: Tensor) -> Tensor:
        size = dist.get_world_size()
        counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(size)]
        dist.all_gather(counts, torch.tensor([len(rows)], device=rows.device))
        lengths = [int(count) for count in counts]
        # Tensors on the wire must have one shape.
        padded = rows.new_zeros(max(lengths), *rows.shape[1:])
        padded[: len(rows)] = rows
        found = [torch.empty_like(padded) for _ in range(size)]
        dist.all_gather(found, padded)
        start = sum(lengths[: dist.get_rank()])
        ctx.own = slice(start, start + len(rows))  # type: ignore[attr-defined]
        return torch.cat([part[:length] for part, length in zip(found, lengths, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient)
        return gradient[ctx.own]  # type: ignore[attr-defined]


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
