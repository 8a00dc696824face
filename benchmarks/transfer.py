"""A step of each pre-training of the transfer setting, on 256 molecules, against its encoder passes."""

from __future__ import annotations

from unittest import mock

import numpy as np
import torch

from benchmarks.measure import Result, interleave
from benchmarks.pretrain import BATCH_SIZE, molecules
from graphsc.data.batch import GraphBatch
from graphsc.encoders.molecule_gin import MoleculeGin
from graphsc.methods import make_recipe

METHODS = ("infomax", "edgepred", "attrmasking", "contextpred", "graphlog")
SETTINGS = {"graphlog": {"local_epochs": 0}}  # so that there are prototypes


def run() -> list[Result]:
    collection = molecules()
    rows = np.arange(len(collection))
    results = []
    for label in METHODS:
        recipe = make_recipe(label, collection, SETTINGS.get(label), encoder="molecule-gin")
        method = recipe.build(collection.features, 0)
        generator = torch.Generator().manual_seed(0)
        method.begin(collection, generator)
        optimiser = torch.optim.Adam(method.parameters(), 1e-3, fused=True)
        passes = _passes(method, GraphBatch.gather(collection, rows), generator)

        def ours(method=method, optimiser=optimiser, generator=generator) -> None:
            batch = GraphBatch.gather(collection, rows)
            losses = method.objective(method.encode(method.views(batch, generator)))
            optimiser.zero_grad(set_to_none=True)
            torch.stack(list(losses.values())).sum().backward()
            optimiser.step()

        def floor(passes=passes) -> None:
            for encoder, batch in passes:
                encoder(batch).sum().backward()

        results.append(
            interleave(
                "transfer", f"{label}, moses, {BATCH_SIZE} molecules", ours, floor, bar=1.5, goal=1.2,
                better="lower", against=f"its {len(passes)} encoder passes", repeats=5, warm_up=1,
            )
        )  # fmt: skip
    return results


def _passes(method, batch, generator) -> list[tuple[MoleculeGin, GraphBatch]]:
    """The encoders that a step asks, and what they are given."""
    found: list[tuple[MoleculeGin, GraphBatch]] = []
    real = MoleculeGin._layers

    def note(encoder, given, parts):
        found.append((encoder, given))
        return real(encoder, given, parts)

    with mock.patch.object(MoleculeGin, "_layers", note):
        method.encode(method.views(batch, generator))
    return found
