"""Distributed training: process group, gathering with gradients, synchronised BatchNorm, device, precision.

Each process encodes its shard of a batch, then computes the loss of the whole, gathered batch. The backward
pass of the gather is its exact adjoint, so the mean of the gradients over processes equals the gradient that
a single process would have.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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

Precision = Literal["full", "bf16", "auto"]
CPU = torch.device("cpu")

# Flags of /proc/cpuinfo: products of 16-bit floats on x86 (two kinds) and on ARM.
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}


@dataclass(frozen=True)
class Distributed:
    """The position of this process in its process group; a single process needs none and sends nothing."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = CPU  # of all tensors that are sent: NCCL serves no others

    @classmethod
    def current(cls, device: torch.device = CPU) -> Distributed:
        """Rank and world size as torch.distributed reports them, and the device of this process."""
        if not dist.is_available() or not dist.is_initialized():
            return cls(device=device)
        return cls(dist.get_rank(), dist.get_world_size(), device)

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, the only process that writes files and prints."""
        return self.rank == 0

    def seed_purpose(self, name: str) -> str:
        """A purpose for `derive_seed` under which every rank draws different numbers."""
        return name if self.world_size == 1 else f"{name} of rank {self.rank}"

    def shard(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The contiguous part of a batch for this rank; gathering the parts restores the order."""
        return rows if self.world_size == 1 else np.array_split(rows, self.world_size)[self.rank]

    def gather(self, encoded: dict[str, Tensor]) -> dict[str, Tensor]:
        """Concatenate every tensor over the ranks, in rank order; differentiable."""
        if self.world_size == 1:
            return encoded
        return dict(zip(encoded, gather_rows(*encoded.values()), strict=True))

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their means over the ranks; a missing gradient counts as zero."""
        if self.world_size == 1:
            return
        trainable = [parameter for parameter in parameters if parameter.requires_grad]
        if not trainable:
            return
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in trainable]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat)
        flat /= self.world_size
        means = torch.split(flat, [parameter.numel() for parameter in trainable])
        for parameter, mean in zip(trainable, means, strict=True):
            parameter.grad = mean.view_as(parameter).clone()

    def max_over_ranks(self, number: int | None) -> int | None:
        """The largest number that any rank passes, so that all act alike; None if all pass None."""
        if self.world_size == 1:
            return number
        largest = torch.tensor(-1 if number is None else number, device=self.device)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        return None if int(largest) < 0 else int(largest)

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        # Not `dist.barrier`, which chooses a device itself. Reading the number waits for the device, too.
        self.max_over_ranks(None)


def gather_rows(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Concatenate each tensor over the ranks, in rank order; differentiable.

    Ranks may hold different numbers of rows. All tensors are sent in one message, because the latency of a
    message costs more than its content.
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
        flat = first.new_zeros(max(map(sum, runs)))  # all_gather needs one shape on all ranks
        flat[: sum(runs[rank])] = torch.cat([each.reshape(-1) for each in tensors])
        received = [torch.empty_like(flat) for _ in range(size)]
        dist.all_gather(received, flat)
        parts = [torch.split(part[: sum(run)], run) for part, run in zip(received, runs, strict=True)]
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


class SyncBatchNorm(WeightedBatchNorm):
    """BatchNorm whose training statistics are those of the nodes of all ranks.

    `torch.nn.SyncBatchNorm` supports neither CPU tensors nor weighted rows.
    """

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """Normalise R x width rows; every rank must call it equally often, with as many parts."""
        if not self.training:
            return super().forward(rows)
        return self.normalise(rows, counts, [len(rows)] if parts is None else list(parts))

    def reduce_moments(self, moments: Tensor) -> Tensor:
        """Combine the moments of all ranks (Chan et al.), in one message."""
        received = [torch.empty_like(moments) for _ in range(dist.get_world_size())]
        dist.all_gather(received, moments)
        nodes, means, variances = split_moments(torch.stack(received))
        total = nodes.sum(0)
        mean = (nodes * means).sum(0) / total
        variance = (nodes * (variances + (means - mean).square())).sum(0) / total
        return torch.cat([total, mean, variance], dim=1)

    def reduce_sums(self, sums: Tensor) -> Tensor:
        """Sum over the rows of all ranks."""
        dist.all_reduce(sums)
        return sums


def convert_sync_batchnorm(module: nn.Module) -> None:
    """Turn every BatchNorm of the module into a `SyncBatchNorm`, in place; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # one without weights is not used in training
            part.__class__ = SyncBatchNorm


