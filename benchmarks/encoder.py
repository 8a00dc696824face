"""GIN 3 x 32, forward and backward, against its matrix products alone."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks.cases import batch_of, encoder_pass, present, shape_of
from benchmarks.measure import Result, interleave

# Two products a layer, less the very first, which is a look-up here. Leaving it out lowers the floor.
PRODUCTS, WIDTH = 5, 32


def run() -> list[Result]:
    results = []
    for name in present():
        rows = batch_of(name).num_nodes
        generator = torch.Generator().manual_seed(0)
        inputs = [torch.randn(rows, WIDTH, generator=generator) for _ in range(PRODUCTS)]
        weights = [torch.randn(WIDTH, WIDTH, generator=generator) for _ in range(PRODUCTS)]
        gradient = torch.randn(rows, WIDTH, generator=generator)

        def floor(inputs=inputs, weights=weights, gradient=gradient) -> None:
            for x, weight in zip(inputs, weights, strict=True):
                x @ weight.T  # forward
                gradient @ weight  # to the input
                gradient.T @ x  # to the weight

        results.append(
            interleave(
                "encoder", shape_of(name), partial(encoder_pass, name), floor,
                bar=3.0, goal=2.0, better="lower", against="its matrix products",
            )
        )  # fmt: skip
    return results
