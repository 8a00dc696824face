"""COLLAB from its archive to a saved collection, against PyG's reader on the unpacked folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Result
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.datasets.download import open_archive, unpack

# Each side in a process of its own, so that its peak memory is its own; imports are not timed.
OURS = """
from graphsc.data.readers.tu import read_tu
def work(source, target): read_tu(source).save(target)
"""
PEER = """
from torch_geometric.io import read_tu_data
def work(source, target): read_tu_data(source, "COLLAB")
"""
TAIL = """
import json, resource, sys, time
wall, cpu = time.perf_counter(), time.process_time()
work(sys.argv[1], sys.argv[2])
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def _run(code: str, source: Path, target: Path) -> dict[str, float]:
    arguments = [sys.executable, "-c", code + TAIL, str(source), str(target)]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)


def run() -> list[Result]:
    archive_path = locate(NAMED["collab"])
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "collab.safetensors"
        with open_archive(archive_path) as archive:
            unpack(archive, Path(folder) / "unpacked")
        unpacked = next((Path(folder) / "unpacked").rglob("COLLAB_A.txt")).parent
        ours, peer = [], []
        for _ in range(2):
            ours.append(_run(OURS, archive_path, saved))
            peer.append(_run(PEER, unpacked, saved))
        reopening = []
        for _ in range(7):
            start = time.perf_counter()
            GraphCollection.open(saved)
            reopening.append(time.perf_counter() - start)

    def least(runs: list[dict[str, float]], what: str) -> float:
        return min(run[what] for run in runs)

    def middle(what: str) -> float:
        return sum(run[what] for run in peer) / sum(run[what] for run in ours)

    return [
        Result(
            "read", "COLLAB.zip to file, time", least(ours, "wall") * 1e3, least(peer, "wall") * 1e3,
            least(ours, "cpu") * 1e3, least(peer, "cpu") * 1e3, least(peer, "wall") / least(ours, "wall"),
            middle("wall"), 8.0, None, "higher", "PyG read_tu_data", "", len(ours),
        ),
        Result(
            "read", "COLLAB.zip to file, peak memory", least(ours, "peak_mb"), least(peer, "peak_mb"), 0, 0,
            least(ours, "peak_mb") / least(peer, "peak_mb"), 1 / middle("peak_mb"), 1 / 3, None, "lower",
            "PyG read_tu_data", "", len(ours), "MB",
        ),
        Result(
            "read", "reopening the saved file", min(reopening) * 1e3, 500.0, 0, 0, min(reopening) / 0.5,
            sorted(reopening)[3] / 0.5, 1.0, None, "lower", "half a second", "", len(reopening),
        ),
    ]  # fmt: skip
