"""Epoch time and memory at 1,000, 10,000 and 100,000 graphs: both must grow with the graphs alone."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.measure import Result

SIZES = (1_000, 10_000, 100_000)
# In a process of its own; thirty batches stand for an epoch where there are more. Memory is what the
# collection holds: a process's peak is torch's own libraries up to far more graphs than these.
CODE = """
import json, sys, time
import torch
torch.set_num_threads(1)
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.training.trainer import batches_of_epoch
collection = open_collection(f"molecule-like:{sys.argv[1]}")
method = make_recipe("graphsc", collection).build(collection.features, 0)
optimiser = torch.optim.Adam(method.parameters(), 0.01, fused=True)
generator = torch.Generator().manual_seed(0)
held = collection.edge_index.nbytes + collection.nodes.codes.nbytes + collection.edges.codes.nbytes
times = []
for repeat in range(4):
    batches = batches_of_epoch(len(collection), 128, 0, repeat)
    start = time.perf_counter()
    graphs = 0
    for rows in batches[:30]:
        batch = GraphBatch.gather(collection, rows)
        losses = method.objective(method.encode(method.views(batch, generator)))
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()
        optimiser.step()
        graphs += len(rows)
    times.append((time.perf_counter() - start) / graphs)
print(json.dumps({"us_per_graph": min(times) * 1e6, "held_per_graph": held / len(collection)}))
"""


def run() -> list[Result]:
    best: dict[int, dict[str, float]] = {}
    for _ in range(3):  # interleaved: every size in every round
        for size in SIZES:
            done = subprocess.run(
                [sys.executable, "-c", CODE, str(size)], check=True, capture_output=True, text=True
            )
            found = json.loads(done.stdout)
            before = best.setdefault(size, found)
            best[size] = {key: min(before[key], found[key]) for key in found}
    small, large = best[SIZES[0]], best[SIZES[-1]]
    rows = []
    for what, bar, note in (
        ("us_per_graph", 1.25, "microseconds a graph"),
        ("held_per_graph", 1.1, "bytes a graph that the collection holds"),
    ):
        ratio = large[what] / small[what]
        rows.append(
            Result(
                "growth", f"{what}, {SIZES[-1]:,} graphs", large[what], small[what], 0, 0, ratio, ratio, bar,
                None, "lower", f"{SIZES[0]:,} graphs", note,
            )
        )  # fmt: skip
    return rows
