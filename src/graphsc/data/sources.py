"""Anything that holds graphs, to a collection: a name, a path, or objects in memory."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.registry import nearest
from graphsc.data.collection import GraphCollection
from graphsc.data.doors import DOORS
from graphsc.data.names import NAMED, locate, looked_in

# Our own doors; each registers itself under its name when its module is imported.
_OWN = ("tu", "pyg", "networkx", "edges", "motifs", "molecule_like")


def load_doors(*names: str) -> None:
    """Import our doors, or just these; those of other packages are imported when they are asked."""
    for name in names or _OWN:
        importlib.import_module(f"graphsc.data.doors.{name}")


def open_collection(source: object, *, door: str | None = None, **options: object) -> GraphCollection:
    """Open a collection from any source we know.

    `source` may be a collection, a saved collection's path, the name of a data set (`mutag`), a generator
    (`motifs:500`), a TU folder or zip, an edge list, or a list of PyG or NetworkX graphs. `options` are the
    door's own; `features` goes with every source.
    """
    if isinstance(source, GraphCollection):
        return _opened(source, options, "a collection")
    if door is None and isinstance(source, (str, Path)):
        path = Path(source)
        if path.suffix == ".safetensors":
            return _opened(GraphCollection.open(path), options, "a saved collection")
        if isinstance(source, str) and source.lower() in NAMED and not path.exists():
            entry = NAMED[source.lower()]
            collection = open_collection(locate(entry), door="tu", **options)
            return collection if "name" in options else replace(collection, name=entry.title)
    load_doors(*([door] if door in _OWN else []))
    chosen = door or next((name for name in DOORS if DOORS.get(name).accepts(source)), None)
    if chosen is None:
        raise _nothing_fits(source)
    read = DOORS.get(chosen).read
    if options:
        from graphsc.core.config import check_arguments  # its parsers need not load for plain calls

        options = check_arguments(read, options, f"door {chosen!r}", given=("source",))
    return read(source, **options)


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
            hint="pass a path, a name, or a list of PyG or NetworkX graphs",
        )
    path = Path(source)
    if path.exists():
        return NotFoundError(
            "no door reads this file or folder",
            where=str(source),
            hint="an edge list needs columns graph_id, source and target, or --door edges and their names; "
            "others are a TU folder or zip and a saved collection",
        )
    looks_like_a_path = path.suffix or len(path.parts) > 1
    return NotFoundError(
        f"no data set, file or folder {str(source)!r}",
        where=f"looked in {looked_in()}",
        hint="check the path" if looks_like_a_path else nearest(str(source).lower(), NAMED),
    )
