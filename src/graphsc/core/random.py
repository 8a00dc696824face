"""Random numbers without state: every draw comes from (seed, purpose, epoch, step).

A run that stops can therefore go on as if it never had: there is no generator state to save. Purposes
keep draws apart, so that adding a draw to one part of the program changes no other.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> int:
    """A 63-bit seed that depends on all four arguments and on nothing else."""
    key = f"{seed}\x1f{purpose}\x1f{epoch}\x1f{step}".encode()
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def numpy_generator(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """A NumPy generator for one purpose at one moment of a run."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, purpose, epoch, step)))


def torch_generator(
    seed: int,
    purpose: str,
    epoch: int = 0,
    step: int = 0,
    device: str | torch.device = "cpu",
) -> torch.Generator:
    """A torch generator for one purpose at one moment of a run, on `device`."""
    import torch  # here, because `graphsc data` must start without it

    return torch.Generator(device=device).manual_seed(derive_seed(seed, purpose, epoch, step))
