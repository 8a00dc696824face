"""`graphsc report` and `graphsc explore`: runs as HTML pages that need no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import check_file, check_model, check_page, check_source
from graphsc.cli.data import READ_AS_USUAL, JsonOption, ReaderOptions
from graphsc.cli.evaluate import JobsOption
from graphsc.cli.output import print_facts, print_json
from graphsc.cli.train import DeviceOption


def report(
    *runs: Annotated[
        Path, Parameter(help="One or more run folders, or the folder of results of 'graphsc compare'.")
    ],
    data: Annotated[
        str | None,
        Parameter(
            help="The graphs of the runs, if they have moved since training; by default where they were. For "
            "runs of 'graphsc finetune', new molecules to predict and draw."
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("report.html"),
    evaluate: Annotated[bool, Parameter(help="Evaluate runs that have no result yet.")] = True,
    maps: Annotated[bool, Parameter(help="Draw maps of the embeddings; the slowest part.")] = True,
    jobs: JobsOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Write an HTML report of one or more runs: results, protocol, curves, maps, settings.

    Example: graphsc report runs/mutag --out report.html
    """
    check_page(out)
    for run in runs:
        check_file(run, "run")
    from graphsc.experiments.run_report import runs_report
    from graphsc.report.html import write_report
    from graphsc.training.callbacks import reporter_for_terminal

    say = reporter_for_terminal().log
    page = runs_report(
        runs, data, reader=reading.reader, options=reading.options(), evaluate=evaluate, maps=maps,
        jobs=jobs or os.cpu_count() or 1, say=say,
    )  # fmt: skip
    write_report(out, page)
    facts = {"title": page.title, "result": page.lead, "bytes": out.stat().st_size, "written to": str(out)}
    if json:
        print_json(facts)
    else:
        print_facts("report", list(facts.items()))


def explore(
    source: Annotated[
        Path,
        Parameter(
            help="A run folder, also of 'graphsc finetune'; a file of vectors written by 'graphsc embed'; or "
            "a model with --data."
        ),
    ],
    /,
    *,
    data: Annotated[
        str | None,
        Parameter(
            help="The graphs of a file of vectors, of a model or of a run; by default those of the run."
        ),
    ] = None,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("explore.html"),
    map_: Annotated[
        Literal["tsne", "umap", "pca"],
        Parameter(name="--map", help="How embeddings are projected to two dimensions."),
    ] = "tsne",
    attributes: Annotated[
        Path | None,
        Parameter(help="A CSV file with a column 'id' and further columns to colour by; by default none."),
    ] = None,
    evaluate: Annotated[
        bool,
        Parameter(negative=(), help="Also predict classes, if the run has no result yet."),
    ] = False,
    most: Annotated[int, Parameter(help="Show at most this many graphs, chosen at random.")] = 20_000,
    seed: Annotated[int, Parameter(help="Seed of the projection and the random choice.")] = 0,
    device: DeviceOption = "auto",
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Write an interactive map of graphs and their embeddings, as one HTML file.

    SOURCE is a run folder, a file of vectors, or a model with the graphs to embed as --data.

    Example: graphsc explore graphsc-plus-molecules --data molecules.csv --out map.html
    """
    check_page(out)
    if source.suffix in (".npz", ".csv", ".parquet"):
        check_file(source, "such file")
    else:
        check_model(source)
    if data is not None:
        check_source(data, reading)
    if attributes is not None:
        check_file(attributes, "file of attributes")
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.explore import explore as make_explorer
    from graphsc.report.explorer import write_explorer

    if most < 1:
        raise ConfigError(f"--most is {most}", hint="use 1 or more")
    explorer = make_explorer(
        source, data, reader=reading.reader, options=reading.options(), way=map_, attributes=attributes,
        evaluate=evaluate, most=most, seed=seed, device=device,
    )  # fmt: skip
    write_explorer(out, explorer)
    drawings = explorer.drawings
    facts = {
        "graphs": len(explorer.ids),
        "left out": explorer.left_out,
        "drawn": 0 if drawings is None else int((drawings.node_counts > 0).sum()),
        "colours": ", ".join(colouring.title for colouring in explorer.colourings),
        "bytes": out.stat().st_size,
        "written to": str(out),
    }
    if json:
        print_json(facts)
    else:
        print_facts(explorer.title, list(facts.items()))
