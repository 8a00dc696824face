"""`make load`: very many graphs through a verb, stopped half way and gone on with; memory is measured."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Figures = dict[str, object]


@dataclass(frozen=True)
class Load:
    """A command on a file of a chosen number of graphs, and where to see how far it has come.

    `prepare` makes what the command starts from; `kept` counts the chunks that it has kept on its way;
    `read` gives the number in every row written, and figures of its own.
    """

    prepare: Callable[[Path, int], None]
    arguments: tuple[str, ...]
    source: str
    target: str
    chunk: int
    kept: Callable[[Path], int]
    read: Callable[[Path, int], tuple[np.ndarray, Figures]]


def run_load(load: Load, graphs: int) -> Figures:
    """Figures of one call on `graphs` graphs, stopped once on its way; memory is that of the larger call."""
    home = Path(tempfile.mkdtemp(prefix="load-"))
    try:
        load.prepare(home, graphs)
        began = time.monotonic()
        first = _start(home, *load.arguments)
        while load.kept(home) * load.chunk * 2 < graphs:
            if first.poll() is not None:
                raise SystemExit("it ended before it could be stopped; ask for more graphs")
            time.sleep(0.05)
        first.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(first.pid, 0)
        stopped, kept = os.waitstatus_to_exitcode(status), load.kept(home)
        second = _start(home, *load.arguments)
        _, status, more = os.wait4(second.pid, 0)
        seconds = time.monotonic() - began
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"the second call did not end well:\n{(home / 'said.log').read_text()}")
        numbers, own = load.read(home / load.target, graphs)
        return {
            "graphs": graphs,
            "format": load.target.rpartition(".")[2],
            "first_exit_code": stopped,
            "chunks_kept_at_the_stop": kept,
            "lines_with_the_time_left": len(re.findall(r" left$", (home / "said.log").read_text(), re.M)),
            "rows": len(numbers),
            "rows_missing": graphs - len(np.unique(numbers)),
            "rows_doubled": len(numbers) - len(np.unique(numbers)),
            "in_order": bool((np.diff(numbers) == 1).all()),
            **own,
            "left_over": sum(path.name.startswith(".") for path in home.iterdir()),
            "peak_mb": max(usage.ru_maxrss, more.ru_maxrss) // 1024,
            "seconds": round(seconds),
            "input_mb": (home / load.source).stat().st_size // 2**20,
            "output_mb": (home / load.target).stat().st_size // 2**20,
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)


def went_well(found: Figures) -> bool:
    """Stopped as asked, and every row there once, in its place, marked if it should be; nothing else left."""
    wrong = ("rows_missing", "rows_doubled", "rows_marked_wrongly", "left_over")
    return (
        not any(found.get(key) for key in wrong)
        and found["in_order"] is True
        and found["first_exit_code"] == 143
    )


def run(home: Path, *arguments: str) -> None:
    """A command that nobody stops."""
    if _start(home, *arguments).wait():
        raise SystemExit(f"{arguments[0]} did not end well:\n{(home / 'said.log').read_text()}")


def _start(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "graphsc", *arguments]
    with open(home / "said.log", "ab") as said:
        return subprocess.Popen(command, cwd=home, env=environment, stdout=said, stderr=said)
