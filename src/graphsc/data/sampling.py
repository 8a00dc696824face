"""Graphs to learn from and graphs to hold out, out of any source, without a copy of what is not wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.data.collection import GraphCollection, subset
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.readers import Reading, find_reader, find_saved, open_collection

# Positions drawn evenly over a long list: some to learn from, others never to be learned from.


class Split(NamedTuple):
    """Rising positions, none in both."""

    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


def spread(total: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` of `total` positions, rising: one from each of `count` runs of equal length."""
    bounds = np.arange(count + 1, dtype=np.int64) * total // max(count, 1)
    return rng.integers(bounds[:-1], bounds[1:])


def split_spread(total: int, training: int | None, held_out: int, seed: int) -> Split:
    """Positions to train on and to hold out, both spread over the whole; the seed decides them.

    `training` None is all that is not held out. At most a tenth of the whole is held out.
    """
    if held_out < 0:
        raise ConfigError(f"the number of graphs held out must not be negative, not {held_out}")
    held_out = min(held_out, total // 10)
    most = total - held_out
    training = most if training is None else training
    if not 1 <= training <= most:
        raise ConfigError(
            f"cannot train on {training:,} of {total:,} graphs, of which {held_out:,} are held out",
            hint=f"ask for 1 to {most:,}",
        )
    rng = numpy_generator(seed, "molecules")
    drawn = spread(total, training + held_out, rng)
    out = np.zeros(len(drawn), dtype=bool)
    out[spread(len(drawn), held_out, rng)] = True
    return Split(drawn[~out], drawn[out])


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
        reading = None if find_saved(source, door, options) else find_reader(source, door, options)
        if reading is not None and reading.door == "smiles":
            return _of_molecules(reading, graphs, held_out, seed)
    collection = open_collection(source, door=door, **options)
    rows = split_spread(len(collection), graphs, held_out, seed)
    return Sample(subset(collection, rows.training), subset(collection, rows.held_out), len(collection))


def _of_molecules(reading: Reading, graphs: int, held_out: int, seed: int) -> Sample:
    from graphsc.data.molecules.conversion import load, prepare

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
    return Sample(subset(collection, np.flatnonzero(~out)), subset(collection, np.flatnonzero(out)), total)


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
