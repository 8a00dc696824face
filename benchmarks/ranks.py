"""Pre-training on molecules by two processes of one thread each, against one process of one thread.

A process has as many cores as threads: otherwise the one process would draw its views ahead on a second core,
and be two threads.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Result
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.sampling import open_sample

MOLECULES, BATCH_SIZE, EPOCHS = 1_024, 256, 5
REPEATS = 2  # of EPOCHS - 1 timed epochs each


def run() -> list[Result]:
    locate(NAMED["moses"])
    seconds: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "molecules.safetensors"
        open_sample("moses", MOLECULES, held_out=0).training.save(source)
        for repeat in range(REPEATS):
            for processes in (2, 1):
                seconds[processes] += _epochs(source, processes, Path(folder) / f"{processes}-{repeat}")
    two, one = ([1e3 * value for value in seconds[processes]] for processes in (2, 1))
    return [
        Result(
            "ranks", f"graphsc, 5 x 300, {MOLECULES:,} of MOSES, an epoch", min(two), min(one), 0.0, 0.0,
            min(one) / min(two), statistics.median(one) / statistics.median(two), 1.6, None,
            "higher", "one process on one core", "", len(one),
        )
    ]  # fmt: skip


def _epochs(source: Path, processes: int, out: Path) -> list[float]:
    """Seconds of each epoch after the first, which warms up; starting the processes is not among them."""
    command = [sys.executable, "-m", "graphsc", "pretrain", str(source), "--held-out", "0"]
    command += ["--epochs", str(EPOCHS), "--set", f"batch_size={BATCH_SIZE}", "--device", "cpu"]
    command += ["--devices", str(processes), "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    cores = set(sorted(os.sched_getaffinity(0))[:processes])
    subprocess.run(
        command, check=True, capture_output=True, env=environment,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )  # fmt: skip
    with open(out / "metrics.csv", newline="") as file:
        return [float(row["seconds"]) for row in csv.DictReader(file)][1:]
