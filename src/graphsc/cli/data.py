"""`graphsc data`: list, download, check and convert data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Group, Parameter
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
    Parameter(
        help="Node features: labels, degree[:CAP], constant or attributes, several joined by '+'; by "
        "default labels if there are any, else attributes, else degree."
    ),
]
SmilesOption = Annotated[
    str | None,
    Parameter(name="--smiles-column", help="The column with SMILES; by default guessed."),
]


@Parameter(name="*", group=Group("Reading the source", sort_key=100))
@dataclass(frozen=True)
class ReaderOptions:
    """Options of every verb that reads graphs: how its source is read."""

    # --door and --door-set are the old names of --reader and --reader-set.
    reader: Annotated[
        str | None, Parameter(name=["--reader", "--door"], help="The reader; by default guessed.")
    ] = None
    reader_set: Annotated[
        list[str] | None,
        Parameter(
            name=["--reader-set", "--door-set"],
            negative=(),
            help="An option of the reader, as key=value; repeatable; none by default.",
        ),
    ] = None
    smiles_column: SmilesOption = None
    id_column: Annotated[
        str | None, Parameter(help="The column with ids of molecules; by default one called 'id'.")
    ] = None
    separator: Annotated[
        str | None, Parameter(help="The character between cells of a table, or 'tab'; by default detected.")
    ] = None
    decimal: Annotated[
        Literal[".", ","] | None, Parameter(help="The decimal point of a table; by default detected.")
    ] = None
    merge: Annotated[
        Literal["first", "sum", "mean", "max"] | None,
        Parameter(help="What the columns of repeated edges become; by default the first row's."),
    ] = None
    strict: Annotated[
        bool, Parameter(negative=(), help="Stop at the first row that is no molecule, or no edge.")
    ] = False

    def options(self, features: str | None = None) -> dict[str, object]:
        """Options of the reader: those that were given."""
        options: dict[str, object] = {}
        if self.reader_set:
            from graphsc.core.config import parse_assignments

            options = parse_assignments(self.reader_set)
            for name in ("source", "reader"):
                if name in options:  # parameters of `open_collection`
                    raise ConfigError(
                        f"a reader has no setting {name!r}",
                        hint="columns of an edge list are graph_column, source_column and target_column",
                    )
        given = {
            "features": features,
            "smiles_column": self.smiles_column,
            "id_column": self.id_column,
            "separator": self.separator,
            "decimal": self.decimal,
            "merge": self.merge,
            "strict": self.strict or None,
        }
        return options | {name: value for name, value in given.items() if value is not None}

    def open(self, source: str, features: str | None = None) -> GraphCollection:
        """Open the source of a verb."""
        from graphsc.data.readers import open_collection

        return open_collection(source, reader=self.reader, **self.options(features))

    def describe(self, source: str) -> dict[str, object] | None:
        """The reading for the config of a run."""
        from graphsc.data.readers import describe_reading

        return describe_reading(source, self.reader, self.options())


READ_AS_USUAL = ReaderOptions()
ClusterOption = Annotated[
    str | None,
    Parameter(
        help="Run on a Dask cluster: the address of its scheduler, tcp://HOST:PORT; by "
        "default on this machine."
    ),
]
ProcessesOption = Annotated[
    int, Parameter(name="--jobs", help="Local processes; 1 works in this process.", validator=Number(gte=1))
]
FORMAT_HELP = "Format of many files; by default that of each source, csv for other formats."
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), help="Print the result as JSON.")]
FullOption = Annotated[
    bool,
    Parameter(name="--full", negative=(), help="With --json: also the long arrays, one value per graph."),
]


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
        str | None, Parameter(help="Only those with this word in name, kind or description; by default all.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the data sets known by name, and where each was found on this machine.

    Example: graphsc data list --search social
    """
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
    """Download a data set from its public address into the user's cache.

    Example: graphsc data get proteins
    """
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
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Read graphs from any source, validate them and print their statistics.

    Example: graphsc data check edges.csv --merge sum
    """
    collection = reading.open(source, features)
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
    workers: Annotated[int | None, Parameter(help="Parallel processes; by default one per core.")] = None,
    cluster: ClusterOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Read graphs from any source and save them as one file that opens fast.

    Molecules are parsed in chunks on all cores. Run the same command again to resume after an interruption.

    Example: graphsc data convert molecules.csv --out molecules.safetensors
    """
    if out.suffix != ".safetensors":
        raise DataError(
            f"cannot write {out.suffix or 'a file without suffix'}",
            where=str(out),
            hint="use a name ending in .safetensors",
        )
    options = reading.options(features)
    if workers is not None:
        options["workers"] = workers
    from graphsc.core.parallel import use_cluster

    with use_cluster(cluster):
        written = _convert(source, out, reading.reader, options)
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
            "rows": done.rows,
            "graphs": done.graphs,
            "rejected": done.rejected,
            **({"reasons": _reasons(done.reasons), "rejects": str(done.listing)} if done.listing else {}),
            "bytes": out.stat().st_size,
            "content_hash": done.content_hash,
        }
    collection = open_collection(source, reader=reader, **options)
    collection.save(out)
    lost = {}
    if collection.rejected_edges:
        from graphsc.data.readers.csv import write_malformed

        listing = out.with_suffix(".rejected.csv")
        write_malformed(listing, collection.rejected_edges)
        lost = {"rejected": len(collection.rejected_edges), "rejects": str(listing)}
    return {
        "name": collection.name,
        "path": str(out),
        "graphs": len(collection),
        **lost,
        "bytes": out.stat().st_size,
        "content_hash": collection.content_hash,
    }


def _reasons(reasons: Sequence[tuple[str, int]]) -> str:
    return "; ".join(f"{reason} ({count:,})" for reason, count in reasons)


def _entry(name: str) -> NamedSet:
    from graphsc.data.datasets.catalog import NAMED

    if name.lower() not in NAMED:
        raise ConfigError(f"unknown data set {name!r}", hint=nearest(name.lower(), NAMED))
    return NAMED[name.lower()]
