"""Embed any number of graphs into a file, with memory for a few thousand; a stop or a kill loses little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.files import remove_stray_files
from graphsc.core.signals import StopRequest, stop_requests
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.every_row import every_row
from graphsc.training.embedding_store import EmbeddingStore
from graphsc.training.export import CHUNK, Rows, Vectors, check_target, write_rows
from graphsc.training.model_file import Model

Progress = Callable[[int, int], None]  # graphs done, graphs in all


def embed_to_file(
    model: Model,
    collection: GraphCollection,
    target: Path,
    *,
    identity: str = "",
    progress: Progress = lambda done, total: None,
    chunk: int = CHUNK,
) -> int:
    """Write one row a graph; gives how many rows there are.

    Rows of the source that held no molecule are rows here, too, without a vector but with the reason.
    `identity` names the model; together with the graphs it decides whether what an interrupted call has left
    beside the target is gone on with. Few graphs are embedded in one go and leave nothing on the way.
    """
    check_target(target)
    remove_stray_files(target.parent)
    known = model.fit_features(collection)
    width = model.dimensions
    if len(known) <= chunk:
        rows = model.embed(known)
        return _write(target, collection, width, lambda: iter([rows]), StopRequest())
    said: dict[str, object] = {"model": identity, "graphs": collection.content_hash, "chunk": chunk}
    store = EmbeddingStore(target, said, width, chunk)
    with store.opened(), stop_requests() as request:
        for start in range(store.done * chunk, len(known), chunk):
            progress(start, len(known))
            store.append(model.embed(known[start : start + chunk]))
            request.check(f"{min(start + chunk, len(known)):,} of {len(known):,} graphs are embedded")
        progress(len(known), len(known))
        return _write(target, collection, width, store.chunks, request)


def _write(
    target: Path,
    collection: GraphCollection,
    width: int,
    vectors: Callable[[], Iterator[NDArray[np.float32]]],
    request: StopRequest,
) -> int:
    """All rows of the source, those without a molecule among them."""

    def checked() -> Vectors:
        for chunk in vectors():
            request.check("all graphs are embedded, the file is not written yet")
            yield chunk

    if not collection.rejected:
        write_rows(target, Rows(checked, width, collection.ids))
        return len(collection)
    nothing = np.empty((len(collection), 0), np.float32)
    _, ids, reasons = every_row(nothing, collection.ids, collection.rejected)
    lost = np.zeros(len(ids), dtype=bool)
    lost[[one.row for one in collection.rejected]] = True
    write_rows(target, Rows(lambda: _with_gaps(checked(), lost, width), width, ids, reasons))
    return len(ids)


def _with_gaps(chunks: Vectors, lost: NDArray[np.bool_], width: int) -> Vectors:
    """The rows of `chunks` in the places that are not `lost`, NaN in the others; a chunk for each given."""
    kept = np.flatnonzero(~lost)
    first, taken = 0, 0
    for rows in chunks:
        taken += len(rows)
        last = int(kept[taken]) if taken < len(kept) else len(lost)
        full = np.full((last - first, width), np.nan, dtype=np.float32)
        full[~lost[first:last]] = rows
        yield full
        first = last
