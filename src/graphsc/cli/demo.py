"""`graphsc demo`: a small comparison on real graphs, in a minute or two."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphsc.cli.checks import check_source
from graphsc.cli.data import READ_AS_USUAL, ReaderOptions
from graphsc.cli.evaluate import JobsOption

if TYPE_CHECKING:
    from graphsc.experiments.comparison import Comparison


def demo(
    source: Annotated[str | None, Parameter(help="Graphs with class labels; by default MUTAG.")] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for runs, results and the report.")] = Path("demo"),
    seeds: Annotated[int, Parameter(help="Repetitions, each with its own initialisation and folds.")] = 5,
    jobs: JobsOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
) -> None:
    """Compare GraphSC with baselines on MUTAG and write an HTML report; takes a minute or two.

    Example: graphsc demo --out demo
    """
    if source is not None:
        check_source(source, reading)
    from graphsc.cli.output import print_facts
    from graphsc.experiments.demo import run_demo
    from graphsc.training.callbacks import reporter_for_terminal

    result = run_demo(
        out, data=source, reader=reading.reader, options=reading.options(), seeds=seeds,
        jobs=jobs or os.cpu_count() or 1, reporter=reporter_for_terminal(),
    )  # fmt: skip
    print_facts(f"{result.collection.name}: statistics", result.collection.describe().facts())
    _print_comparison(result.comparison)
    sys.stdout.write(f"report: {result.report}\n")


def _print_comparison(comparison: Comparison) -> None:
    """Print a table with borders even in a pipe: the demo is made for people."""
    from rich.console import Console
    from rich.table import Table

    from graphsc.evaluation.significance import verdict
    from graphsc.experiments.tables import comparison_notes

    console = Console(width=None if sys.stdout.isatty() else 100)
    for column in comparison.columns:
        table = Table(title=f"{column}: accuracy in %", title_justify="left")
        table.add_column("method")
        for header in ("mean", "± over seeds", "± over folds", "vs untrained", "published"):
            table.add_column(header, justify="right")
        for method in comparison.methods:
            cell = comparison.cells.get((method, column))
            if cell is None:
                continue
            difference = "-"
            if cell.difference is not None and cell.p_value is not None:
                difference = f"{cell.difference:+.1f}, {verdict(cell.p_value)}"
            table.add_row(
                method,
                f"{cell.summary.mean:.1f}",
                f"{cell.summary.over_seeds_ddof1:.1f}" if cell.summary.seeds > 1 else "-",
                f"{cell.summary.over_folds_ddof0:.1f}",
                difference,
                f"{cell.published[0]:.1f}" if cell.published else "-",
            )
        console.print(table)
    console.print(f"[dim]{comparison_notes(comparison)[0]}[/dim]", highlight=False)
