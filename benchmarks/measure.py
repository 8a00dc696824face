"""Two things timed in turn, because on a noisy machine only their ratio means anything."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.rows import ROWS
from graphsc.core.errors import NotFoundError

BUSY = 1.25  # a single thread that was not interrupted needs as much wall time as CPU time


@dataclass(frozen=True)
class Result:
    """One line of the table. `ratio` is compared with the bar; its direction is in `better`."""

    benchmark: str
    case: str
    ours_ms: float
    other_ms: float
    ours_cpu_ms: float
    other_cpu_ms: float
    ratio: float  # of minima
    median_ratio: float
    bar: float
    goal: float | None
    better: str  # "higher": speed-up over a peer; "lower": multiple of a floor
    against: str
    note: str = ""
    repeats: int = 0  # 0: the row says it in its note
    unit: str = "ms"

    @property
    def verdict(self) -> str:
        def reached(bar: float) -> bool:
            return self.ratio >= bar if self.better == "higher" else self.ratio <= bar

        if self.goal is not None and reached(self.goal):
            return "goal"
        return "pass" if reached(self.bar) else "MISSED"

    @property
    def bar_text(self) -> str:
        sign = "≥" if self.better == "higher" else "≤"
        return f"{sign} {self.bar:.3g}" + ("" if self.goal is None else f" ({self.goal:g})")

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True)
class Times:
    """Seconds of every repetition of one side."""

    wall: list[float]
    cpu: list[float]


def take_turns(
    sides: Sequence[Callable[[], object]], repeats: int, warm_up: int = 0, *, workers: bool = False
) -> list[Times]:
    """Time A B A B ..., or A B C A B C ...

    Args:
        sides: Called without arguments.
        repeats: Timed calls of each.
        warm_up: Calls of each before.
        workers: Processes stay alive after a call, and their CPU time counts.
    """
    for _ in range(warm_up):
        for side in sides:
            side()
    times = [Times([], []) for _ in sides]
    for _ in range(repeats):
        for side, taken in zip(sides, times, strict=True):
            before = _children_seconds(workers)
            cpu, wall = time.process_time(), time.perf_counter()
            side()
            taken.wall.append(time.perf_counter() - wall)
            own = time.process_time() - cpu
            taken.cpu.append(own + _children_seconds(workers) - before)
    return times


def interleave(
    benchmark: str,
    case: str,
    ours: Callable[[], object],
    other: Callable[[], object],
    *,
    bar: float,
    better: str,
    against: str,
    goal: float | None = None,
    repeats: int = 15,
    warm_up: int = 2,
    workers: bool = False,
    note: str = "",
) -> Result:
    """Time two sides in turn; the ratio of the minima counts, the ratio of the medians stands beside it."""
    times = take_turns((ours, other), repeats, warm_up, workers=workers)
    return compare(
        benchmark, case, *times, bar=bar, goal=goal, better=better, against=against, note=note
    )  # fmt: skip


def compare(
    benchmark: str,
    case: str,
    ours: Times,
    other: Times,
    *,
    bar: float,
    better: str,
    against: str,
    goal: float | None = None,
    note: str = "",
) -> Result:
    """The result of two sides that were timed in turn, by wall or CPU time as the row says in `ROWS`."""
    judged = ROWS[benchmark].judged_by

    def ratio_of(pick: Callable[[list[float]], float], kind: str) -> float:
        a, b = pick(getattr(ours, kind)), pick(getattr(other, kind))
        return b / a if better == "higher" else a / b

    by_wall, by_cpu = ratio_of(min, "wall"), ratio_of(min, "cpu")
    if judged == "cpu" and not 1 / BUSY <= by_wall / by_cpu <= BUSY:
        note = "; ".join(part for part in (note, f"by wall time {by_wall:.2f}") if part)
    return Result(
        benchmark, case, min(ours.wall) * 1e3, min(other.wall) * 1e3, min(ours.cpu) * 1e3,
        min(other.cpu) * 1e3, by_cpu if judged == "cpu" else by_wall, ratio_of(statistics.median, judged),
        bar, goal, better, against, note, len(ours.wall),
    )  # fmt: skip


def _children_seconds(alive: bool) -> float:
    """CPU seconds of processes that this one started: those that have ended and, on request, those alive."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime
    return seconds + live_descendant_seconds() if alive else seconds


def live_descendant_seconds(root: int | None = None, proc: Path = Path("/proc")) -> float:
    """CPU seconds of the living descendants of a process, in ticks of the kernel (10 ms).

    Raises:
        NotFoundError: The system has no /proc.
    """
    if not (proc / "stat").exists():
        raise NotFoundError(
            "the CPU time of worker processes cannot be read on this system", where=f"looked in {proc}"
        )
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # After the name, which may hold anything: state, parent, ..., utime, stime, cutime, cstime.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    family = {os.getpid() if root is None else root}
    grown = True
    while grown:
        new = {child for child, parent in parents.items() if parent in family} - family
        family, grown = family | new, bool(new)
    family.discard(os.getpid() if root is None else root)
    return sum(ticks[member] for member in family) / os.sysconf("SC_CLK_TCK")
