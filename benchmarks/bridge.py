"""What a view of a PyG batch costs beyond the same view of a `GraphBatch`, per cost of the latter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch_geometric.data import Batch

from benchmarks.cases import batch_of, collection_of, fresh_batches, present, shape_of
from benchmarks.measure import Result, Times, compare, take_turns
from graphsc.views import DropNodes, MaskAttributes, PerturbEdges, Subgraph, View
from graphsc.views.pyg import ViewTransform

SETS = ("nci1", "dd")  # whose nodes have labels
VIEWS: dict[str, View] = {
    "drop-nodes": DropNodes(),
    "mask-attributes": MaskAttributes(token=1),  # integers cannot hold noise
    "subgraph": Subgraph(),
    "perturb-edges": PerturbEdges(),
}
RATE = 0.2
REPEATS = 15  # each of them in both orders
ROUNDS = 5  # a view takes less time than the processor stays at one speed


def run() -> list[Result]:
    return [result for name in present(SETS) for view in VIEWS for result in measure(name, view)]


def measure(name: str, view_name: str) -> list[Result]:
    """Time the first and the second view of fresh batches, of PyG's and of ours in turn."""
    view, generator = VIEWS[view_name], torch.Generator().manual_seed(0)
    bridge = ViewTransform(view, RATE, features=collection_of(name).features, seed=0)
    count = 2 * (REPEATS + 1)
    sides = [Times([], []) for _ in range(4)]
    for _ in range(ROUNDS):
        pyg = twice(bridge, fresh_pyg_batches(name, count))
        own = twice(lambda batch: view(batch, RATE, generator), fresh_batches(name, count))
        # A view that follows another one is faster, so each side goes first in half of the turns.
        places = take_turns((*pyg, *own, *own, *pyg), REPEATS, warm_up=1)
        for place, side in zip(places, (0, 1, 2, 3, 2, 3, 0, 1), strict=True):
            sides[side].wall.extend(place.wall)
            sides[side].cpu.extend(place.cpu)
    first, second, first_alone, second_alone = sides
    return [
        overhead(f"{view_name}, first view, {shape_of(name)}", first, first_alone),
        overhead(f"{view_name}, second view, {shape_of(name)}", second, second_alone),
    ]


def twice(view, batches) -> tuple[Callable[[], None], Callable[[], None]]:
    """The first view of the next batch, and the second view of that batch."""
    seen = []  # all of them, since to delete a batch takes time too

    def first() -> None:
        seen.append(batches())
        view(seen[-1])

    return first, lambda: view(seen[-1])


def fresh_pyg_batches(name: str, count: int) -> Callable[[], Batch]:
    """The set's batch for PyG, copied before it is timed. Edges are in the order of PyG's data sets."""
    batch = batch_of(name)
    assert batch.index is not None
    graphs = collection_of(name)[batch.index.numpy()].to_pyg()
    whole = Batch.from_data_list([graph.sort() for graph in graphs])
    ready = [whole.clone() for _ in range(count)]
    return ready.pop


def overhead(case: str, bridged: Times, alone: Times) -> Result:
    """The difference of two sides per cost of the second; the ratio is one less than that of the sides."""
    result = compare("bridge", case, bridged, alone, bar=1.0, better="lower", against="the view alone")
    by_wall = result.ours_ms / result.other_ms - 1
    return replace(
        result,
        ours_ms=result.ours_ms - result.other_ms,
        ours_cpu_ms=result.ours_cpu_ms - result.other_cpu_ms,
        ratio=result.ratio - 1,
        median_ratio=result.median_ratio - 1,
        note=f"by wall time {by_wall:.2f}" if result.note else "",
    )
