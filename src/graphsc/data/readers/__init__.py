"""The ways in: one file a kind of source, each giving a collection or one clear error."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.registry import Registry, nearest
from graphsc.data.collection import GraphCollection
from graphsc.data.datasets.catalog import NAMED, find_converted, locate, looked_in


@dataclass(frozen=True)
class Reader:
    """A kind of source: whether it takes a given object, and how it reads it.

    `accepts` is cheap and never raises. `read` takes the source and typed keyword options, `name` and
    `features` among them, and ends in `graphsc.data.builder.assemble`.
    """

    accepts: Callable[[object], bool]
    read: Callable[..., GraphCollection]
    summary: str


READERS: Registry[Reader] = Registry("door")


# Anything that holds graphs, to a collection: a name, a path, or objects in memory.


# Our own doors; each registers itself under its name when its module is imported.
_OWN = {
    "tu": "tu",
    "pyg": "pyg",
    "networkx": "networkx",
    "edges": "edge_list",
    "smiles": "smiles",
    "motifs": "synthetic",
    "molecule_like": "synthetic",
}


def load_readers(*names: str) -> None:
    """Import our doors, or just these; those of other packages are imported when they are asked."""
    for name in names or _OWN:
        importlib.import_module(f"graphsc.data.readers.{_OWN[name]}")


def open_collection(source: object, *, door: str | None = None, **options: object) -> GraphCollection:
    """Open a collection from any source we know.

    `source` may be a collection, a saved collection's path, the name of a data set (`mutag`), a generator
    (`motifs:500`), a TU folder or zip, an edge list, a table or .smi file of molecules, or a list of SMILES
    strings, PyG or NetworkX graphs. `options` are the door's own; `features` goes with every source.
    """
    if isinstance(source, GraphCollection):
        return _opened(source, options, "a collection")
    saved = find_saved(source, door, options)
    if saved is not None:
        return _opened(GraphCollection.open(saved), options, "a saved collection")
    reading = find_reader(source, door, options)
    return READERS.get(reading.door).read(reading.source, **reading.options)


def find_saved(source: object, door: str | None, options: Mapping[str, object]) -> Path | None:
    """The file to map where a source is a saved collection, or a name that has been converted to one."""
    if door is not None or not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    if path.suffix == ".safetensors":
        return path
    made = find_converted(NAMED[str(source).lower()]) if _is_name(source) else None
    return made if made is not None and not options.keys() - {"features"} else None


@dataclass(frozen=True)
class Reading:
    """How a source is to be read: by which door, from where, with which options of that door."""

    door: str
    source: object
    options: dict[str, object]


def find_reader(source: object, door: str | None, options: Mapping[str, object]) -> Reading:
    """The door for a source that is not a collection yet, its options checked."""
    options = dict(options)
    if door is None and _is_name(source):
        entry = NAMED[str(source).lower()]
        source, door = locate(entry), entry.door
        options = {"name": entry.title, **entry.options, **options}
    if door is None and "smiles_column" in options:
        door = "smiles"
    load_readers(*([door] if door in _OWN else []))
    chosen = door or next((name for name in READERS if READERS.get(name).accepts(source)), None)
    if chosen is None:
        raise _nothing_fits(source)
    if options:
        from graphsc.core.config import check_arguments  # its parsers need not load for plain calls

        options = check_arguments(READERS.get(chosen).read, options, f"door {chosen!r}", given=("source",))
    return Reading(chosen, source, options)


def _is_name(source: object) -> bool:
    return isinstance(source, str) and source.lower() in NAMED and not Path(source).exists()


def _opened(collection: GraphCollection, options: dict[str, object], what: str) -> GraphCollection:
    for key in options:
        if key != "features":
            raise DataError(f"{what} takes no option {key!r}", hint=nearest(key, ["features"]))
    features = options.get("features")
    return collection if features is None else collection.with_features(str(features))


def _nothing_fits(source: object) -> NotFoundError:
    if not isinstance(source, (str, Path)):
        return NotFoundError(
            f"no door takes a {type(source).__name__}",
            hint="pass a path, a name, or a list of PyG graphs, NetworkX graphs or SMILES strings",
        )
    path = Path(source)
    if path.exists():
        return NotFoundError(
            "no door reads this file or folder",
            where=str(source),
            hint="an edge list needs columns graph_id, source and target, or --door edges and their names; "
            "molecules need a column smiles, or smiles_column; others are a .smi file, a TU folder or zip "
            "and a saved collection",
        )
    looks_like_a_path = path.suffix or len(path.parts) > 1
    return NotFoundError(
        f"no data set, file or folder {str(source)!r}",
        where=f"looked in {looked_in()}",
        hint="check the path" if looks_like_a_path else nearest(str(source).lower(), NAMED),
    )
