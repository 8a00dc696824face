"""`graphsc report`: runs as one page, with all that is needed to believe and to repeat them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

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
    from graphsc.report.html import write_report
    from graphsc.training.callbacks import reporter_for_terminal

    say = reporter_for_terminal().log
    page = runs_report(runs, data, judge=judge, maps=maps, jobs=jobs or os.cpu_count() or 1, say=say)
    write_report(out, page)
    facts = {"title": page.title, "result": page.lead, "bytes": out.stat().st_size, "written to": str(out)}
    if json:
        print_json(facts)
        return
    print_facts("report", list(facts.items()))


# `graphsc explore`: a collection as a map to walk in, in one file.


def explore(
    source: Annotated[Path, Parameter(help="A run's folder, or vectors as 'graphsc embed' writes them.")],
    /,
    *,
    data: Annotated[
        str | None, Parameter(help="The graphs, for a file of vectors or a run that cannot find them.")
    ] = None,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("explore.html"),
    map_: Annotated[
        Literal["tsne", "umap", "pca"], Parameter(name="--map", help="How vectors become a map.")
    ] = "tsne",
    attributes: Annotated[
        Path | None, Parameter(help="A CSV file with a column id; its others can be coloured by.")
    ] = None,
    judge: Annotated[
        bool, Parameter(negative=(), help="Predict classes, where the run has no result yet.")
    ] = False,
    most: Annotated[int, Parameter(help="Graphs to show; of more, a random sample.")] = 20_000,
    seed: Annotated[int, Parameter(help="Decides the map and the sample.")] = 0,
    json: JsonOption = False,
) -> None:
    """Write an interactive map of a collection: one HTML file that needs no network."""
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.explore import explore as make
    from graphsc.report.explorer import write_explorer

    if most < 1:
        raise ConfigError(f"a map of {most} graphs", hint="show 1 or more")
    found = make(source, data, way=map_, attributes=attributes, judge=judge, most=most, seed=seed)
    write_explorer(out, found)
    drawn = 0 if found.drawings is None else int((found.drawings.node_counts > 0).sum())
    facts = {
        "graphs": len(found.ids),
        "drawn": drawn,
        "colours": ", ".join(colouring.title for colouring in found.colourings),
        "bytes": out.stat().st_size,
        "written to": str(out),
    }
    if json:
        print_json(facts)
        return
    print_facts(found.title, list(facts.items()))
