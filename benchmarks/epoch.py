"""GraphSC over ten batches against the same mathematics written with PyG, with 0 and 2 loader workers."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import torch

from benchmarks.cases import BATCH_SIZE, present, sample_of
from benchmarks.measure import Result, Times, compare, take_turns
from benchmarks.peer import PygGraphSC, loader_of
from graphsc.data.batch import GraphBatch
from graphsc.methods import make_recipe
from graphsc.training.trainer import batches_of_epoch, prefetch, prefetch_pays

BARS = {
    "nci1": (4.0, 6.0), "proteins": (4.0, 6.0), "dd": (4.0, 6.0), "reddit-binary": (4.0, 6.0),
    "collab": (12.0, 20.0),
}  # fmt: skip
WORKERS = (0, 2)
SLOW = 5.0  # seconds of CPU time above which an epoch is repeated three times, not seven


def run() -> list[Result]:
    results = []
    for name in present(BARS):
        collection = sample_of(name)
        collection.degrees  # noqa: B018 - known before either side starts, as the peer's features are
        recipe = make_recipe("graphsc", collection)
        method = recipe.build(collection.features, 0)
        peer = PygGraphSC(method)
        exact, rounded = loss_difference(method, peer, collection)
        assert exact <= 1e-6, exact
        assert rounded <= 1e-3, rounded
        optimiser = torch.optim.Adam(method.parameters(), 0.01, fused=True)
        peer_optimiser = torch.optim.Adam(peer.parameters(), 0.01, fused=True)
        generator = torch.Generator().manual_seed(0)
        order = batches_of_epoch(len(collection), BATCH_SIZE, 0, 0)

        def ours(method=method, optimiser=optimiser, generator=generator, order=order,
                 collection=collection) -> None:  # fmt: skip
            def views(step: int):
                return method.views(GraphBatch.gather(collection, order[step]), generator)

            # As the training loop has it: large batches are made by a second thread (the peer has workers).
            thread = prefetch_pays(collection, BATCH_SIZE)
            for ready in prefetch(views, 0, len(order), thread=thread):
                losses = method.objective(method.encode(ready))
                optimiser.zero_grad(set_to_none=True)
                torch.stack(list(losses.values())).sum().backward()
                optimiser.step()

        operations = list(recipe.settings["operations"])
        loaders = [loader_of(collection, operations, (0.1, 0.25), workers, BATCH_SIZE) for workers in WORKERS]

        def theirs(loader, peer=peer, optimiser=peer_optimiser) -> None:
            for anchor, weak, strong in loader:
                loss = peer.loss(anchor, weak, strong)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

        # Workers stay alive between epochs and rest while another side is timed: one side after the other,
        # each side's CPU time is its own and that of its workers. The first round starts them.
        sides = [ours, *(partial(theirs, loader) for loader in loaders)]
        first = take_turns(sides, 1, warm_up=1, workers=True)
        slowest = max(times.cpu[0] for times in first)
        more = take_turns(sides, 2 if slowest > SLOW else 6, workers=True)
        mine, *peers = (
            Times(one.wall + two.wall, one.cpu + two.cpu) for one, two in zip(first, more, strict=True)
        )
        bar, goal = BARS[name]
        results += [
            compare(
                "epoch", f"{name}, {len(order)} batches", mine, times, bar=bar, goal=goal, better="higher",
                against=f"PyG, {workers} loader workers",
                note=f"losses differ by {exact:.0e} in 64 bits, {rounded:.0e} in 32",
            )
            for workers, times in zip(WORKERS, peers, strict=True)
        ]  # fmt: skip
        del loaders, sides  # ends the workers
    return results


def loss_difference(method, peer, collection) -> tuple[float, float]:
    """How far the peer's loss is from ours on the same weights and views, in 64 and in 32 bits.

    In 32 bits torch's BatchNorm, which the peer uses, loses digits on graphs with large sums.
    """
    batch = GraphBatch.gather(collection, np.arange(min(64, len(collection))))
    views = method.views(batch, torch.Generator().manual_seed(1))
    differences = []
    for dtype in (torch.float64, torch.float32):
        ours, theirs = copy.deepcopy(method).to(dtype), copy.deepcopy(peer).to(dtype)
        graphs = [view.to_pyg(dense=True) for view in views.values()]
        for graph in graphs:
            graph.x = graph.x.to(dtype)
        with torch.no_grad():
            our_loss = float(torch.stack(list(ours.objective(ours.encode(views)).values())).sum())
            differences.append(abs(our_loss - float(theirs.loss(*graphs))))
    return differences[0], differences[1]
