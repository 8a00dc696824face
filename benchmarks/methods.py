"""Every neural method's step, views included, against the encoder passes that it makes."""

from __future__ import annotations

from unittest import mock

import torch

from benchmarks.cases import batch_of, collection_of, fresh_batches, shape_of
from benchmarks.measure import Result, interleave
from graphsc.encoders import Gin
from graphsc.methods import make_recipe

METHODS = ("graphsc", "graphcl", "joao", "joaov2", "simgrace", "infograph", "lagraph", "adgcl", "rgcl")
BARS = {"adgcl": 2.2, "rgcl": 2.2}


def run() -> list[Result]:
    results = []
    for name in ("nci1", "dd"):
        collection = collection_of(name)
        for label in METHODS:
            method = make_recipe(label, collection).build(collection.features, 0)
            generator = torch.Generator().manual_seed(0)
            method.begin(collection, generator)
            players = method.players()
            optimisers = [torch.optim.Adam(list(player.parameters), 0.001, fused=True) for player in players]
            passes = _passes(method, batch_of(name), generator)
            batches = fresh_batches(name)

            def ours(method=method, players=players, optimisers=optimisers, batches=batches,
                     generator=generator) -> None:  # fmt: skip
                views = method.views(batches(), generator)
                for player, optimiser in zip(players, optimisers, strict=True):
                    losses = method.objective(method.encode(views, player.name), player.name)
                    optimiser.zero_grad(set_to_none=True)
                    torch.stack(list(losses.values())).sum().backward()
                    optimiser.step()

            def floor(passes=passes) -> None:
                for encoder, batch, parts, learns in passes:
                    with torch.set_grad_enabled(learns):
                        rows = encoder(batch, parts)
                    if learns:
                        rows.sum().backward()

            results.append(
                interleave(
                    "methods", f"{label}, {shape_of(name)}", ours, floor, bar=BARS.get(label, 1.8),
                    goal=None if label in BARS else 1.4, better="lower",
                    against=f"its {len(passes)} encoder passes",
                )
            )  # fmt: skip
    return results


def _passes(method, batch, generator) -> list[tuple[Gin, object, object, bool]]:
    """The encoder passes of one step, with what they were given; detached, so that they can be made again."""
    found: list[tuple[Gin, object, object, bool]] = []
    real = Gin.node_layers

    def note(encoder, given, parts=None):
        found.append((encoder, given, parts, torch.is_grad_enabled()))
        return real(encoder, given, parts)

    # Small batches are encoded in one pass; the floor makes them one by one, as the row `step` does.
    with mock.patch.object(Gin, "node_layers", note), mock.patch("graphsc.encoders.gin.MAX_JOINT_SIZE", 0):
        views = method.views(batch, generator)
        for player in method.players():
            method.encode(views, player.name)
    from dataclasses import replace

    return [
        (encoder, replace(given, edge_weight=given.edge_weight.detach().requires_grad_(learns))
         if given.edge_weight is not None else given, parts, learns)
        for encoder, given, parts, learns in found
    ]  # fmt: skip
