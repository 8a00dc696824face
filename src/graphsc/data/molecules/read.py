"""Molecules of any source into memory, with the rows they came from."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.chunk import Plan, chunk_to_collection
from graphsc.data.molecules.fill import chunk_size, fill
from graphsc.data.molecules.outcome import all_rejected, notes_of
from graphsc.data.molecules.parts import Parts
from graphsc.data.molecules.prepare import RowOptions, prepare
from graphsc.data.molecules.rejects import Rejected, write_rejected
from graphsc.data.molecules.rows import Source, chunks_of

SEVERAL = 4  # chunks from which on starting other processes is worth while


@dataclass(frozen=True)
class MoleculeTable:
    """The molecules of a source, and every row of it: those kept and those left out."""

    collection: GraphCollection
    rows: int  # of the source
    kept: list[int]  # the row of each molecule, from 0
    smiles: list[str]  # of each molecule, as it stands in the source
    rejected: list[Rejected]


def read_molecules(source: object, **options: Unpack[RowOptions]) -> MoleculeTable:
    """Read molecules with what ties them to their source: for joining results to its rows.

    The options are those of the `smiles` door.
    """
    rows, plan, number = prepare(source, **options)
    collection, rejected = load(rows, plan, number)
    lost = {one.row for one in rejected}
    kept = [(row.number, row.smiles) for row in rows.rows() if row.number not in lost]
    return MoleculeTable(collection, number, [row for row, _ in kept], [text for _, text in kept], rejected)


def load(
    source: Source,
    plan: Plan,
    rows: int,
    *,
    strict: bool = False,
    rejected: Path | None = None,
    workers: int | None = None,
) -> tuple[GraphCollection, list[Rejected]]:
    """The molecules in memory; many are featurised on all cores."""
    size = chunk_size(rows)
    if rows > SEVERAL * size and (workers or os.cpu_count() or 1) > 1:
        with tempfile.TemporaryDirectory() as folder:
            parts = Parts(Path(folder))
            outcomes = fill(parts, source, plan, rows, size=size, workers=workers, strict=strict)
            lost = all_rejected(outcomes, source, strict)
            # Joined in memory, because the folder goes.
            collection = GraphCollection.concatenate(list(parts.collections(range(len(outcomes)))))
    else:
        done = [chunk_to_collection(chunk, plan) for chunk in chunks_of(source.rows(), size)]
        outcomes = [outcome for _, outcome in done]
        lost = all_rejected(outcomes, source, strict)
        found = [part for part, _ in done if part is not None]
        collection = GraphCollection.concatenate(found) if len(found) > 1 else found[0]
    if rejected is not None and lost:
        write_rejected(rejected, lost)
    return replace(collection, notes=notes_of(outcomes), rejected=tuple(lost)), lost
