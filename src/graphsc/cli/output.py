"""Output of the verbs: tables on a terminal, tab-separated lines in a pipe, JSON, and progress on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Progress = Callable[[int, int | None], None]  # done, total
PROGRESS_INTERVAL = 10.0  # seconds between lines of progress where there is no terminal


def print_json(value: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on a terminal, or else tab-separated lines with a header."""
    if not sys.stdout.isatty():
        for row in [headers, *rows]:
            sys.stdout.write("\t".join(str(cell) for cell in row) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for position, header in enumerate(headers):
        numeric = bool(rows) and all(isinstance(row[position], (int, float)) for row in rows)
        table.add_column(header, justify="right" if numeric else "left")
    for row in rows:
        # Text, not str: a name such as "[red]" is not markup.
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, object]]) -> None:
    """Print one name and value per line; the title is shown on a terminal only."""
    if not sys.stdout.isatty():
        for name, value in facts:
            sys.stdout.write(f"{name}\t{value}\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(str(value)))
    Console().print(table)


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
    """Show a progress bar on a terminal, or else a line from time to time."""
    if not sys.stderr.isatty():
        yield _progress_lines(title, unit)
        return
    from rich.progress import MofNCompleteColumn

    with _bar(f"{title}, {unit}", MofNCompleteColumn()) as update:
        yield update


@contextmanager
def _bar(title: str, counts: ProgressColumn) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = ("{task.description}", BarColumn(), counts, TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)
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
