"""One whole GraphSC training step against three encoder passes on ready-made views."""

from __future__ import annotations

import torch

from benchmarks.cases import batch_of, collection_of, fresh_batches, present, shape_of
from benchmarks.measure import Result, interleave
from graphsc.methods import make_recipe


def run() -> list[Result]:
    results = []
    for name in present():
        batch, collection = batch_of(name), collection_of(name)
        method = make_recipe("graphsc", collection).build(collection.features, 0)
        optimiser = torch.optim.Adam(method.parameters(), 0.01, fused=True)
        generator = torch.Generator().manual_seed(0)
        ready = list(method.views(batch, generator).values())
        batches = fresh_batches(name)

        def ours(method=method, batches=batches, optimiser=optimiser, generator=generator) -> None:
            losses = method.objective(method.encode(method.views(batches(), generator)))
            optimiser.zero_grad(set_to_none=True)
            torch.stack(list(losses.values())).sum().backward()
            optimiser.step()

        def floor(method=method, ready=ready) -> None:
            method.zero_grad(set_to_none=True)
            for view in ready:
                method.encoder(view).sum().backward()

        results.append(
            interleave(
                "step", shape_of(name), ours, floor,
                bar=1.5, goal=1.2, better="lower", against="three encoder passes",
            )
        )  # fmt: skip
    return results
