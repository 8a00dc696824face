"""Progress on stderr: a bar on a terminal, a line from time to time elsewhere; both with the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Progress = Callable[[int, int | None], None]  # done, total
PROGRESS_INTERVAL = 10.0  # seconds between lines of progress where there is no terminal


@contextmanager
def transfer_bar(title: str) -> Iterator[Progress | None]:
    """Show a progress bar of downloaded bytes, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import DownloadColumn

    with _bar(title, DownloadColumn()) as update:
        yield update


@contextmanager
def counting_bar(title: str, unit: str) -> Iterator[Progress]:
    """Show a progress bar on a terminal, or else a line from time to time.

    The first report says how much an earlier, interrupted call has done. The time left is estimated from what
    is done after it. On a terminal, other lines on stderr appear above the bar.
    """
    if not sys.stderr.isatty():
        yield _progress_lines(title, unit)
        return
    from rich.progress import MofNCompleteColumn

    with _bar(f"{title}, {unit}", MofNCompleteColumn()) as update:
        yield update


@contextmanager
def _bar(title: str, counts: ProgressColumn) -> Iterator[Progress]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), counts, TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(escape(title), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _progress_lines(title: str, unit: str) -> Progress:
    printed = started = time.monotonic()
    first: int | None = None  # done by an earlier, interrupted command: not part of this one's speed

    def update(done: int, total: int | None) -> None:
        nonlocal printed, started, first
        now = time.monotonic()
        if first is None:
            first, started = done, now
        if total is not None and now - printed >= PROGRESS_INTERVAL:
            printed = now
            left = (now - started) * (total - done) / (done - first) if done > first else None
            time_left = "" if left is None else f", {_format_time(left)} left"
            sys.stderr.write(f"{title}: {done:,} of {total:,} {unit}{time_left}\n")
            sys.stderr.flush()

    return update


def _format_time(seconds: float) -> str:
    """As H:MM:SS."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
