"""Each view at rate 0.2 against one encoder pass on the same batch."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.cases import SETS, encoder_pass, fresh_batches, shape_of
from benchmarks.measure import Result, interleave
from graphsc.views import VIEWS

BARS = {"drop-nodes": 0.3, "mask-attributes": 0.3, "subgraph": 0.5, "perturb-edges": 1.0}
RATE = 0.2


def run() -> list[Result]:
    results = []
    for name in SETS:
        for view_name, bar in BARS.items():
            view = VIEWS.get(view_name)()
            generator = torch.Generator().manual_seed(0)
            batches = fresh_batches(name)

            def ours(view=view, batches=batches, generator=generator) -> object:
                return view(batches(), RATE, generator)

            results.append(
                interleave(
                    "views", f"{view_name}, {shape_of(name)}",
                    ours, partial(encoder_pass, name),
                    bar=bar, better="lower", against="one encoder pass",
                )
            )  # fmt: skip
    return results
