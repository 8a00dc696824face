"""`graphsc runs`: the runs of a folder, in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.data import JsonOption
from graphsc.cli.output import print_json, print_table


def runs(
    folder: Annotated[Path, Parameter(help="The folder to look in, with all folders below it.")] = Path(
        "runs"
    ),
    /,
    *,
    json: JsonOption = False,
) -> None:
    """List the runs of a folder: data, method, settings that differ, state, score and date.

    Example: graphsc runs runs
    """
    from graphsc.experiments.run_list import differing_settings, list_runs

    found = list_runs(folder)
    differing = differing_settings(found)
    if json:
        print_json(
            [
                {
                    "run": str(run.path), "data": run.data, "method": run.method, "seed": run.seed,
                    "differs": text, "settings": dict(run.settings), "state": run.state, "score": run.score,
                    "date": run.date,
                }
                for run, text in zip(found, differing, strict=True)
            ]
        )  # fmt: skip
        return
    rows = [
        (run.path, run.data, run.method, "-" if run.seed is None else run.seed, text or "-", run.state,
         run.score or "-", run.date)
        for run, text in zip(found, differing, strict=True)
    ]  # fmt: skip
    headers = ("run", "data", "method", "seed", "settings that differ", "state", "score", "date")
    print_table(f"{len(rows)} runs in {folder}", headers, rows)
