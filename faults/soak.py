"""`make soak`: start, kill at a random moment, start again; the end must be the undisturbed one.

Commands run in forks of this process, whose imports are done: a restart costs nothing, so that kills fall
into the work and not into the start of Python.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from faults import figures
from faults.verbs import SPACE, VERBS, Verb

KILLS_A_ROUND = 6
SAVE_EVERY = 0.05  # seconds: many checkpoints within an epoch, so that kills meet their writing


@dataclass
class Count:
    """What was done to one verb, and what was wrong afterwards."""

    rounds: int = 0
    kills: int = 0
    resumes: int = 0
    damaged: int = 0
    left_over: int = 0
    mismatches: int = 0
    seconds: float = 0.0


def soak(names: list[str], kills: int, seed: int, seconds: float) -> dict[str, dict[str, object]]:
    """At least `kills` kills a verb, unless its share of `seconds` is over before."""
    import torch

    from graphsc.training import loop

    torch.set_num_threads(1)
    loop.SAVE_EVERY = SAVE_EVERY
    found = {}
    for name in names:
        home = Path(tempfile.mkdtemp(prefix=f"soak-{name}-"))
        try:
            count = _soak(VERBS[name], home, kills, random.Random(f"{seed}/{name}"), seconds / len(names))
        finally:
            shutil.rmtree(home, ignore_errors=True)
        found[name] = {**vars(count), "seconds": round(count.seconds, 1)}
        row = name if seed == 0 else f"{name}, seed {seed}"
        figures.store("soak", figures.load("soak") | {row: found[name]})  # a verb is done when it is done
        print(f"{name:<9} " + "  ".join(f"{key} {value}" for key, value in found[name].items()), flush=True)
    return found


def _soak(verb: Verb, home: Path, kills: int, draw: random.Random, seconds: float) -> Count:
    count, started = Count(), time.monotonic()
    start = home / "start"
    start.mkdir()
    (start / "space.yaml").write_text(SPACE)
    for arguments in verb.prepare:
        _wait(_start(arguments, start))
    whole = home / "whole"
    shutil.copytree(start, whole)
    began = time.monotonic()
    _wait(_start(verb.arguments, whole))
    lasts = time.monotonic() - began
    expected, files = verb.outcome(whole), _files(whole)
    while count.kills < kills and time.monotonic() - started < seconds:
        folder = home / f"round-{count.rounds}"
        shutil.copytree(start, folder)
        killed = 0
        while killed < KILLS_A_ROUND:
            pid = _start(verb.arguments, folder)
            time.sleep(draw.uniform(0.0, 1.1 * lasts))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if not os.WIFSIGNALED(status):
                break  # it was done before
            killed += 1
            count.damaged += len(_damaged(folder))
        count.resumes += killed
        count.kills += killed
        _wait(_start(verb.arguments, folder))
        count.rounds += 1
        count.mismatches += verb.outcome(folder) != expected
        found = _files(folder)
        if found != files:
            count.left_over += 1
            print(
                f"left over: {sorted({*found} ^ {*files})}, {len(found)} files, not {len(files)}", flush=True
            )
        shutil.rmtree(folder)
    count.seconds = time.monotonic() - started
    return count


def _start(arguments: tuple[str, ...], folder: Path) -> int:
    """The command in a fork, in its folder, in silence."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.chdir(folder)
        silent = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        from graphsc.cli.main import run

        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait(pid: int) -> None:
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"a command that nobody killed ended with status {status}")


def _files(folder: Path) -> list[str]:
    """Names of all files; which step the checkpoint before the last is of is the clock's to say."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(re.sub(r"checkpoints/step-\d+", "checkpoints/step", name) for name in names)


def _damaged(folder: Path) -> list[Path]:
    """Files under their final names that cannot be read; there must be none after any kill."""
    from graphsc.core.config import read_config
    from graphsc.core.errors import GraphscError
    from graphsc.core.tensors import load_tensors
    from graphsc.data.collection import GraphCollection

    bad = []
    for path in folder.rglob("*"):
        if (
            path.name.startswith(".")
            or not path.is_file()
            or any(p.name.startswith(".") for p in path.parents)
        ):
            continue
        try:
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".yaml":
                read_config(path)
            elif path.suffix == ".safetensors" and path.name.startswith("graphs"):
                GraphCollection.open(path)
            elif path.suffix == ".safetensors":
                kind = {"checkpoints": "checkpoint", "embeddings": "embeddings"}.get(
                    path.parent.name, "model"
                )
                load_tensors(path, kind)
        except (ValueError, GraphscError):
            bad.append(path)
    return bad
