"""Which device a run uses; never a silent fall-back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from graphsc.core.errors import ConfigError

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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
