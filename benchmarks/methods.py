"""An epoch of every neural method against the encoder passes and node heads that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import torch
from torch import Tensor

from benchmarks.cases import BATCH_SIZE, present, sample_of
from benchmarks.measure import Result, interleave
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.encoders import Gin
from graphsc.methods import make_recipe
from graphsc.methods.base import TrainedMethod
from graphsc.training.trainer import batches_of_epoch

# Encoder passes of a step, by which a new way into the encoder that is not recorded is noticed.
PASSES = {
    "graphsc": 3, "graphcl": 2, "joao": 2, "joaov2": 2, "simgrace": 2, "infograph": 1, "lagraph": 2,
    "adgcl": 6, "rgcl": 3, "cuco": 2, "mvgrl": 2, "graphmae": 1, "gcc": 2, "grace": 2, "gca": 2, "progcl": 2,
    "vgae": 1, "gic": 2, "subgcon": 1, "bgrl": 4, "cgc": 9,
}  # fmt: skip
BATCHES = {"nci1": 10, "dd": 2}  # of an epoch; the two of DD have more nodes than the ten of NCI1
BARS = dict.fromkeys(
    ["adgcl", "rgcl", "cuco", "mvgrl", "graphmae", "grace", "gca", "progcl", "gic", "bgrl", "cgc"], 2.2
)
# VGAE scores two pairs of nodes per edge, which costs as much as its only pass. SUBG-CON ranks all nodes by
# PageRank and encodes the few that it keeps. GCC's sub-graphs are 2 to 17 % of a graph here: encoding them
# costs less than walks, positions and queue do.
BARS |= {"vgae": 2.8, "subgcon": 3.0, "gcc": 5.0}
# Applied to every node.
NODE_HEADS = {
    "infograph": "local_head", "lagraph": "decoder", "mvgrl": "local_head", "graphmae": "to_decoder",
    "vgae": "gaussian",
}  # fmt: skip
ENTRIES = ("forward", "nodes", "node_layers", "encode_batches")  # the ways into the encoder
JOINS = ("graphsc.encoders.gin.MAX_JOINT_SIZE", "graphsc.methods.rgcl.MAX_JOINT_SIZE")


def run() -> list[Result]:
    results = []
    for name in present(BATCHES):
        collection = sample_of(name, BATCHES[name])
        for label in PASSES:
            _, epoch, floor = prepare(label, collection)
            passes, steps = PASSES[label], len(batches_of_epoch(len(collection), BATCH_SIZE, 0, 0))
            heads = " and its node head" if label in NODE_HEADS else ""
            results.append(
                interleave(
                    "methods", f"{label}, {name}, {steps} batches", epoch, floor, bar=BARS.get(label, 1.8),
                    goal=None if label in BARS else 1.4, better="lower",
                    against=f"its encoder passes ({passes} per step){heads}", repeats=5, warm_up=1,
                )
            )  # fmt: skip
    return results


def prepare(
    label: str, collection: GraphCollection
) -> tuple[TrainedMethod, Callable[[], None], Callable[[], None]]:
    """A method, an epoch of it, and its floor: the encoder passes and node heads of one epoch alone."""
    method = make_recipe(label, collection).build(collection.features, 0)
    generator = torch.Generator().manual_seed(0)
    method.begin(collection, generator)
    players = method.players()
    optimisers = [torch.optim.Adam(list(player.parameters), 0.001, fused=True) for player in players]
    order = batches_of_epoch(len(collection), BATCH_SIZE, 0, 0)

    def steps() -> None:
        for rows in order:
            views = method.views(GraphBatch.gather(collection, rows), generator)
            for player, optimiser in zip(players, optimisers, strict=True):
                encoded = method.encode(views, player.name)
                losses = method.objective(encoded, player.name)
                optimiser.zero_grad(set_to_none=True)
                torch.stack(list(losses.values())).sum().backward()
                optimiser.step()
            with torch.no_grad():
                method.after_step({name: value.detach() for name, value in encoded.items()}, 0.5)

    def epoch() -> None:
        steps()
        method.after_epoch(collection, generator)

    with recorded(method, NODE_HEADS.get(label)) as (passes, heads):
        steps()
        assert len(passes) == PASSES[label] * len(order), (label, len(passes), len(order))
        method.after_epoch(collection, generator)

    def floor() -> None:
        for encoder, batch, learns in passes:
            with torch.set_grad_enabled(learns):
                rows = encoder(batch)
            if learns:
                rows.sum().backward()
        for head, rows in heads:
            head(rows).sum().backward()

    return method, epoch, floor


Passes = list[tuple[Gin, GraphBatch, bool]]
Heads = list[tuple[torch.nn.Module, Tensor]]


@contextmanager
def recorded(method: TrainedMethod, head: str | None) -> Iterator[tuple[Passes, Heads]]:
    """Record the passes of all encoders inside, and the inputs of the node head; detached, to be repeated.

    Small batches are encoded jointly; the floor encodes them one by one, as that of the row `step` does.
    """
    passes: Passes = []
    heads: Heads = []
    inside = False

    def recording(entry: str) -> Callable[..., object]:
        real = getattr(Gin, entry)

        def call(encoder: Gin, given, *arguments, **keywords):
            nonlocal inside
            if inside:  # one way in goes through another
                return real(encoder, given, *arguments, **keywords)
            learns = torch.is_grad_enabled()
            passes.extend((encoder, _detached(batch, learns), learns) for batch in _listed(given))
            inside = True
            try:
                return real(encoder, given, *arguments, **keywords)
            finally:
                inside = False

        return call

    with ExitStack() as stack:
        for entry in ENTRIES:
            stack.enter_context(mock.patch.object(Gin, entry, recording(entry)))
        for limit in JOINS:
            stack.enter_context(mock.patch(limit, 0))
        if head is not None:
            module = getattr(method, head)
            hook = module.register_forward_pre_hook(
                lambda module, inputs: heads.append((module, inputs[0].detach().clone().requires_grad_()))
            )
            stack.callback(hook.remove)
        yield passes, heads


def _listed(given: GraphBatch | list[GraphBatch]) -> list[GraphBatch]:
    return [given] if isinstance(given, GraphBatch) else list(given)


def _detached(batch: GraphBatch, learns: bool) -> GraphBatch:
    """The batch with weights and features that another network made as inputs of their own."""
    if batch.edge_weight is not None:
        batch = replace(batch, edge_weight=batch.edge_weight.detach().requires_grad_(learns))
    if batch.replacement is not None and batch.replacement.requires_grad:
        batch = replace(batch, replacement=batch.replacement.detach().requires_grad_(learns))
    return batch
