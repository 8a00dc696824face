"""Training and held-out graphs sampled evenly from any source, without copying or reading the others."""

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

HELD_OUT = 2_048


@dataclass(frozen=True)
class Sample:
    """Disjoint training and held-out graphs of one source."""

    training: GraphCollection
    held_out: GraphCollection
    total: int  # graphs of the source, or its rows if only some were read


class Split(NamedTuple):
    """Disjoint positions, each in ascending order."""

    training: NDArray[np.int64]
    held_out: NDArray[np.int64]


def open_sample(
    source: object,
    graphs: int | None = None,
    *,
    held_out: int = HELD_OUT,
    seed: int = 0,
    reader: str | None = None,
    **options: object,
) -> Sample:
    """Sample training and held-out graphs from any source.

    A saved collection stays memory-mapped; of a list of molecules only the sampled rows are parsed.

    Args:
        source: As for `open_collection`.
        graphs: Number of training graphs, spread evenly over the source; None is all that are not held out.
        held_out: Number of held-out graphs, at most a tenth of the source.
        seed: Seed of the sample.
        reader: Name of the reader, guessed by default.
        **options: Options of the reader.
    """
    if graphs is not None and not isinstance(source, GraphCollection):
        reading = None if find_saved(source, reader, options) else find_reader(source, reader, options)
        if reading is not None and reading.reader == "smiles":
            return _sample_molecules(reading, graphs, held_out, seed)
    collection = open_collection(source, reader=reader, **options)
    rows = split_positions(len(collection), graphs, held_out, seed)
    return Sample(subset(collection, rows.training), subset(collection, rows.held_out), len(collection))


def split_positions(total: int, training: int | None, held_out: int, seed: int) -> Split:
    """Draw training and held-out positions, both spread evenly over `range(total)`.

    Args:
        total: Number of positions.
        training: Number of training positions; None is all that are not held out.
        held_out: Number of held-out positions, reduced to a tenth of `total` if larger.
        seed: Seed of the draw.
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
    positions = sample_evenly(total, training + held_out, rng)
    is_held_out = np.zeros(len(positions), dtype=bool)
    is_held_out[sample_evenly(len(positions), held_out, rng)] = True
    return Split(positions[~is_held_out], positions[is_held_out])


def sample_evenly(total: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide `range(total)` into `count` intervals of equal length and draw one position from each."""
    bounds = np.arange(count + 1, dtype=np.int64) * total // max(count, 1)
    return rng.integers(bounds[:-1], bounds[1:])


def select_rows(source: Source, wanted: NDArray[np.int64]) -> Source:
    """Only the rows with these ascending numbers, renumbered; rows without an id get the old number as id."""

    def rows() -> Iterator[Row]:
        remaining = iter(enumerate(wanted.tolist()))
        new_number, number = next(remaining, (0, -1))
        for row in source.rows():
            if row.number == number:
                yield row._replace(number=new_number, id=row.id or str(row.number))
                new_number, number = next(remaining, (0, -1))
                if number < 0:
                    return

    return replace(source, rows=rows, has_ids=True)


def _sample_molecules(reading: Reading, graphs: int, held_out: int, seed: int) -> Sample:
    from graphsc.data.molecules.conversion import load, prepare

    options = dict(reading.options)
    workers, strict = options.pop("workers", None), bool(options.pop("strict", False))
    listing = options.pop("rejected", None)
    rows, plan, total = prepare(reading.source, **options)  # type: ignore[arg-type]
    split = split_positions(total, graphs, held_out, seed)
    wanted = np.sort(np.concatenate(split))
    collection, rejected = load(
        select_rows(rows, wanted),
        replace(plan, has_ids=True),
        len(wanted),
        strict=strict,
        rejected=None if listing is None else Path(str(listing)),
        workers=workers if isinstance(workers, int) else None,
    )
    parsed = np.delete(wanted, [row.row for row in rejected])
    is_held_out = np.isin(parsed, split.held_out)
    if is_held_out.all():
        raise DataError("none of the rows to train on holds a molecule", where=rows.where)
    return Sample(
        subset(collection, np.flatnonzero(~is_held_out)),
        subset(collection, np.flatnonzero(is_held_out)),
        total,
    )
