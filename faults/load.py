"""`make load`: very many graphs through `graphsc embed`, stopped half way; memory is measured."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TRAIN = ("train", "motifs:200", "--epochs", "1", "--device", "cpu", "--out", "run")


def load(graphs: int, ending: str) -> dict[str, object]:
    """Figures of one embedding of `graphs` graphs by the default encoder, stopped once on its way."""
    home = Path(tempfile.mkdtemp(prefix="load-"))
    try:
        _run(home, *TRAIN)
        _run(home, "data", "convert", f"motifs:{graphs}", "--out", "graphs.safetensors")
        command = ("embed", "run", "graphs.safetensors", "--out", f"v.{ending}")
        began = time.monotonic()
        first = _start(home, *command)
        _wait_for_chunks(first, home / f".v.{ending}.rows" / "done.json", graphs)
        first.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(first.pid, 0)
        stopped = os.waitstatus_to_exitcode(status)
        kept = _chunks(home / f".v.{ending}.rows" / "done.json")
        second = _start(home, *command)
        _, status, more = os.wait4(second.pid, 0)
        seconds = time.monotonic() - began
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit("the second embedding did not end well")
        ids = _ids(home / f"v.{ending}")
        left = sorted(path.name for path in home.iterdir() if path.name.startswith("."))
        return {
            "graphs": graphs,
            "format": ending,
            "first_exit_code": stopped,
            "chunks_kept_at_the_stop": kept,
            "rows": len(ids),
            "rows_missing": graphs - len(np.unique(ids)),
            "rows_doubled": len(ids) - len(np.unique(ids)),
            "in_order": bool((np.diff(ids) == 1).all()),
            "left_over": len(left),
            "peak_mb": max(usage.ru_maxrss, more.ru_maxrss) // 1024,
            "seconds": round(seconds),
            "file_mb": (home / f"v.{ending}").stat().st_size // 2**20,
            "collection_mb": (home / "graphs.safetensors").stat().st_size // 2**20,
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _start(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "graphsc", *arguments], cwd=home, env=environment)


def _run(home: Path, *arguments: str) -> None:
    if _start(home, *arguments).wait():
        raise SystemExit(f"{arguments[0]} did not end well")


def _wait_for_chunks(process: subprocess.Popen[bytes], note: Path, graphs: int) -> None:
    """Until half of the chunks are kept."""
    from graphsc.training.export import CHUNK

    while _chunks(note) * CHUNK * 2 < graphs:
        if process.poll() is not None:
            raise SystemExit("the embedding ended before it could be stopped; ask for more graphs")
        time.sleep(0.05)


def _chunks(note: Path) -> int:
    return len(json.loads(note.read_text())["sha256"]) if note.exists() else 0


def _ids(path: Path) -> np.ndarray:
    if path.suffix == ".npz":
        with np.load(path) as stored:
            return stored["ids"]
    if path.suffix == ".csv":
        with open(path) as file:
            next(file)
            return np.array([int(line.partition(",")[0]) for line in file])
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, columns=["id"])["id"].to_numpy()
