"""`graphsc similar`, `outliers` and `cluster`: questions about embeddings, with drawings on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphsc.cli.checks import check_file, check_model, check_page, check_source, check_typed_ids
from graphsc.cli.data import READ_AS_USUAL, FullOption, JsonOption, ReaderOptions
from graphsc.cli.output import print_facts, print_json
from graphsc.cli.train import DeviceOption
from graphsc.core.errors import ConfigError

if TYPE_CHECKING:
    from graphsc.core.tables import Table
    from graphsc.experiments.explore import Embedded
    from graphsc.report.html import Report

VECTORS = (".npz", ".csv", ".parquet")
TABLES = (".csv", ".tsv", ".smi", ".sdf", ".parquet", ".gz")
SourceArgument = Annotated[
    Path,
    Parameter(help="A run folder, a file of vectors written by 'graphsc embed', or a model with --data."),
]
DataOption = Annotated[
    str | None,
    Parameter(help="The graphs of a file of vectors, of a model or of a run; by default those of the run."),
]
TableOption = Annotated[
    Path | None,
    Parameter(help="Also write the whole table to FILE.csv; by default only the page is written."),
]
NeighboursOption = Annotated[int, Parameter(name=["--neighbours", "-k"], help="Nearest graphs that count.")]


def similar(
    source: SourceArgument,
    query: Annotated[
        str | None,
        Parameter(help="A SMILES string or a table of molecules to start from in LIBRARY; by default none."),
    ] = None,
    library: Annotated[
        str | None,
        Parameter(
            help="The molecules to search: a table, a .smi or .sdf file, or vectors of 'graphsc embed' by "
            "the same model; by default none."
        ),
    ] = None,
    /,
    *,
    to: Annotated[
        str | None, Parameter(help="Ids of the graphs to start from, with commas; by default all graphs.")
    ] = None,
    queries: Annotated[
        str | None,
        Parameter(
            help="Other graphs to start from, embedded with the same model, or a second file of vectors; by "
            "default none."
        ),
    ] = None,
    data: DataOption = None,
    neighbours: Annotated[
        int, Parameter(name=["--neighbours", "--top", "-k"], help="Nearest graphs of each query.")
    ] = 10,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("similar.html"),
    table: TableOption = None,
    device: DeviceOption = "auto",
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: FullOption = False,
) -> None:
    """Find the graphs that are most similar to some, by their embeddings, and draw them.

    With QUERY and LIBRARY, molecules of the library that are nearest to the query: the search is exact, and
    memory does not grow with the library. Otherwise graphs of one source, which stay in memory.

    Example: graphsc similar graphsc-plus-molecules hits.csv library.csv --top 10 --out similar.html
    """
    check_page(out)
    if query is not None:
        _similar_in_library(
            source, query, library, to, queries, data, neighbours, out, table, device, reading, json, full
        )
        return
    if queries is not None:
        check_source(queries, ReaderOptions())
    _check_paths(source, data, reading, table)
    if to is not None:
        check_typed_ids(to, source, data, reading)
    embedded = _embedded(source, data, reading, device)
    from graphsc.core.ids import split_ids
    from graphsc.experiments.explore import embeddings_of
    from graphsc.experiments.similarity import find_similar, similar_page

    ids = split_ids(to or "", set(map(str, embedded.ids)))
    others = None
    if queries is not None:
        # Vectors are compared with vectors; a model embeds both.
        if source.suffix in VECTORS:
            others = embeddings_of(queries)
        else:
            others = embeddings_of(source, queries, device=device)
    found = find_similar(embedded, to=ids, queries=others, k=neighbours)
    facts: dict[str, object] = {
        "graphs": len(embedded.ids),
        "queries": len(found.queries.ids),
        "left out": embedded.left_out,
    }
    if others is not None:
        facts["queries left out"] = others.left_out
    _write(facts, similar_page(found), found.table(), out, table, json, full)


def _similar_in_library(
    source: Path,
    query: str,
    library: str | None,
    to: str | None,
    queries: str | None,
    data: str | None,
    top: int,
    out: Path,
    table: Path | None,
    device: str,
    reading: ReaderOptions,
    json: bool,
    full: bool,
) -> None:
    """Check the paths before torch is imported, search, and write the page."""
    if library is None:
        raise ConfigError(
            "which library is to be searched?",
            hint=f"graphsc similar MODEL QUERY LIBRARY --top 10; for a graph of {source}: --to {query}",
        )
    if to is not None or queries is not None:
        raise ConfigError("QUERY takes the place of --to and --queries", hint="leave them out")
    if top < 1:
        raise ConfigError(f"--top is {top}", hint="use 1 or more")
    check_model(source)
    if Path(library).suffix == ".npz":
        check_file(Path(library), "such file")
    else:
        check_source(library, ReaderOptions())
    if data is not None:
        check_source(data, reading)
    _check_table_name(table)
    if Path(query).exists() or Path(query).suffix in TABLES:
        check_file(Path(query), "such table of queries")
    from graphsc.core.progress import counting_bar
    from graphsc.experiments.similarity import search_library, similar_page

    with counting_bar(library, "molecules") as progress:
        found = search_library(
            source, query, library, data=data, options=reading.options(), top=top, device=device,
            progress=progress,
        )  # fmt: skip
    facts: dict[str, object] = {
        "library": found.searched,
        "left out": found.source.left_out,
        "queries": len(found.queries.ids),
        "queries left out": found.queries.left_out,
    }
    if len(found.queries.ids) == 1:
        nearest = found.neighbours[0].tolist()[:3]
        facts["nearest"] = ", ".join(str(found.source.ids[index]) for index in nearest)
    _write(facts, similar_page(found), found.table(), out, table, json, full)


def outliers(
    source: SourceArgument,
    /,
    *,
    data: DataOption = None,
    neighbours: NeighboursOption = 8,
    most: Annotated[int, Parameter(help="Draw at most this many graphs.")] = 20,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("outliers.html"),
    table: TableOption = None,
    device: DeviceOption = "auto",
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: FullOption = False,
) -> None:
    """Find the graphs that are unlike all others, by their embeddings, and draw them.

    Example: graphsc outliers runs/mutag --out outliers.html
    """
    check_page(out)
    _check_paths(source, data, reading, table)
    embedded = _embedded(source, data, reading, device)
    from graphsc.experiments.similarity import find_outliers, outliers_page

    found = find_outliers(embedded, k=neighbours)
    facts = {
        "graphs": len(embedded.ids), "left out": embedded.left_out, "outliers": int(found.flagged.sum()),
        "most unusual": ", ".join(str(embedded.ids[k]) for k in found.order[:5].tolist()),
    }  # fmt: skip
    _write(facts, outliers_page(found, most), found.table(), out, table, json, full)


def cluster(
    source: SourceArgument,
    /,
    *,
    clusters: Annotated[
        int | None, Parameter(help="Number of clusters; by default the best of 2 to 10 by silhouette.")
    ] = None,
    data: DataOption = None,
    seed: Annotated[int, Parameter(help="Seed of k-means and of the map.")] = 0,
    out: Annotated[Path, Parameter(help="The HTML file to write.")] = Path("clusters.html"),
    table: TableOption = None,
    device: DeviceOption = "auto",
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: FullOption = False,
) -> None:
    """Group graphs by their embeddings, and draw the most typical graphs of each group.

    Example: graphsc cluster runs/mutag --clusters 4 --out clusters.html
    """
    check_page(out)
    _check_paths(source, data, reading, table)
    embedded = _embedded(source, data, reading, device)
    from graphsc.experiments.similarity import cluster_graphs, clusters_page

    found = cluster_graphs(embedded, clusters=clusters, seed=seed)
    sizes = [int((found.cluster == number).sum()) for number in range(1, found.number + 1)]
    facts = {
        "graphs": len(embedded.ids), "left out": embedded.left_out, "clusters": found.number,
        "sizes": ", ".join(map(str, sizes)), "silhouette": f"{found.silhouette:.3f}",
    }  # fmt: skip
    _write(facts, clusters_page(found, seed), found.table(), out, table, json, full)


def _check_paths(source: Path, data: str | None, reading: ReaderOptions, table: Path | None) -> None:
    if source.suffix in VECTORS:
        check_file(source, "such file")
    else:
        check_model(source)
    if data is not None:
        check_source(data, reading)
    _check_table_name(table)


def _embedded(source: Path, data: str | None, reading: ReaderOptions, device: str) -> Embedded:
    from graphsc.experiments.explore import embeddings_of

    return embeddings_of(source, data, reader=reading.reader, options=reading.options(), device=device)


def _check_table_name(table: Path | None) -> None:
    if table is not None and table.suffix != ".csv":
        raise ConfigError(f"cannot write a {table.suffix or 'nameless'} table", hint="end the name in .csv")


def _write(
    facts: dict[str, object],
    page: Report,
    rows: Table,
    out: Path,
    table: Path | None,
    json: bool,
    full: bool,
) -> None:
    from graphsc.core.files import write_atomic
    from graphsc.report.html import write_report

    write_report(out, page)
    facts["written to"] = str(out)
    if table is not None:
        write_atomic(table, rows.csv())
        facts["table"] = str(table)
    if json:
        long = {"rows": [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]} if full else {}
        print_json({**facts, **long})
    else:
        print_facts(page.title, list(facts.items()))
