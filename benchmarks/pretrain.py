"""One GraphSC step of the molecule encoder, 5 x 300, on 256 molecules, against its matrix products alone."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from benchmarks.measure import Result, compare, take_turns
from graphsc.core.errors import NotFoundError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import looked_in, search_folders
from graphsc.data.readers import open_collection
from graphsc.data.readers.csv import open_text
from graphsc.encoders.deduplication import deduplicate_layers
from graphsc.encoders.molecule_gin import bond_counts
from graphsc.methods import make_recipe
from graphsc.training.distributed import pick_precision

DEPTH, WIDTH, BATCH_SIZE = 5, 300, 256
REPEATS = 7
EVERY = 97  # lines of the file between two molecules, because neighbours in it may be alike


def run() -> list[Result]:
    collection = molecules()
    rows = np.arange(len(collection))
    recipe = make_recipe("graphsc", collection, preset="molecules", encoder="molecule-gin")
    method = recipe.build(collection.features, 0)
    optimiser = torch.optim.Adam(method.parameters(), 1e-3, fused=True)
    generator = torch.Generator().manual_seed(0)

    def step(precision: str) -> None:
        batch = GraphBatch.gather(collection, rows)
        views = method.views(batch, generator)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            encoded = method.encode(views)
        losses = method.objective({name: value.float() for name, value in encoded.items()})
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()
        optimiser.step()

    views = method.views(GraphBatch.gather(collection, rows), generator).values()
    a_row_a_node = [[view.num_nodes] * DEPTH for view in views]
    a_row_a_class = [_classes(view) for view in views]
    nodes, classes = (sum(map(sum, sizes)) for sizes in (a_row_a_node, a_row_a_class))
    case = f"moses, {BATCH_SIZE} molecules ({a_row_a_node[0][0]:,} atoms)"
    note = f"{classes:,} of {nodes:,} rows are computed, in three views and {DEPTH} layers"
    chosen = pick_precision("auto", "cpu")
    sides = [partial(step, "full"), _Products(a_row_a_node), _Products(a_row_a_class)]
    if chosen == "bf16":
        sides.append(partial(step, chosen))
    full, products, few_products, *fast = take_turns(sides, REPEATS, warm_up=1)
    against = "its products, one row per atom"
    results = [
        compare(
            "pretrain", f"{case}, {said}", times, products, bar=0.5, goal=0.25, better="lower",
            against=against, note=note,
        )
        for said, times in zip(("32 bits", "16 bits"), (full, *fast), strict=False)
    ]  # fmt: skip
    if not fast:
        print("pretrain: the case in 16 bits is skipped: this CPU has no 16-bit products", file=sys.stderr)
    results.append(
        compare(
            "pretrain", f"{case}, 32 bits", full, few_products, bar=1.5, better="lower",
            against="its products, one row per distinct atom", note=note,
        )
    )  # fmt: skip
    return results


class _Products:
    """The two products of each layer and view, forward, to the input and to the weight."""

    def __init__(self, sizes: Sequence[Sequence[int]]) -> None:
        self.inputs = [
            (torch.randn(rows, WIDTH), torch.randn(rows, 2 * WIDTH))
            for rows in itertools.chain.from_iterable(sizes)
        ]
        self.weight = torch.randn(2 * WIDTH, WIDTH)

    def __call__(self) -> None:
        for narrow, wide in self.inputs:
            narrow @ self.weight.T
            wide @ self.weight
            wide.T @ narrow
            wide @ self.weight  # the second product has the shapes of the first one's backward pass
            narrow @ self.weight.T
            narrow.T @ wide


def _classes(view: GraphBatch) -> list[int]:
    _, layers = deduplicate_layers(view, bond_counts(view), DEPTH, [view.num_nodes], shared_layers=DEPTH)
    return [layer.adjacency.rows for layer in layers]


def molecules() -> GraphCollection:
    found = (file for folder in search_folders() for file in sorted(folder.glob("moses*.smi*")))
    path = next(found, None)
    if path is None:
        raise NotFoundError("no file moses*.smi, .smi.gz or .smi.xz", where=f"looked in {looked_in()}")
    with open_text(path) as file:
        lines = itertools.islice(file, EVERY, (BATCH_SIZE + 1) * EVERY, EVERY)
        return open_collection([line.split()[0] for line in lines], reader="smiles")
