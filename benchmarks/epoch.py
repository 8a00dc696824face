"""GraphSC over ten batches against the same mathematics written with PyG, with 0 and 2 loader workers."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks.cases import BATCH_SIZE, present, sample_of
from benchmarks.measure import Result, compare, take_turns
from benchmarks.peer import PygGraphSC, loader_of
from graphsc.data.batch import GraphBatch
from graphsc.methods import make_recipe
from graphsc.training.trainer import batches_of_epoch, prefetch, prefetch_pays

BARS = {
    "nci1": (4.0, 6.0), "proteins": (4.0, 6.0), "dd": (4.0, 6.0), "reddit-binary": (4.0, 6.0),
    "collab": (12.0, 20.0),
}  # fmt: skip
WORKERS = (0, 2)
SLOW = ("reddit-binary",)  # an epoch of the peer takes more than five seconds


def run() -> list[Result]:
    results = []
    for name in present(BARS):
        collection = sample_of(name)
        collection.degrees  # noqa: B018 - known before either side starts, as the peer's features are
        recipe = make_recipe("graphsc", collection)
        method = recipe.build(collection.features, 0)
        peer = PygGraphSC(method)
        difference = loss_difference(method, peer, collection)
        assert difference <= 1e-4, difference
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
        mine, *peers = take_turns(sides, 3 if name in SLOW else 7, warm_up=1, workers=True)
        bar, goal = BARS[name]
        results += [
            compare(
                "epoch", f"{name}, {len(order)} batches", mine, times, bar=bar, goal=goal, better="higher",
                against=f"PyG, {workers} loader workers", note=f"losses differ by {difference:.0e}",
            )
            for workers, times in zip(WORKERS, peers, strict=True)
        ]  # fmt: skip
        del loaders, sides  # ends the workers
    return results


def loss_difference(method, peer, collection) -> float:
    """How far the peer's loss is from ours on the same weights and views, relative to a loss above 1."""
    batch = GraphBatch.gather(collection, np.arange(min(64, len(collection))))
    views = method.views(batch, torch.Generator().manual_seed(1))
    with torch.no_grad():
        ours = float(torch.stack(list(method.objective(method.encode(views)).values())).sum())
        theirs = float(peer.loss(*(view.to_pyg() for view in views.values())))
    return abs(ours - theirs) / max(1.0, abs(ours))
