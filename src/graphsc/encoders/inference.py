"""Embed a collection with an encoder, independent of which graphs share a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection, subset

BATCH_SIZE = 256
ENTRIES = 2**15  # nodes and edges per batch, for encoders that do not say otherwise
MAX_GRAPHS = 20_000  # more would not change BatchNorm statistics noticeably


class _StopForwardError(Exception):
    """Raised by a hook to skip the rest of a forward pass."""


def batches_of(
    collection: GraphCollection, batch_size: int = BATCH_SIZE, device: str | torch.device = "cpu"
) -> Iterator[GraphBatch]:
    """The collection in order, `batch_size` graphs at a time."""
    for start in range(0, len(collection), batch_size):
        rows = np.arange(start, min(start + batch_size, len(collection)), dtype=np.int64)
        yield GraphBatch.gather(collection, rows).to(device)


def bounded_batches(
    collection: GraphCollection, entries: int = ENTRIES, device: str | torch.device = "cpu"
) -> Iterator[GraphBatch]:
    """The collection in order, in batches of at most `entries` nodes and edges, or of a single graph."""
    rows = collection.array_rows(collection.positions(np.arange(len(collection), dtype=np.int64)))
    sizes = np.diff(collection.node_ptr)[rows] + np.diff(collection.edge_ptr)[rows]
    ends = np.cumsum(sizes)
    start, before = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, before + entries, side="right")))
        yield GraphBatch.gather(collection, np.arange(start, stop, dtype=np.int64)).to(device)
        start, before = stop, int(ends[stop - 1])


@torch.inference_mode()
def embed(
    encoder: nn.Module, collection: GraphCollection, batch_size: int | None = None
) -> NDArray[np.float32]:
    """Embeddings (graphs x dimensions) in evaluation mode; the encoder's mode is restored afterwards.

    Args:
        encoder: From a batch to one row per graph.
        collection: The graphs.
        batch_size: Graphs per batch. By default batches are bounded by their nodes and edges, and so is
            memory: an encoder with an attribute `inference_entries` has as many as this.
    """
    was_training = encoder.training
    encoder.eval()
    device = _device_of(encoder)
    if batch_size is None:
        entries = max(getattr(module, "inference_entries", ENTRIES) for module in encoder.modules())
        batches = bounded_batches(collection, entries, device)
    else:
        batches = batches_of(collection, batch_size, device)
    try:
        rows = [encoder(batch).cpu().numpy() for batch in batches]
    finally:
        encoder.train(was_training)
    return np.concatenate(rows).astype(np.float32, copy=False)


@torch.no_grad()
def reestimate_batchnorm(
    encoder: nn.Module, collection: GraphCollection, batch_size: int = BATCH_SIZE
) -> None:
    """Set BatchNorm's running statistics to the exact statistics of unperturbed graphs.

    Running statistics from training mix clean and perturbed graphs and depend on the last few batches; an
    untrained encoder has none. One pass per layer, in order, because each layer's input depends on the
    statistics before it. The result does not depend on the batch size. The encoder is left in evaluation
    mode, because a forward pass in training mode would update the statistics again.
    """
    encoder.eval()
    sample = collection
    if len(collection) > MAX_GRAPHS:
        sample = subset(collection, np.linspace(0, len(collection) - 1, MAX_GRAPHS).astype(np.int64))
    device = _device_of(encoder)
    for norm, calls in _norms_in_order(encoder, sample, device).items():
        _set_statistics(norm, calls, encoder, sample, batch_size, device)


def _set_statistics(
    norm: nn.BatchNorm1d,
    calls: int,
    encoder: nn.Module,
    collection: GraphCollection,
    batch_size: int,
    device: torch.device,
) -> None:
    total = torch.zeros(norm.num_features, dtype=torch.float64)
    squares = torch.zeros(norm.num_features, dtype=torch.float64)
    rows = calls_seen = 0

    def accumulate(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal rows, calls_seen
        values = inputs[0].detach().cpu().double()
        # `WeightedBatchNorm` also takes the number of nodes per row.
        weights = inputs[1] if len(inputs) > 1 else None
        counts = torch.ones(len(values)) if weights is None else weights.detach().cpu()
        total.add_(counts.double() @ values)
        squares.add_(counts.double() @ values**2)
        rows += int(counts.sum())
        calls_seen += 1
        if calls_seen % calls == 0:
            raise _StopForwardError

    handle = norm.register_forward_pre_hook(accumulate)
    try:
        for batch in batches_of(collection, batch_size, device):
            with suppress(_StopForwardError):
                encoder(batch)
    finally:
        handle.remove()
    if rows == 0 or norm.running_mean is None or norm.running_var is None:
        return
    mean = total / rows
    variance = (squares / rows - mean**2).clamp(min=0) * (rows / max(rows - 1, 1))
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)


def _norms_in_order(
    encoder: nn.Module, collection: GraphCollection, device: torch.device
) -> Counter[nn.BatchNorm1d]:
    """The BatchNorm layers in the order of a forward pass, with the number of calls of each."""
    order: list[nn.BatchNorm1d] = []
    norms = [module for module in encoder.modules() if isinstance(module, nn.BatchNorm1d)]
    handles = [norm.register_forward_pre_hook(lambda module, _: order.append(module)) for norm in norms]
    try:
        if norms and len(collection):
            encoder(next(batches_of(collection, 1, device)))
    finally:
        for handle in handles:
            handle.remove()
    return Counter(order)


def _device_of(encoder: nn.Module) -> torch.device:
    parameter = next(encoder.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
