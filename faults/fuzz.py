"""`make fuzz`: mutated real files to every reader; each is read, or refused in one sentence."""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from math import inf
from pathlib import Path

from faults import figures
from faults.guard import SECONDS, Guard, HungError, limit_memory
from faults.target import Target
from faults.targets import TARGETS

INPUTS = 20_000
LONGEST = 1_000  # characters of an error that a person would still read


Figures = dict[str, dict[str, object]]


def fuzz(names: list[str], inputs: int, seed: int, keep: Path, seconds: float) -> Figures:
    """Every target with this many mutated inputs; figures by name."""
    crash: dict[str, object] = {"inputs": 0, "survivors": 0, "findings": 1}
    return _each(names, "fuzz", ("fuzz-one", inputs, seed, keep), seconds, crash)


def damage(names: list[str], flips: int, seed: int, keep: Path, seconds: float) -> Figures:
    """Every kind of stored file with bits flipped and cut short; figures by name."""
    crash: dict[str, object] = dict.fromkeys(figures.COLUMNS["bits"], 0) | {"errors": 1}
    return _each(names, "bits", ("damage-one", flips, seed, keep), seconds, crash)


def _each(
    names: list[str], kind: str, call: tuple[str, int, int, Path], seconds: float, crash: dict[str, object]
) -> Figures:
    """Each name in a process of its own, so that even a crash is a finding."""
    verb, *arguments = map(str, call)
    found: Figures = {}
    for name in names:
        command = [sys.executable, "-m", "faults", verb, name, *arguments, "--seconds", str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 0:
            found[name] = json.loads(done.stdout.splitlines()[-1])
        else:
            found[name] = crash | {"crash": done.returncode}
        figures.store(kind, figures.load(kind) | {name: found[name]})  # names can be run one by one
        said = "  ".join(f"{key} {value}" for key, value in found[name].items())
        print(f"{name:<15} {said}", flush=True)
    return found


def fuzz_one(name: str, inputs: int, seed: int, keep: Path, seconds: float = inf) -> dict[str, object]:
    """Feed one target for so long; every finding is kept as a folder with its files and traceback."""
    target = TARGETS[name]
    home = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    guard, findings, survivors, slowest = Guard(), 0, 0, 0.0
    try:
        files = target.seed(home)
        case = home / "case"
        _write(case, files)
        target.read(case)  # warm: lazy imports write and map, readers must not
        limit_memory()
        started, armed = time.monotonic(), -inf
        done = 0
        while done < inputs and time.monotonic() - started < seconds:
            number, done = done, done + 1
            draw = random.Random(f"{seed}/{name}/{number}")
            _write(case, target.change(files, draw))
            began = time.monotonic()
            if began - armed > SECONDS:  # not for every input: it starts a thread each time
                faulthandler.dump_traceback_later(3 * SECONDS, exit=True)  # for what no signal wakes
                armed = began
            survived, problem = _read(target, case, guard)
            slowest = max(slowest, time.monotonic() - began)
            survivors += survived
            if problem is not None:
                findings += 1
                _keep(keep / f"{name}-{number}", case, problem)
        faulthandler.cancel_dump_traceback_later()
        lasted = time.monotonic() - started
    finally:
        shutil.rmtree(home, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "seed": seed, "inputs": done, "survivors": survivors, "findings": findings,
        "seconds": round(lasted, 1), "slowest_s": round(slowest, 2), "peak_mb": peak,
    }  # fmt: skip


def _read(target: Target, case: Path, guard: Guard) -> tuple[bool, str | None]:
    """Whether the files were read, and what is wrong with how the reader behaved."""
    from graphsc.core.errors import GraphscError

    survived, problem = False, None
    try:
        with guard.watch():
            target.read(case)
        survived = True
    except GraphscError as error:
        text = str(error)
        if "\n" in text or not text or len(text) > LONGEST:
            problem = f"not one readable sentence ({len(text)} characters): {text[:200]!r}"
    except (Exception, HungError):
        problem = traceback.format_exc()
    if guard.acts:
        problem = f"{problem or ''}\nforbidden: {guard.acts}"
    return survived, problem


def _write(case: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir()
    for name, content in files.items():
        (case / name).write_bytes(content)


def _keep(folder: Path, case: Path, problem: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(case, folder)
    (folder / "problem.txt").write_text(problem)
