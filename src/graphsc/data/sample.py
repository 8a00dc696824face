"""Graphs to learn from and graphs to hold out, out of any source, without a copy of what is not wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.chosen import choose
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.sources import Reading, find_door, find_saved, open_collection
from graphsc.data.spread import split_spread

HELD_OUT = 2_048


@dataclass(frozen=True)
class Sample:
    """Graphs of one source, none of them in both parts."""

    training: GraphCollection
    held_out: GraphCollection
    total: int  # graphs of the source, or rows of it where only some were read


def open_sample(
    source: object,
    graphs: int | None = None,
    *,
    held_out: int = HELD_OUT,
    seed: int = 0,
    door: str | None = None,
    **options: object,
) -> Sample:
    """`graphs` graphs of any source, spread evenly over it and drawn by the seed; None: all.

    `held_out` others, at most a tenth of the source, are never among them. A saved collection stays where it
    is, mapped; of a list of molecules, only the rows that are wanted are read.
    """
    if graphs is not None and not isinstance(source, GraphCollection):
        reading = None if find_saved(source, door, options) else find_door(source, door, options)
        if reading is not None and reading.door == "smiles":
            return _of_molecules(reading, graphs, held_out, seed)
    collection = open_collection(source, door=door, **options)
    rows = split_spread(len(collection), graphs, held_out, seed)
    return Sample(choose(collection, rows.training), choose(collection, rows.held_out), len(collection))


def _of_molecules(reading: Reading, graphs: int, held_out: int, seed: int) -> Sample:
    from graphsc.data.molecules.prepare import prepare
    from graphsc.data.molecules.read import load

    options = dict(reading.options)
    workers, strict = options.pop("workers", None), bool(options.pop("strict", False))
    listing = options.pop("rejected", None)
    rows, plan, total = prepare(reading.source, **options)  # type: ignore[arg-type]
    training, apart = split_spread(total, graphs, held_out, seed)
    wanted = np.sort(np.concatenate([training, apart]))
    collection, lost = load(
        some_rows(rows, wanted),
        replace(plan, has_ids=True),
        len(wanted),
        strict=strict,
        rejected=None if listing is None else Path(str(listing)),
        workers=workers if isinstance(workers, int) else None,
    )
    kept = np.delete(wanted, [one.row for one in lost])
    out = np.isin(kept, apart)
    if out.all():
        raise DataError("none of the rows to train on holds a molecule", where=rows.where)
    return Sample(choose(collection, np.flatnonzero(~out)), choose(collection, np.flatnonzero(out)), total)


def some_rows(source: Source, wanted: NDArray[np.int64]) -> Source:
    """The rows of these rising numbers alone, numbered anew; the old number is the id of one without."""

    def rows() -> Iterator[Row]:
        places = iter(enumerate(wanted.tolist()))
        place, number = next(places, (0, -1))
        for row in source.rows():
            if row.number == number:
                yield row._replace(number=place, id=row.id or str(row.number))
                place, number = next(places, (0, -1))
                if number < 0:
                    return

    return replace(source, rows=rows, has_ids=True)
