"""A Dask cluster of two workers, for verbs of the soak that run on one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from faults.verbs import Verb

WORKERS = 2


@contextmanager
def cluster_of(verb: Verb, home: Path) -> Iterator[Verb]:
    """The verb, with the address of its cluster where it runs on one."""
    if not verb.on_cluster:
        yield verb
        return
    folder, processes = home / "dask", []
    folder.mkdir()

    def dask(*words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        with open(folder / "log.txt", "ab") as log:
            processes.append(subprocess.Popen(command, cwd=folder, stdout=log, stderr=log))

    try:
        where = folder / "scheduler.json"
        dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show", "--scheduler-file", str(where))
        address = _address(where)
        for _ in range(WORKERS):
            dask("worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        yield replace(verb, arguments=(*verb.arguments, "--cluster", address))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _address(path: Path) -> str:
    """The address in the file that a scheduler writes when it is ready."""
    import json

    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            return str(json.loads(path.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.1)
    raise SystemExit("the Dask scheduler did not start")
