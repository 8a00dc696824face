"""How often a step sends its graphs through an encoder: counted, because methods differ by it in price."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from graphsc.data.batch import GraphBatch
from graphsc.methods.base import TrainedMethod


@torch.no_grad()
def passes_per_step(method: TrainedMethod, batch: GraphBatch, generator: torch.Generator) -> float:
    """Graphs encoded for each graph of the batch, over all players and all encoders of a method.

    Encoders are `method.encoder` and whatever else in the method is of its kind. The method and torch's own
    generator are left as they were.
    """
    was_training = method.training
    method.eval()  # BatchNorm over several ranks would wait for the others
    encoders = [part for part in method.modules() if type(part) is type(method.encoder)]
    try:
        with torch.random.fork_rng(devices=[]), ExitStack() as stack:
            counts = [stack.enter_context(counted_graphs(encoder)) for encoder in encoders]
            views = method.views(batch, generator)
            for player in method.players():
                method.encode(views, player.name)
    finally:
        method.train(was_training)
    return sum(max(found.values(), default=0) for found in counts) / max(batch.num_graphs, 1)


@contextmanager
def counted_graphs(encoder: nn.Module) -> Iterator[dict[nn.Module, int]]:
    """The number of graphs that each part of an encoder was given as a batch.

    A pass may enter by another door than `forward`, and then only inner parts are called; the part that saw
    most graphs has seen every pass.
    """
    counts: dict[nn.Module, int] = {}

    def count(part: nn.Module, inputs: tuple[object, ...]) -> None:
        if inputs and isinstance(inputs[0], GraphBatch):
            counts[part] = counts.get(part, 0) + inputs[0].num_graphs

    handles = [part.register_forward_pre_hook(count) for part in encoder.modules()]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()
