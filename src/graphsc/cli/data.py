"""`graphsc data`: list, download, check and convert data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from graphsc.cli.output import print_facts, print_json, print_table
from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.progress import counting_bar, transfer_bar
from graphsc.core.registry import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsc.core.parts import Part
    from graphsc.data.collection import GraphCollection
    from graphsc.data.datasets.catalog import NamedSet

app = App(name="data", help="List, download, check and convert graphs.")

SourceArgument = Annotated[
    str,
    Parameter(
        help="The graphs: the name of a data set (mutag), a generator (motifs:500), a TU folder or zip file, "
        "an edge list, molecules (.smi, or .csv with a SMILES column), or a saved collection (.safetensors)."
    ),
]
FeaturesOption = Annotated[
    str | None,
    Parameter(help="Node features: labels, degree[:CAP], constant or attributes, several joined by '+'."),
]
# --door and --door-set are the options' old names.
ReaderOption = Annotated[
    str | None, Parameter(name=["--reader", "--door"], help="The reader to use instead of guessing it.")
]
ReaderSetOption = Annotated[
    list[str] | None,
    Parameter(
        name=["--reader-set", "--door-set"],
        negative=(),
        help="An option of the reader, as key=value; repeatable.",
    ),
]
SmilesOption = Annotated[
    str | None,
    Parameter(name="--smiles-column", help="The column with SMILES; by default guessed."),
]
ClusterOption = Annotated[
    str | None, Parameter(help="Run on a Dask cluster: the address of its scheduler, tcp://HOST:PORT.")
]
ProcessesOption = Annotated[
    int, Parameter(name="--jobs", help="Local processes; 1 works in this process.", validator=Number(gte=1))
]
FORMAT_HELP = "Format of many files; by default that of each source, csv for other formats."
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON.")]


def open_source(
    source: str, features: str | None, reader: str | None, reader_set: list[str] | None
) -> GraphCollection:
    """Open whatever a verb was given, with the reader's options; every verb that takes data calls this."""
    from graphsc.data.readers import open_collection

    return open_collection(source, reader=reader, **reader_options(features, reader_set))


def reader_options(
    features: str | None, reader_set: list[str] | None, smiles_column: str | None = None
) -> dict[str, object]:
    """Options of a reader as the command line gives them."""
    options: dict[str, object] = {}
    if reader_set:
        from graphsc.core.config import parse_assignments

        options = parse_assignments(reader_set)
    if features is not None:
        options["features"] = features
    if smiles_column is not None:
        options["smiles_column"] = smiles_column
    return options


def check_format(format_: str | None) -> None:
    """Refuse `--format` for a single file."""
    if format_ is not None:
        raise ConfigError("--format is for many files", hint="the name of --out decides the format of one")


def show_parts(parts: Sequence[Part], out: Path, json: bool) -> None:
    """Print how many files were written, or each as JSON; an error if any has failed."""
    from graphsc.core.parts import check_parts

    if json:
        print_json(
            [
                {
                    "source": part.source, "path": str(part.target), **part.summary,
                    "computed": part.computed and part.error is None, "error": part.error,
                }
                for part in parts
            ]
        )  # fmt: skip
    else:
        failed = sum(part.error is not None for part in parts)
        unchanged = sum(not part.computed for part in parts)
        rows = sum(int(str(part.summary.get("rows", 0))) for part in parts)
        print_facts(
            str(out),
            [
                ("files written", len(parts) - failed - unchanged), ("unchanged", unchanged),
                ("failed", failed), ("rows", rows), ("written to", out),
            ],
        )  # fmt: skip
    check_parts(parts)


