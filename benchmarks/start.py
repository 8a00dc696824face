"""How soon the command line answers, against importing NumPy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks.measure import Result, interleave


def _command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def run() -> list[Result]:
    return [
        interleave(
            "start", "graphsc " + " ".join(verb), _command("-m", "graphsc", *verb),
            _command("-c", "import numpy"),
            bar=3.0, better="lower", against='python -c "import numpy"', repeats=11,
        )
        for verb in (("--help",), ("data", "check", "mutag"))
    ]  # fmt: skip
