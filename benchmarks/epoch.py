"""GraphSC over ten batches against the same mathematics written with PyG."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch

from benchmarks.cases import BATCH_SIZE, collection_of
from benchmarks.measure import Result, interleave
from benchmarks.peer import PygGraphSC, loader_of
from graphsc.data.batch import GraphBatch
from graphsc.methods import make_recipe
from graphsc.training.trainer import batches_of_epoch, prefetch, prefetch_pays

BARS = {
    "nci1": (3.0, 5.0), "proteins": (3.0, 5.0), "dd": (3.0, 5.0), "reddit-binary": (3.0, 5.0),
    "collab": (10.0, 15.0),
}  # fmt: skip
BATCHES = 10


def run() -> list[Result]:
    results = []
    for name, (bar, goal) in BARS.items():
        collection = collection_of(name)
        # A random tenth of a large set: files are sorted by class, and classes differ in size.
        chosen = np.random.default_rng(0).permutation(len(collection))[: BATCHES * BATCH_SIZE]
        collection = collection[chosen]
        collection.degrees  # noqa: B018 - known before either side starts, as the peer's features are
        recipe = make_recipe("graphsc", collection)
        method = recipe.build(collection.features, 0)
        peer = PygGraphSC(method)
        _check_same_loss(method, peer, collection)
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
        loaders = {
            workers: loader_of(collection, operations, (0.1, 0.25), workers, BATCH_SIZE) for workers in (0, 2)
        }

        def theirs(workers: int, peer=peer, optimiser=peer_optimiser, loaders=loaders) -> None:
            for anchor, weak, strong in loaders[workers]:
                loss = peer.loss(anchor, weak, strong)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()

        seconds = {}
        for workers in loaders:
            theirs(workers)  # starts the workers
            start = time.perf_counter()
            theirs(workers)
            seconds[workers] = time.perf_counter() - start
        best = min(seconds, key=lambda workers: seconds[workers])
        results.append(
            interleave(
                "epoch", f"{name}, {len(order)} batches", ours, partial(theirs, best),
                bar=bar, goal=goal, better="higher", against=f"PyG, {best} loader workers",
                repeats=7 if seconds[best] < 5 else 3, warm_up=1,
            )
        )  # fmt: skip
    return results


def _check_same_loss(method, peer, collection) -> None:
    """The peer is no straw man: on the same weights and views its loss is ours."""
    batch = GraphBatch.gather(collection, np.arange(64))
    views = method.views(batch, torch.Generator().manual_seed(1))
    ours = torch.stack(list(method.objective(method.encode(views)).values())).sum()
    theirs = peer.loss(*(view.to_pyg() for view in views.values()))
    difference = abs(float(ours.detach()) - float(theirs.detach()))
    assert difference <= 1e-4 * max(1.0, abs(float(ours.detach()))), (float(ours), float(theirs))
