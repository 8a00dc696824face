"""Stateless random numbers: every generator is seeded by (seed, purpose, epoch, step).

There is no generator state to save, so a stopped run resumes exactly. Purposes separate the random
streams: a new draw in one part of the program changes no other part.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def derive_seed(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> int:
    """Hash the four arguments to a 63-bit seed, the same on every machine."""
    key = f"{seed}\x1f{purpose}\x1f{epoch}\x1f{step}".encode()
    digest = hashlib.blake2b(key, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def numpy_generator(seed: int, purpose: str, epoch: int = 0, step: int = 0) -> np.random.Generator:
    """A NumPy generator for one purpose at one step of a run."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, purpose, epoch, step)))


def torch_generator(
    seed: int,
    purpose: str,
    epoch: int = 0,
    step: int = 0,
    device: str | torch.device = "cpu",
) -> torch.Generator:
    """A torch generator for one purpose at one step of a run, on `device`."""
    import torch  # not at the top: `graphsc data` must start without it

    return torch.Generator(device=device).manual_seed(derive_seed(seed, purpose, epoch, step))
