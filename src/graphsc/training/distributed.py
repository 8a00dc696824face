"""Several processes that train one method: each encodes its share of a batch, all see the whole of it.

Every rank computes the loss of the gathered batch. Gathering has an exact adjoint, so that the mean over
ranks of the gradients is the gradient that one process would have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.core.errors import ConfigError
from graphsc.encoders.batch_norm import WeightedBatchNorm, split_moments

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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
        return dict(zip(encoded, gather_rows(*encoded.values()), strict=True))

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


def gather_rows(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Each with the rows of all ranks, which may differ in number, one rank after the other; differentiable.

    All of them travel together: a message costs more than what is in it.
    """
    gathered: tuple[Tensor, ...] = _GatherRows.apply(*tensors)  # type: ignore[no-untyped-call]
    return gathered


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, *tensors: Tensor) -> tuple[Tensor, ...]:
        size, rank, first = dist.get_world_size(), dist.get_rank(), tensors[0]
        rows = [torch.zeros(len(tensors), dtype=torch.int64, device=first.device) for _ in range(size)]
        dist.all_gather(rows, torch.tensor([len(each) for each in tensors], device=first.device))
        lengths = torch.stack(rows).tolist()  # ranks x tensors
        shapes = [each.shape[1:] for each in tensors]
        runs = [[n * s.numel() for n, s in zip(each, shapes, strict=True)] for each in lengths]
        flat = first.new_zeros(max(map(sum, runs)))  # what is on the wire must have one shape
        flat[: sum(runs[rank])] = torch.cat([each.reshape(-1) for each in tensors])
        found = [torch.empty_like(flat) for _ in range(size)]
        dist.all_gather(found, flat)
        parts = [torch.split(part[: sum(run)], run) for part, run in zip(found, runs, strict=True)]
        starts = [sum(column) for column in zip(*lengths[:rank], strict=True)] or [0] * len(tensors)
        ctx.own = [slice(start, start + len(t)) for start, t in zip(starts, tensors, strict=True)]  # type: ignore[attr-defined]
        return tuple(
            torch.cat(column).view(-1, *shape)
            for column, shape in zip(zip(*parts, strict=True), shapes, strict=True)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor, ...]:
        flat = torch.cat([each.reshape(-1) for each in gradients])
        dist.all_reduce(flat)
        parts = torch.split(flat, [each.numel() for each in gradients])
        return tuple(
            part.view_as(gradient)[own]
            for part, gradient, own in zip(parts, gradients, ctx.own, strict=True)  # type: ignore[attr-defined]
        )


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


# Which device a run uses; never a silent fall-back.


def pick_device(wanted: str) -> str:
    """`auto`, `cpu`, `cuda` or `mps`, as an accelerator that is really there."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if wanted == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if there[name])
    if wanted not in there:
        raise ConfigError(f"unknown device {wanted!r}", hint="use auto, cpu, cuda or mps")
    if not there[wanted]:
        raise ConfigError(f"this machine has no usable {wanted} device", hint="use --device auto or cpu")
    return wanted


def make_fabric(device: str, precision: str, devices: int = 1, nodes: int = 1) -> Fabric:
    """Lightning Fabric on one device or many; it launches, places and casts, saving and drawing are ours.

    With more than one, the processes of this machine are started here, unless torchrun has done so.
    """
    from lightning_fabric import Fabric

    # What it says of precision goes past our reporter.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if devices < 1 or nodes < 1:
        raise ConfigError(f"{devices} devices on {nodes} machines cannot train", hint="use 1 or more of each")
    if device == "cuda" and devices > torch.cuda.device_count():
        raise ConfigError(f"this machine has {torch.cuda.device_count()} cuda devices, not {devices}")
    if device == "mps" and devices * nodes > 1:
        raise ConfigError("mps has one device", hint="use --devices 1")
    many = devices * nodes > 1
    fabric = Fabric(
        accelerator={"cuda": "gpu"}.get(device, device),
        devices=devices,
        num_nodes=nodes,
        strategy="ddp" if many else "auto",
        precision="bf16-mixed" if precision == "bf16" else "32-true",
    )
    fabric.launch()
    return fabric


# BatchNorm whose batch is that of all ranks; torch's own refuses tensors on a CPU.


class SharedBatchNorm(WeightedBatchNorm):
    """In training, mean and variance over the nodes of all ranks; in evaluation, as ever."""

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width; every rank must call it equally often, with as many parts."""
        if not self.training:
            return super().forward(rows)
        return self.normalise(rows, counts, [len(rows)] if parts is None else list(parts))

    def reduce_moments(self, moments: Tensor) -> Tensor:
        """Those of all ranks' nodes, from the moments of each rank's (Chan et al.), in one message."""
        found = [torch.empty_like(moments) for _ in range(dist.get_world_size())]
        dist.all_gather(found, moments)
        nodes, means, variances = split_moments(torch.stack(found))
        total = nodes.sum(0)
        mean = (nodes * means).sum(0) / total
        variance = (nodes * (variances + (means - mean).square())).sum(0) / total
        return torch.cat([total, mean, variance], dim=1)

    def reduce_sums(self, sums: Tensor) -> Tensor:
        """Over the rows of all ranks."""
        dist.all_reduce(sums)
        return sums


def share_batchnorm(module: nn.Module) -> None:
    """Let every BatchNorm of the module see the whole batch; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # without weights it takes no part in training
            part.__class__ = SharedBatchNorm
