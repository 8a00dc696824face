"""Epoch time and memory at 1,000, 10,000 and 100,000 graphs: both must grow with the graphs alone."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

from benchmarks.measure import Result

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 4  # of EPOCHS each
EPOCHS = 2
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
for repeat in range(int(sys.argv[2])):
    batches = batches_of_epoch(len(collection), 128, 0, repeat)
    start = time.process_time()
    graphs = 0
    for rows in batches[:30]:
        batch = GraphBatch.gather(collection, rows)
        losses = method.objective(method.encode(method.views(batch, generator)))
        optimiser.zero_grad(set_to_none=True)
        torch.stack(list(losses.values())).sum().backward()
        optimiser.step()
        graphs += len(rows)
    times.append((time.process_time() - start) / graphs)
print(json.dumps({"time": [1e6 * each for each in times], "memory": [held / len(collection)]}))
"""


def run() -> list[Result]:
    rounds: dict[int, list[dict[str, list[float]]]] = {size: [] for size in SIZES}
    for _ in range(ROUNDS):  # interleaved: every size in every round
        for size in SIZES:
            done = subprocess.run(
                [sys.executable, "-c", CODE, str(size), str(EPOCHS)],
                check=True,
                capture_output=True,
                text=True,
            )
            rounds[size].append(json.loads(done.stdout))
    rows = []
    for what, unit, bar, said in (
        ("time", "µs", 1.25, "CPU time per graph"),
        ("memory", "bytes", 1.1, "memory per graph"),
    ):
        values = {size: [v for each in found for v in each[what]] for size, found in rounds.items()}
        small = values[SIZES[0]]
        rows += [
            Result(
                "growth", f"{said}, {size:,} graphs", min(values[size]), min(small), 0, 0,
                min(values[size]) / min(small), statistics.median(values[size]) / statistics.median(small),
                bar, None, "lower", f"{SIZES[0]:,} graphs", "", len(small), unit,
            )
            for size in SIZES[1:]
        ]  # fmt: skip
    return rows
