"""`make bench`: run the benchmarks, print one table, keep it in results.json."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result
from graphsc.core.errors import NotFoundError

SHORT = (
    "sparse",
    "encoder",
    "views",
    "step",
    "epoch",
    "pretrain",
    "methods",
    "transfer",
    "probe",
    "molecules",
    "growth",
    "start",
)
LONG = ("read", "wl", "whole")
RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--long", action="store_true", help="run the rows that take minutes")
    parser.add_argument("--rows", help="only these, separated by commas")
    arguments = parser.parse_args()
    rows = arguments.rows.split(",") if arguments.rows else (LONG if arguments.long else SHORT)
    torch.set_num_threads(1)
    results: list[Result] = []
    for row in rows:
        try:
            results += importlib.import_module(f"benchmarks.{row}").run()
        except NotFoundError as error:
            print(f"{row}: skipped: {error}", file=sys.stderr)
    _print(results)
    _store(results)


def _print(results: list[Result]) -> None:
    table = Table(title=f"Benchmarks, 1 thread of {os.cpu_count()} cores")
    for header in (
        "benchmark",
        "case",
        "ours",
        "CPU",
        "against",
        "",
        "CPU",
        "ratio",
        "median",
        "bar",
        "verdict",
    ):
        table.add_column(header, justify="left" if header in ("benchmark", "case", "") else "right")
    for result in results:
        sign = "≥" if result.better == "higher" else "≤"
        goal = "" if result.goal is None else f" ({result.goal:g})"
        table.add_row(
            result.benchmark, result.case, f"{result.ours_ms:.2f}", f"{result.ours_cpu_ms:.1f}",
            f"{result.other_ms:.2f}", result.against, f"{result.other_cpu_ms:.1f}", f"{result.ratio:.2f}",
            f"{result.median_ratio:.2f}", f"{sign} {result.bar:.3g}{goal}", result.verdict,
        )  # fmt: skip
    console = Console(width=190)
    console.print(table)
    for result in results:
        if result.note:
            console.print(f"{result.benchmark}, {result.case}: {result.note}", markup=False)


def _store(results: list[Result]) -> None:
    """Replace the rows that were run and keep the others, so that short and long runs share a file."""
    kept = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
    names = {result.benchmark for result in results}
    merged = [row for row in kept if row["benchmark"] not in names]
    merged += [result.to_json() for result in results]
    document = {
        "unit": "milliseconds unless a row says otherwise",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "results": merged,
    }
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")


main()
