"""Readers, one module per kind of source, and `open_collection`, which finds the right one."""

from __future__ import annotations

import importlib
import os
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.lazy import export_lazily
from graphsc.core.registry import Registry, nearest
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import NAMED, find_converted, locate, looked_in

if TYPE_CHECKING:
    from graphsc.data.readers.edge_list import read_edges as read_edges
    from graphsc.data.readers.networkx import read_networkx as read_networkx
    from graphsc.data.readers.networkx import to_networkx as to_networkx
    from graphsc.data.readers.ogb import read_ogb as read_ogb
    from graphsc.data.readers.ogb import read_ogb_split as read_ogb_split
    from graphsc.data.readers.pyg import read_pyg as read_pyg
    from graphsc.data.readers.pyg import to_pyg as to_pyg
    from graphsc.data.readers.smiles import read_smiles as read_smiles
    from graphsc.data.readers.synthetic import molecule_like as molecule_like
    from graphsc.data.readers.synthetic import motifs as motifs
    from graphsc.data.readers.tu import read_tu as read_tu

__all__ = [
    "READERS",
    "Reader",
    "open_collection",
    *export_lazily(
        __name__,
        {
            "edge_list": "read_edges",
            "networkx": "read_networkx to_networkx",
            "ogb": "read_ogb read_ogb_split",
            "pyg": "read_pyg to_pyg",
            "smiles": "read_smiles",
            "synthetic": "molecule_like motifs",
            "tu": "read_tu",
        },
    ),
]


@dataclass(frozen=True)
class Reader:
    """Reads one kind of source.

    Attributes:
        accepts: Whether the reader can read an object; cheap, and never raises.
        read: Takes the source and typed keyword options, among them `name` and `features`, and returns the
            result of `graphsc.data.builder.build_collection`.
        summary: One line for listings.
    """

    accepts: Callable[[object], bool]
    read: Callable[..., GraphCollection]
    summary: str


READERS: Registry[Reader] = Registry("reader")

# Module of each built-in reader; it registers itself when imported.
_OWN = {
    "tu": "tu",
    "ogb": "ogb",
    "pyg": "pyg",
    "networkx": "networkx",
    "edges": "edge_list",
    "smiles": "smiles",
    "motifs": "synthetic",
    "molecule_like": "synthetic",
}


def open_collection(source: object, *, reader: str | None = None, **options: object) -> GraphCollection:
    """Open graphs from any supported source.

    Args:
        source: A collection, the path of a saved collection, the name of a data set (`mutag`), a generator
            (`motifs:500`), a TU folder or zip, an edge list, a table or .smi file of molecules, or a list of
            SMILES strings, PyG graphs or NetworkX graphs.
        reader: Name of the reader; guessed from the source by default.
        **options: Options of the reader; `features` is accepted for every source.

    Raises:
        NotFoundError: If there is no such source or no reader accepts it.
        ConfigError: If an option is unknown or has the wrong type.
        DataError: If the source is malformed.
    """
    if isinstance(source, GraphCollection):
        return _with_options(source, options, "a collection")
    saved = find_saved(source, reader, options)
    if saved is not None:
        return _with_options(GraphCollection.open(saved), options, "a saved collection")
    reading = find_reader(source, reader, options)
    return READERS.get(reading.reader).read(reading.source, **reading.options)


@dataclass(frozen=True)
class Reading:
    """A source that is not yet read, the name of its reader, and the reader's options."""

    reader: str
    source: object
    options: dict[str, object]


def find_reader(source: object, reader: str | None, options: Mapping[str, object]) -> Reading:
    """Find the reader of a source, and check the options against it."""
    options, known = dict(options), {}
    if reader is None and _is_name(source):
        entry = NAMED[str(source).lower()]
        source, reader = locate(entry), entry.reader
        known = {"name": entry.title, **entry.options}
    if reader is None and "smiles_column" in options:
        reader = "smiles"
    load_readers(*([reader] if reader in _OWN else []))
    chosen = reader or next((name for name in READERS if READERS.get(name).accepts(source)), None)
    if chosen is None:
        raise not_found(source)
    if options:
        from graphsc.core.config import check_arguments  # slow to import, and most calls have no options

        options = check_arguments(READERS.get(chosen).read, options, f"reader {chosen!r}", given=("source",))
    return Reading(chosen, source, {**known, **options})


# Options that say how to work, not what is read.
_NOT_READ = ("features", "workers", "rejected", "strict")


