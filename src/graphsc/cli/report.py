"""`graphsc report`: runs as one page, with all that is needed to believe and to repeat them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.data import JsonOption
from graphsc.cli.evaluate import JobsOption


def report(
    *runs: Annotated[Path, Parameter(help="One or more run folders.")],
    data: Annotated[
        str | None, Parameter(help="The runs' graphs, where they cannot find them themselves.")
    ] = None,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("report.html"),
    judge: Annotated[bool, Parameter(help="Judge runs that have no result yet.")] = True,
    maps: Annotated[bool, Parameter(help="Draw maps before and after training; the slowest part.")] = True,
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Write runs as one HTML page: results, protocol, curves, maps, scores by class, settings."""
    from graphsc.cli.output import print_facts, print_json
    from graphsc.experiments.run_report import runs_report
    from graphsc.report.page import write_report
    from graphsc.training.reporter import reporter_for_terminal

    say = reporter_for_terminal().say
    page = runs_report(runs, data, judge=judge, maps=maps, jobs=jobs or os.cpu_count() or 1, say=say)
    write_report(out, page)
    facts = {"title": page.title, "result": page.lead, "bytes": out.stat().st_size, "written to": str(out)}
    if json:
        print_json(facts)
        return
    print_facts("report", list(facts.items()))