@app.command(name="list")
def list_sets(
    *,
    search: Annotated[
        str | None, Parameter(help="Only those with this word in their name, kind or description.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the data sets known by name, and where each was found on this machine."""
    from graphsc.data.datasets.catalog import NAMED, find, search_folders

    folders = search_folders()
    rows = [
        (entry, find(entry, folders))
        for entry in NAMED.values()
        if search is None or search.lower() in f"{entry.name} {entry.kind} {entry.summary}".lower()
    ]
    if not rows:
        raise NotFoundError(f"no data set has {search!r} in its name, kind or description")
    if json:
        keys = ("name", "kind", "graphs", "classes", "tasks", "nodes", "edges", "summary", "citation")
        print_json(
            [
                {key: getattr(entry, key) for key in keys} | {"path": str(path) if path else None}
                for entry, path in rows
            ]
        )
        return
    print_table(
        "Data sets by name",
        ("name", "kind", "graphs", "what", "found at"),
        [
            (
                entry.name, entry.kind, entry.graphs, entry.summary,
                path or f"not found; get it with: graphsc data get {entry.name}",
            )
            for entry, path in rows
        ],
    )  # fmt: skip


@app.command
def get(
    name: Annotated[str, Parameter(help="The name of a data set, as listed by 'graphsc data list'.")],
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Download a data set from its public address into the user's cache."""
    from graphsc.data.datasets.catalog import find
    from graphsc.data.datasets.download import fetch_named

    entry = _entry(name)
    path = find(entry)
    fetched = path is None
    if path is None:
        with transfer_bar(entry.title) as progress:
            path = fetch_named(entry, progress=progress)
    if json:
        print_json({"name": entry.name, "path": str(path), "fetched": fetched})
    else:
        print_facts(entry.title, [("fetched" if fetched else "already here", path)])


@app.command
def check(
    source: SourceArgument,
    /,
    *,
    features: FeaturesOption = None,
    smiles_column: SmilesOption = None,
    reader: ReaderOption = None,
    reader_set: ReaderSetOption = None,
    json: JsonOption = False,
) -> None:
    """Read graphs from any source, validate them and print their statistics."""
    from graphsc.data.readers import open_collection

    collection = open_collection(source, reader=reader, **reader_options(features, reader_set, smiles_column))
    collection.check()
    statistics = collection.describe()
    if json:
        print_json(statistics.to_json())
    else:
        print_facts(statistics.name, statistics.facts())


@app.command
def convert(
    source: SourceArgument,
    /,
    *,
    out: Annotated[Path, Parameter(help="The file to write: NAME.safetensors.")],
    features: FeaturesOption = None,
    smiles_column: SmilesOption = None,
    strict: Annotated[
        bool, Parameter(negative=(), help="Stop at the first row that is not a valid molecule.")
    ] = False,
    workers: Annotated[int | None, Parameter(help="Parallel processes; by default one per core.")] = None,
    cluster: ClusterOption = None,
    reader: ReaderOption = None,
    reader_set: ReaderSetOption = None,
    json: JsonOption = False,
) -> None:
    """Read graphs from any source and save them as one file that opens fast.

    Molecules are parsed in chunks on all cores. Run the same command again to resume after an interruption.
    """
    if out.suffix != ".safetensors":
        raise DataError(
            f"cannot write {out.suffix or 'a file without suffix'}",
            where=str(out),
            hint="use a name ending in .safetensors",
        )
    options = reader_options(features, reader_set, smiles_column)
    if strict:
        options["strict"] = True
    if workers is not None:
        options["workers"] = workers
    from graphsc.core.parallel import use_cluster

    with use_cluster(cluster):
        written = _convert(source, out, reader, options)
    if json:
        print_json(written)
    else:
        print_facts(str(written.pop("name")), list(written.items()))


def _convert(source: str, out: Path, reader: str | None, options: dict[str, object]) -> dict[str, object]:
    from graphsc.data.readers import find_reader, open_collection

    saved = source.endswith(".safetensors") and reader is None
    reading = None if saved else find_reader(source, reader, options)
    if reading is not None and reading.reader == "smiles":
        from graphsc.data.molecules.conversion import convert_smiles

        with counting_bar(str(reading.options.get("name", source)), "molecules") as progress:
            done = convert_smiles(reading.source, out, **reading.options, progress=progress)  # type: ignore[arg-type]
        return {
            "name": done.name,
            "path": str(out),
            "graphs": done.graphs,
            "rejected": done.rejected,
            **({"rejects": str(done.listing)} if done.listing else {}),
            "bytes": out.stat().st_size,
            "content_hash": done.content_hash,
        }
    collection = open_collection(source, reader=reader, **options)
    collection.save(out)
    return {
        "name": collection.name,
        "path": str(out),
        "graphs": len(collection),
        "bytes": out.stat().st_size,
        "content_hash": collection.content_hash,
    }


def _entry(name: str) -> NamedSet:
    from graphsc.data.datasets.catalog import NAMED

    if name.lower() not in NAMED:
        raise ConfigError(f"unknown data set {name!r}", hint=nearest(name.lower(), NAMED))
    return NAMED[name.lower()]
