"""Trials on a Dask cluster of this machine against the same trials in local processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from benchmarks.cases import collection_of
from benchmarks.measure import Result, interleave
from graphsc.core.registry import require
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import probe_results, run_trials
from graphsc.experiments.trial import ProbeTrial

TRIALS, WORKERS = 12, 2


def run() -> list[Result]:
    collection_of("mutag")
    require("distributed")
    trials = [ProbeTrial("mutag", "graphsc", seed=seed) for seed in range(TRIALS)]
    accuracies: dict[str | None, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, _scheduler(Path(folder)) as address:
        numbers = count()

        def work(cluster: str | None, trials: list[ProbeTrial] = trials) -> None:
            out = Path(folder) / str(next(numbers))  # a new one, so that nothing is stored yet
            store = ResultStore(out / "results")
            outcomes = run_trials(trials, store, out / "runs", jobs=WORKERS, cluster=cluster)
            accuracies[cluster] = [result.accuracy for result in probe_results(outcomes)]

        for cluster in (address, None):
            work(cluster, trials[:WORKERS])  # starts local workers, and all import what they need
        result = interleave(
            "cluster", f"{TRIALS} trials on MUTAG, {WORKERS} workers", lambda: work(address),
            lambda: work(None), bar=1.15, better="lower", against="local joblib processes", repeats=3,
            warm_up=0, workers=True,
        )  # fmt: skip
        assert accuracies[address] == accuracies[None]
    return [result]


@contextmanager
def _scheduler(folder: Path) -> Iterator[str]:
    """A scheduler and its workers, in processes of their own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    commands = [["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"]]
    commands += [["worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * WORKERS
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in commands
    ]  # fmt: skip
    try:
        yield address
    finally:
        for process in processes:
            process.kill()
            process.wait()
