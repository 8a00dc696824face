"""The health of a representation, epoch by epoch, on a sample of graphs."""

from __future__ import annotations

import numpy as np
import torch

from graphsc.core.random import torch_generator
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.losses import alignment, effective_rank, mean_cosine, uniformity
from graphsc.methods.base import TrainedMethod

SAMPLE = 256  # graphs; enough to see a collapse, few enough to cost nothing
FEW = 20  # graphs; fewer have no rank to speak of
COLLAPSED = 0.05  # share of the dimensions in use below which a warning is due


@torch.no_grad()
def health_of(
    method: TrainedMethod, collection: GraphCollection, seed: int, epoch: int, device: torch.device
) -> dict[str, float]:
    """Effective rank, uniformity and cosine of the vectors; alignment where there is a positive view.

    In training mode, as the loss sees them, with BatchNorm's running statistics put back afterwards.
    """
    rows = np.unique(np.linspace(0, len(collection) - 1, min(SAMPLE, len(collection))).astype(np.int64))
    batch = GraphBatch.gather(collection, rows).to(device)
    views = method.views(batch, torch_generator(seed, "health", epoch, device=device))
    buffers = {name: value.clone() for name, value in method.named_buffers()}
    encoded = method.encode(views)
    for name, value in method.named_buffers():
        value.copy_(buffers[name])
    if "anchor" not in encoded:
        return method.figures(encoded)
    anchor = encoded["anchor"].float()
    found = {
        "effective_rank": float(effective_rank(anchor)),
        "dimensions": float(anchor.shape[1]),
        "health_graphs": float(len(anchor)),
        "uniformity": float(uniformity(anchor)),
        "mean_cosine": float(mean_cosine(anchor)),
    }
    if "positive" in encoded:
        found["alignment"] = float(alignment(anchor, encoded["positive"].float()))
    return found | method.figures(encoded)


def warning_of(row: dict[str, float]) -> str | None:
    """In plain words, that the vectors have collapsed; None while they have not."""
    rank, dimensions = row.get("effective_rank"), row.get("dimensions")
    if rank is None or not dimensions or row["health_graphs"] < FEW:
        return None
    if rank >= max(2.5, COLLAPSED * dimensions):
        return None
    return (
        f"embeddings use {max(1, round(rank))} of {dimensions:.0f} dimensions: they are collapsing; "
        "lower the learning rate"
    )