def describe_reading(
    source: object, reader: str | None = None, options: Mapping[str, object] | None = None
) -> dict[str, object] | None:
    """Everything that is needed to read the same graphs from any folder; None for objects in memory.

    Returns:
        `source` as it was given; `reader`, None for a saved collection; `path`, absolute, None for a
        generator; and the reader's `options`, with paths absolute.
    """
    if not isinstance(source, (str, Path)):
        return None
    given = dict(options or {})
    saved = find_saved(source, reader, given)
    if saved is not None:
        return {"source": str(source), "reader": None, "path": str(saved.absolute()), "options": {}}
    reading = find_reader(source, reader, given)
    path = Path(str(reading.source))
    of_reader = {
        name: str(Path(str(value)).absolute()) if value is not None and name in _path_options(reading.reader)
        else list(value) if isinstance(value, tuple) else value
        for name, value in reading.options.items()
        if name not in _NOT_READ
    }  # fmt: skip
    return {
        "source": str(source),
        "reader": reading.reader,
        "path": str(path.absolute()) if os.path.exists(path) else None,  # noqa: PTH110 - a name may be long
        "options": of_reader,
    }


def _path_options(reader: str) -> set[str]:
    """The options of a reader that are paths, by their types."""
    hints = typing.get_type_hints(READERS.get(reader).read)
    return {name for name, hint in hints.items() if Path in typing.get_args(hint)}


def locate_reading(reading: Mapping[str, object]) -> tuple[str, str | None, dict[str, object]]:
    """Source, reader and options by which `open_collection` reads the same graphs again.

    Args:
        reading: The result of `describe_reading`.

    Raises:
        NotFoundError: They are no longer where they were.
    """
    path, source, reader = reading.get("path"), str(reading["source"]), reading.get("reader")
    if path is not None and not Path(str(path)).exists():
        if _is_name(source):
            return source, None, {}  # found elsewhere by now
        raise NotFoundError(
            "these graphs are no longer there", where=str(path), hint="say where they are now"
        )
    options = reading.get("options")
    return (
        source if path is None else str(path),
        None if reader is None else str(reader),
        dict(options) if isinstance(options, Mapping) else {},
    )


def find_saved(source: object, reader: str | None, options: Mapping[str, object]) -> Path | None:
    """The collection file of a source: the source itself, or the converted copy of a named data set."""
    if reader is not None or not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    if path.suffix == ".safetensors":
        return path
    if not _is_name(source):
        return None
    entry = NAMED[str(source).lower()]
    # Other options are the reader's; a TU set that comes with the package has no other file to read.
    wants_reader = bool(entry.files) and bool(options.keys() - {"features"})
    return None if wants_reader else find_converted(entry)


def has_plugin_readers() -> bool:
    """Whether other packages have registered readers."""
    return not set(READERS) <= _OWN.keys()


def load_readers(*names: str) -> None:
    """Import the named built-in readers, or all; plug-ins are imported when they are first used."""
    for name in names or _OWN:
        importlib.import_module(f"graphsc.data.readers.{_OWN[name]}")


def _is_name(source: object) -> bool:
    return isinstance(source, str) and source.lower() in NAMED and not Path(source).exists()


def _with_options(collection: GraphCollection, options: dict[str, object], what: str) -> GraphCollection:
    for key in options:
        if key != "features":
            raise ConfigError(f"{what} takes no option {key!r}", hint=nearest(key, ["features"]))
    features = options.get("features")
    return collection if features is None else collection.with_features(str(features))


def not_found(source: object) -> NotFoundError:
    """The error for a source that no reader accepts."""
    if not isinstance(source, (str, Path)):
        return NotFoundError(
            f"no reader accepts a {type(source).__name__}",
            hint="pass a path, a name, or a list of PyG graphs, NetworkX graphs or SMILES strings",
        )
    path = Path(source)
    if os.path.exists(path):  # noqa: PTH110 - False for a name that is too long; `Path.exists` raises
        from graphsc.data.readers.csv import read_header, table_suffix

        header = [name for name in read_header(path) if name] if table_suffix(path) else []
        if header:
            listing = ", ".join(header[:30])
            return NotFoundError(
                "no column of this table has a usual name for SMILES, nor two for the ends of an edge",
                where=str(source),
                hint="name that of SMILES with --smiles-column; an edge list has graph_id, source and "
                f"target; name others with --reader edges and --reader-set source_column=NAME, likewise "
                f"target_column and graph_column; columns: {listing}",
            )
        return NotFoundError(
            "no reader accepts this file or folder",
            where=str(source),
            hint="an edge list needs columns graph_id, source and target; molecules need a column smiles; "
            "others are a .smi or .sdf file, a TU folder or zip and a saved collection",
        )
    looks_like_a_path = path.suffix or len(path.parts) > 1
    shown = str(source) if len(str(source)) <= 300 else f"{str(source)[:300]}..."
    return NotFoundError(
        f"no data set, file or folder {shown!r}",
        where=f"looked in {looked_in()}",
        hint="check the path" if looks_like_a_path else nearest(str(source).lower(), NAMED),
    )
