"""How verbs speak: a table on a terminal, plain lines in a pipe, JSON for machines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphsc.data.datasets.download import Progress
    from graphsc.data.molecules.conversion import Progress as Counted

SAY_EVERY = 10.0  # seconds between lines of progress where there is no terminal


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A ruled table on a terminal; tab-separated lines with a header otherwise."""
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
        # Text, not str: a name like "[red]" is data, not markup.
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, object]]) -> None:
    """Name and value, a line each."""
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
    """A progress bar for bytes, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting_bar(title: str, unit: str) -> Iterator[Counted]:
    """A progress bar for so many of so many on a terminal; a line now and then otherwise."""
    if not sys.stderr.isatty():
        said = started = time.monotonic()
        first: int | None = None  # what an earlier call had done says nothing of this one's speed

        def say(done: int, total: int) -> None:
            nonlocal said, started, first
            now = time.monotonic()
            if first is None:
                first, started = done, now
            if now - said >= SAY_EVERY:
                said = now
                left = (now - started) * (total - done) / (done - first) if done > first else None
                rest = "" if left is None else f", {_time(left)} left"
                sys.stderr.write(f"{title}: {done:,} of {total:,} {unit}{rest}\n")
                sys.stderr.flush()

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(f"{title}, {unit}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _time(seconds: float) -> str:
    """Hours, minutes and seconds as a clock has them."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