def pick_device(wanted: str | torch.device) -> str:
    """Resolve `auto`, `cpu`, `cuda`, `mps`, one of several GPUs (`cuda:1`), or a device of torch.

    Raises:
        ConfigError: The device is not available; there is no silent fall-back.
    """
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if wanted == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if available[name])
    kind, colon, number = str(wanted).partition(":")
    if kind not in available or (colon and not number.isdecimal()):
        raise ConfigError(f"unknown device '{wanted}'", hint="use auto, cpu, cuda, cuda:NUMBER or mps")
    if not available[kind]:
        raise ConfigError(f"this machine has no usable {kind} device", hint="use --device auto or cpu")
    if not colon:
        return kind
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if int(number) >= count:
        raise ConfigError(
            f"this machine has no device '{wanted}'", hint=f"the last one is {kind}:{count - 1}"
        )
    return f"cuda:{int(number)}" if kind == "cuda" else kind


def driver_device(device: str | torch.device, jobs: int | None, cluster: str | None) -> str:
    """The device of a model in the calling process: the CPU if workers receive it from there and run it.

    Raises:
        ConfigError: The device is missing, or one GPU is named for several processes; before any of them
            starts.
    """
    if cluster is None:
        chosen = pick_device(device)
        if jobs == 1:
            return chosen
    if str(device).startswith("cuda:"):
        raise ConfigError(
            f"several processes cannot use the device '{device}' alone: each sees one GPU of its machine",
            hint="use cuda, and CUDA_VISIBLE_DEVICES for which GPUs they share",
        )
    return "cpu"


def pick_precision(wanted: Precision, device: str, fast_bf16: bool | None = None) -> Precision:
    """Resolve `auto`: bf16 where the device has 16-bit products, else full.

    Args:
        wanted: `full` and `bf16` stay as they are.
        device: As `pick_device` returns it.
        fast_bf16: Whether the device has 16-bit products; by default `has_fast_bf16` finds out.
    """
    if wanted != "auto":
        return wanted
    return "bf16" if (has_fast_bf16(device) if fast_bf16 is None else fast_bf16) else "full"


def precision_warning(precision: Precision, device: str, fast_bf16: bool | None = None) -> str | None:
    """A warning that bf16 is slower than full precision on this CPU; None where it is not."""
    if precision != "bf16" or device != "cpu" or (has_fast_bf16(device) if fast_bf16 is None else fast_bf16):
        return None
    return "this CPU has no 16-bit products, so precision bf16 is slower than full; auto would choose full"


def has_fast_bf16(device: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether a device multiplies 16-bit floats in hardware: a CPU with AVX512-BF16, AMX or ARM's bf16.

    Elsewhere products of 16-bit floats work too, but convert their inputs each time.
    """
    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu":
        return False
    private = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")  # some versions of torch lack them
    if any(bool(getattr(torch.cpu, name, bool)()) for name in private):
        return True
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return False
    listed = (line.partition(":")[2].split() for line in lines if line.startswith(("flags", "Features")))
    return any(BF16_FLAGS & set(flags) for flags in listed)


def make_fabric(device: str, precision: Precision, devices: int = 1, nodes: int = 1) -> Fabric:
    """Lightning Fabric for one device or many; it launches processes, places tensors and casts precision.

    `precision` is what `pick_precision` returned. With more than one device, the processes of this machine
    are started here unless torchrun has done so; then the numbers are torchrun's.
    """
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment

    # Its messages about precision would bypass our reporter.
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    if devices < 1 or nodes < 1:
        raise ConfigError(f"{devices} devices on {nodes} machines cannot train", hint="use 1 or more of each")
    devices, nodes = _as_launched(devices, nodes)
    kind, _, number = device.partition(":")
    if number and devices * nodes > 1:
        raise ConfigError(f"{device} is one device, not {devices * nodes}", hint=f"use --device {kind}")
    if kind == "cuda" and devices > torch.cuda.device_count():
        raise ConfigError(f"this machine has {torch.cuda.device_count()} cuda devices, not {devices}")
    if device == "mps" and devices * nodes > 1:
        raise ConfigError("mps has one device", hint="use --devices 1")
    fabric = Fabric(
        accelerator={"cuda": "gpu"}.get(kind, kind),
        devices=[int(number)] if number else devices,
        num_nodes=nodes,
        strategy="ddp" if devices * nodes > 1 else "auto",
        precision="bf16-mixed" if precision == "bf16" else "32-true",
        plugins=[] if _is_launched(devices * nodes) else [LightningEnvironment()],
    )
    fabric.launch()
    return fabric


def _as_launched(devices: int, nodes: int) -> tuple[int, int]:
    """The numbers of processes per machine and of machines; those of torchrun if it started this process."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return devices, nodes
    launched = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])
    if (devices, nodes) not in ((1, 1), launched):
        raise ConfigError(
            f"torchrun started {launched[0]} processes on each of {launched[1]} machines, not {devices} on "
            f"{nodes}",
            hint="leave out --devices and --nodes",
        )
    return launched


def _is_launched(processes: int) -> bool:
    """Whether all processes of a training were started by torchrun or srun.

    Fabric takes any process inside a SLURM job for one of several, also one that trains alone beside others.
    """
    by_srun = processes > 1 and os.environ.get("SLURM_NTASKS") == str(processes)
    return by_srun or "TORCHELASTIC_RUN_ID" in os.environ
