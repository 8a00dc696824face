"""`make soak`: start, kill at a random moment, start again; the end must be the undisturbed one."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from faults import figures
from faults.cluster import cluster_of
from faults.fork import kill_after, learn_modules, left_of, start, wait
from faults.state import damaged_in, files_in
from faults.verbs import VERBS, Verb, write_inputs

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
    processes_left: int = 0
    seconds: float = 0.0


def soak(names: list[str], kills: int, seed: int, seconds: float) -> figures.Stored:
    """At least `kills` kills a verb, unless its share of what is left of `seconds` is over before.

    All verbs together replace what is stored; some of them take the places of their rows in it.
    """
    import torch

    from graphsc.training import trainer as loop

    torch.set_num_threads(1)
    loop.SAVE_EVERY = SAVE_EVERY
    found: figures.Stored = {}
    others = {} if set(names) == set(VERBS) else figures.load("soak")
    until = time.monotonic() + seconds
    for place, name in enumerate(names):
        share = (until - time.monotonic()) / (len(names) - place)
        home = Path(tempfile.mkdtemp(prefix=f"soak-{name}-"))
        try:
            with cluster_of(VERBS[name], home) as verb:
                count = _soak(verb, home, kills, random.Random(f"{seed}/{name}"), share)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        found[name] = {**vars(count), "seconds": round(count.seconds, 1), "seed": seed}
        figures.store("soak", others | found)  # a verb is done when it is done
        print(f"{name:<15} " + "  ".join(f"{key} {value}" for key, value in found[name].items()), flush=True)
    return found


def _soak(verb: Verb, home: Path, kills: int, draw: random.Random, seconds: float) -> Count:
    count, started = Count(), time.monotonic()
    begin = home / "begin"
    begin.mkdir()
    write_inputs(begin)
    for arguments in verb.prepare:
        wait(start(arguments, begin))
    outcomes = []
    for folder in (home / "first", home / "whole"):  # the first one's time goes into imports
        shutil.copytree(begin, folder)
        began = time.monotonic()
        wait(start(verb.arguments, folder))
        lasts = time.monotonic() - began
        learn_modules(folder)
        outcomes.append(verb.outcome(folder))
    expected, files = outcomes[1], files_in(home / "whole")
    if outcomes[0] != expected:
        raise SystemExit("two undisturbed calls have two outcomes, so there is nothing to compare with")
    while count.kills < kills and time.monotonic() - started < seconds:
        folder = home / f"round-{count.rounds}"
        shutil.copytree(begin, folder)
        killed = 0
        while killed < KILLS_A_ROUND:
            pid = start(verb.arguments, folder)
            if not kill_after(pid, draw.uniform(0.0, 1.1 * lasts)):
                break
            killed += 1
            count.processes_left += left_of(pid)
            count.damaged += len(damaged_in(folder))
        wait(start(verb.arguments, folder))
        count.kills += killed
        count.resumes += killed
        count.rounds += 1
        count.mismatches += verb.outcome(folder) != expected
        found = files_in(folder)
        if found != files:
            count.left_over += 1
            print(
                f"left over: {sorted({*found} ^ {*files})}, {len(found)} files, not {len(files)}", flush=True
            )
        shutil.rmtree(folder)
    count.seconds = time.monotonic() - started
    return count
