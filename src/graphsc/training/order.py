"""Which graphs share a batch, epoch by epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.random import numpy_generator

SMALLEST = 8  # a last batch below this is dropped: HSIC and Barlow Twins are noise on so few


def batches_of_epoch(graphs: int, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """All graphs in random order, cut into batches; the only batch is never dropped."""
    order = numpy_generator(seed, "order", epoch).permutation(graphs).astype(np.int64)
    batches = [order[start : start + batch_size] for start in range(0, graphs, batch_size)]
    if len(batches) > 1 and len(batches[-1]) < SMALLEST:
        batches.pop()
    return batches
