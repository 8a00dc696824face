"""`make bench`: run the benchmarks, print one table, keep it in results.json and on the page."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

import torch

from benchmarks import figures
from benchmarks.measure import Result
from benchmarks.rows import ROWS
from graphsc.core.errors import MissingExtraError, NotFoundError
from graphsc.core.registry import nearest

THREADS = 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("run", "page"), default="run",
                        help="page: only rebuild the pages on speed from what is stored")  # fmt: skip
    parser.add_argument("--long", action="store_true", help="run the rows that take many minutes")
    parser.add_argument("--rows", help="only these, separated by commas")
    chosen = parser.parse_args(arguments)
    if chosen.what == "run":
        of_length = [name for name, row in ROWS.items() if row.long == chosen.long]
        rows = chosen.rows.split(",") if chosen.rows else of_length
        for row in rows:
            if row not in ROWS:
                print(f"there is no row {row!r}; {nearest(row, ROWS)}", file=sys.stderr)
                return 2
        run(rows)
    changed = figures.write_pages(figures.PAGES, figures.RESULTS)
    print(f"{figures.PAGES[0]} and its parts: {'rebuilt' if changed else 'nothing has changed'}")
    return 0


def run(rows: list[str]) -> None:
    """Run rows one after the other; each is stored when it is done, and skipped where its data is missing."""
    torch.set_num_threads(THREADS)
    facts = figures.machine_facts(THREADS)
    results: list[Result] = []
    for row in rows:
        wall, cpu = time.perf_counter(), sum(os.times()[:4])
        try:
            measured = importlib.import_module(f"benchmarks.{row}").run()
        except (NotFoundError, MissingExtraError, ModuleNotFoundError) as error:
            if str(getattr(error, "name", "")).startswith(("graphsc", "benchmarks")):
                raise  # a mistake in this tree, not a package that is not installed
            print(f"{row}: skipped: {error}", file=sys.stderr, flush=True)
            continue
        if not measured:
            print(f"{row}: skipped: none of its data sets was found", file=sys.stderr, flush=True)
            continue
        figures.store(row, facts, measured, figures.RESULTS)
        results += measured
        spent = f"{time.perf_counter() - wall:.0f} s, {sum(os.times()[:4]) - cpu:.0f} s of CPU time"
        print(f"{row}: {spent}", file=sys.stderr, flush=True)
    table = figures.terminal_table(results, THREADS)
    table.show()
    for note in table.notes:
        print(note)


if __name__ == "__main__":
    sys.exit(main())
