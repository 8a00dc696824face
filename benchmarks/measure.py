"""Two things timed in turn, because on a noisy machine only their ratio means anything."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Result:
    """One line of the table. `ratio` is what the bar is about; its direction is in `better`."""

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

    @property
    def verdict(self) -> str:
        def reached(bar: float) -> bool:
            return self.ratio >= bar if self.better == "higher" else self.ratio <= bar

        if self.goal is not None and reached(self.goal):
            return "goal"
        return "pass" if reached(self.bar) else "MISSED"

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"verdict": self.verdict}


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
    note: str = "",
) -> Result:
    """Time A B A B ...; the ratio of the minima counts, the ratio of the medians stands beside it."""
    for _ in range(warm_up):
        ours()
        other()
    walls: tuple[list[float], list[float]] = ([], [])
    cpus: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for side, call in enumerate((ours, other)):
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            walls[side].append(time.perf_counter() - wall)
            cpus[side].append(time.process_time() - cpu)

    def ratio_of(pick: Callable[[list[float]], float]) -> float:
        one, two = pick(walls[0]), pick(walls[1])
        return two / one if better == "higher" else one / two

    return Result(
        benchmark, case, min(walls[0]) * 1e3, min(walls[1]) * 1e3, min(cpus[0]) * 1e3, min(cpus[1]) * 1e3,
        ratio_of(min), ratio_of(statistics.median), bar, goal, better, against, note,
    )  # fmt: skip
