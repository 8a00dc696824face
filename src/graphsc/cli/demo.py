"""`graphsc demo`: what the package does, on real graphs, in a minute or two."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphsc.cli.evaluate import JobsOption

if TYPE_CHECKING:
    from graphsc.experiments.comparison import Comparison


def demo(
    source: Annotated[str | None, Parameter(help="Other graphs than MUTAG, with class labels.")] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for runs, results and the report.")] = Path("demo"),
    seeds: Annotated[int, Parameter(help="Whole repetitions.")] = 5,
    jobs: JobsOption = None,
) -> None:
    """Compare GraphSC with its yardsticks on real molecules, and write a report of one page."""
    from graphsc.cli.output import print_facts
    from graphsc.experiments.demo import run_demo
    from graphsc.training.callbacks import reporter_for_terminal

    made = run_demo(
        out, data=source, seeds=seeds, jobs=jobs or os.cpu_count() or 1, say=reporter_for_terminal().log
    )
    print_facts(f"{made.collection.name}: statistics", made.collection.describe().facts())
    show(made.comparison)
    sys.stdout.write(f"report: {made.report}\n")


def show(found: Comparison) -> None:
    """The comparison as a ruled table, on a terminal or not: it is what the demo is for."""
    from rich.console import Console
    from rich.table import Table

    from graphsc.evaluation.significance import verdict
    from graphsc.experiments.table import notes

    console = Console(width=None if sys.stdout.isatty() else 100)
    for column in found.columns:
        table = Table(title=f"{column}: accuracy in %", title_justify="left")
        table.add_column("method")
        for head in ("mean", "± over seeds", "± over folds", "against untrained", "published"):
            table.add_column(head, justify="right")
        for method in found.methods:
            cell = found.cells.get((method, column))
            if cell is None:
                continue
            against = "-"
            if cell.difference is not None and cell.p_value is not None:
                against = f"{cell.difference:+.1f}, {verdict(cell.p_value)}"
            table.add_row(
                method,
                f"{cell.summary.mean:.1f}",
                f"{cell.summary.over_seeds_ddof0:.1f}" if cell.summary.seeds > 1 else "-",
                f"{cell.summary.over_folds_ddof0:.1f}",
                against,
                f"{cell.published[0]:.1f}" if cell.published else "-",
            )
        console.print(table)
    console.print(f"[dim]{notes(found)[0]}[/dim]", highlight=False)
