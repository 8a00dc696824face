"""Conversion of SMILES to graph collections, in memory or to a file, on several processes.

Rows are featurised in chunks. A conversion to a file stores finished chunks beside the target, so that it can
be resumed after a stop or a kill, and writes the target from them. Neither step needs more memory than a few
chunks. The bytes of the file depend only on the source, not on the number of workers or on interruptions.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from graphsc import __version__
from graphsc.core.chunks import ChunkStore, open_chunks
from graphsc.core.errors import ConfigError, GraphscError
from graphsc.core.files import StoppedError
from graphsc.core.parallel import available_jobs, run_parallel
from graphsc.core.parts import source_changed
from graphsc.core.registry import require
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import FeatureTable
from graphsc.data.molecules.featurize import (
    ATOM_COLUMNS,
    BOND,
    DIRECTION,
    MAX_ATOMS,
    MAX_LENGTH,
    featurize,
)
from graphsc.data.molecules.labels import Censored, count_censored, label_table, problem_of, survey
from graphsc.data.molecules.rejected import (
    SHOWN,
    Outcome,
    Rejected,
    all_rejected,
    common_reasons,
    is_listing,
    notes_of,
    write_rejected,
)
from graphsc.data.molecules.rows import Packed, Row, Source, chunks_of, open_rows, pack, unpack
from graphsc.data.readers.csv import Decimal
from graphsc.data.storage import save_parts

CHUNK = 20_000  # rows; featurising them takes about 100 MB
LEAST_CHUNK = 2_000  # rows; smaller chunks cost more in files than they save
MOST_CHUNKS = 400  # all are mapped at once when the target is written
SEVERAL = 4  # chunks; for fewer, starting worker processes takes longer than the work

Progress = Callable[[int, int], None]  # rows done, rows in total


class RowOptions(TypedDict, total=False):
    """Options for reading a source, explained at the `smiles` reader."""

    name: str | None
    features: str
    smiles_column: str | None
    label_columns: str | Sequence[str] | None
    id_column: str | None
    separator: str | None
    decimal: Decimal | None
    max_atoms: int
    max_length: int
    censored: Censored


@dataclass(frozen=True)
class Plan:
    """Settings that all chunks of a source share."""

    name: str
    features: str
    tasks: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    has_ids: bool
    max_atoms: int
    max_length: int
    censored: Censored = "drop"


def prepare(
    source: object,
    *,
    name: str | None = None,
    features: str = "auto",
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    max_atoms: int = MAX_ATOMS,
    max_length: int = MAX_LENGTH,
    censored: Censored = "drop",
) -> tuple[Source, Plan, int]:
    """Read through a source once.

    Returns:
        The source, the settings for its chunks, and its number of rows.
    """
    require("rdkit")
    if max_atoms < 1 or max_length < 1:
        raise ConfigError("max_atoms and max_length must be at least 1")
    if censored not in ("drop", "keep"):
        raise ConfigError(f"censored is {censored!r}", hint="use drop or keep")
    rows = open_rows(
        source, smiles_column=smiles_column, label_columns=label_columns, id_column=id_column,
        separator=separator, decimal=decimal,
    )  # fmt: skip
    found = survey(rows)
    plan = Plan(
        name or rows.name, features, rows.tasks, found.classes, rows.has_ids, max_atoms, max_length, censored
    )
    return rows, plan, found.rows


def chunk_to_collection(rows: Sequence[Row], plan: Plan) -> tuple[GraphCollection | None, Outcome]:
    """Featurise the rows that hold molecules; the collection is None if no row does."""
    problems = [row.problem or problem_of(row, plan.tasks, plan.classes) for row in rows]
    molecules = featurize(
        [row.smiles if problem is None else "" for row, problem in zip(rows, problems, strict=True)],
        max_atoms=plan.max_atoms,
        max_length=plan.max_length,
    )
    rejected = [
        Rejected(row.number, row.line, row.smiles[:SHOWN], problems[position] or reason, row.id)
        for position, reason in molecules.rejected
        for row in (rows[position],)
    ]
    valid = [rows[position] for position in molecules.kept.tolist()]
    censored = count_censored(valid, plan.tasks, plan.classes)
    outcome = Outcome(len(rows), rejected, molecules.other_bonds, censored)
    if not valid:
        return None, outcome
    labels = None
    if plan.tasks:
        labels = label_table([row.labels for row in valid], plan.tasks, plan.classes, plan.censored)
    ids: Ids = np.array([row.number for row in valid], dtype=np.int64)
    if plan.has_ids:
        ids = Strings.of(row.id or str(row.number) for row in valid)
    collection = build_collection(
        node_counts=molecules.node_counts,
        edge_counts=molecules.edge_counts,
        source=molecules.source,
        destination=molecules.destination,
        nodes=FeatureTable.of(len(molecules.atoms), molecules.atoms, ATOM_COLUMNS),
        edges=FeatureTable.of(len(molecules.bonds), molecules.bonds, [BOND, DIRECTION]),
        labels=labels,
        tasks=plan.tasks,
        classes=plan.classes,
        ids=ids,
        name=plan.name,
        features=plan.features,
    )
    return collection, outcome


def chunk_size(rows: int) -> int:
    """Rows per chunk, from the length of the source alone, so that another number of workers can resume."""
    return max(LEAST_CHUNK, min(CHUNK, rows // 32), -(-rows // MOST_CHUNKS))


def _convert_chunk(plan: Plan, chunk: tuple[int, Packed]) -> tuple[int, Outcome, bytes]:
    """Index, outcome and collection file (empty without a molecule) of a chunk; runs in a worker."""
    index, rows = chunk
    collection, outcome = chunk_to_collection(unpack(rows), plan)
    file = io.BytesIO()
    if collection is not None:
        save_parts([collection], file, collection.name, collection.notes)
    return index, outcome, file.getvalue()


def _convert_chunks(
    chunks: ChunkStore,
    source: Source,
    plan: Plan,
    rows: int,
    *,
    size: int,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress = lambda done, total: None,
) -> tuple[list[GraphCollection], list[Outcome]]:
    """Convert every chunk that is not stored yet; give the collections and outcomes of all, in order."""
    total = -(-rows // size)
    missing = set(chunks.missing(total))
    outcomes = {index: outcome_of(chunks.facts(index)) for index in range(total) if index not in missing}
    done = sum(outcome.rows for outcome in outcomes.values())
    progress(done, rows)

    def pieces() -> Iterator[tuple[int, Packed]]:
        for index, chunk in enumerate(chunks_of(source.rows(), size)):
            if index in missing:
                yield index, pack(chunk)

    jobs = min(workers or available_jobs(), len(missing)) or 1
    with run_parallel(
        partial(_convert_chunk, plan), pieces(), jobs=jobs, where=str(chunks.folder)
    ) as results:
        for index, outcome, content in results:
            chunks.write(index, content, asdict(outcome))
            outcomes[index] = outcome
            done += outcome.rows
            if strict:
                all_rejected([outcome], source, strict)
            progress(done, rows)
    if len(outcomes) != total:
        raise GraphscError(
            f"{total - len(outcomes):,} of {total:,} chunks are missing, as if a worker process had died",
            where=source.where, hint="run the same command again, which converts only these",
        )  # fmt: skip
    if done != rows:
        raise source_changed(source.where)
    ordered = [outcomes[index] for index in range(total)]
    collections = [
        GraphCollection.open(chunks.path(index))
        for index, outcome in enumerate(ordered)
        if len(outcome.rejected) < outcome.rows
    ]
    return collections, ordered


def outcome_of(facts: dict[str, Any]) -> Outcome:
    """The outcome of a chunk from its stored facts."""
    rejected = [Rejected(*row) for row in facts["rejected"]]
    censored = {task: (int(count), str(first)) for task, (count, first) in facts["censored"].items()}
    return Outcome(facts["rows"], rejected, facts["other_bonds"], censored)


@dataclass(frozen=True)
class Converted:
    """Summary of a conversion to a file."""

    path: Path
    name: str
    graphs: int
    rows: int  # of the source
    rejected: int  # rows without a usable molecule
    listing: Path | None  # of the rejected rows
    content_hash: str
    reasons: tuple[tuple[str, int], ...] = ()  # the most frequent ones of rejected rows


def convert_smiles(
    source: object,
    target: Path,
    *,
    strict: bool = False,
    rejected: str | Path | None = None,
    workers: int | None = None,
    chunk: int | None = None,
    number_rows: bool = False,
    progress: Progress = lambda done, total: None,
    **options: Unpack[RowOptions],
) -> Converted:
    """Convert all molecules of a source to one collection file.

    After a stop or a kill, the same call resumes from the chunks that were finished.

    Args:
        source: A SMILES file, a table with a column of SMILES, or a list of SMILES strings.
        target: The collection file to write.
        strict: Raise an error at the first row without a usable molecule.
        rejected: Where to list rows without a usable molecule; `NAME.rejected.csv` beside the target by
            default.
        workers: Number of worker processes; all cores by default.
        chunk: Rows per chunk; chosen from the number of rows by default.
        number_rows: Make row numbers the ids, also of a source that has ids.
        progress: Called with the rows done and the rows in total.
        options: The options of the `smiles` reader.

    Raises:
        DataError: The source cannot be read, or holds no molecule.
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    rows, plan, total = prepare(source, **options)
    if number_rows:
        plan = replace(plan, has_ids=False)
    source_hash = rows.fingerprint()
    listing = Path(rejected) if rejected is not None else target.with_suffix(".rejected.csv")
    size = chunk or chunk_size(total)
    identity = {
        "verb": "convert",
        "version": __version__,
        "rdkit": require("rdkit").__version__,
        "source": source_hash,
        "chunk": size,
        "plan": asdict(plan),
    }
    with open_chunks(target, identity) as chunks:
        # Only success deletes finished chunks, or a source that changed: some may be of its other content.
        try:
            collections, outcomes = _convert_chunks(
                chunks, rows, plan, total, size=size, workers=workers, strict=strict, progress=progress
            )
            lost = all_rejected(outcomes, rows, strict)
            if rows.fingerprint() != source_hash:
                raise source_changed(rows.where)
        except GraphscError as error:
            if rows.fingerprint() != source_hash:
                chunks.remove()
                if not isinstance(error, StoppedError):
                    raise source_changed(rows.where) from error
            raise
        ours = is_listing(listing)
        if lost and rejected is None and listing.exists() and not ours:
            raise ConfigError(
                "the rejected rows would replace a file that this command did not write", where=str(listing),
                hint="move it, or choose another name: --reader-set rejected=FILE",
            )  # fmt: skip
        content_hash = save_parts(collections, target, plan.name, notes_of(outcomes, plan.censored))
        if lost:
            write_rejected(listing, lost)
        elif ours:
            listing.unlink()  # of an earlier source under this name
    graphs = sum(map(len, collections))
    return Converted(
        target, plan.name, graphs, total, len(lost), listing if lost else None, content_hash,
        tuple(common_reasons(row.reason for row in lost)),
    )  # fmt: skip


@dataclass(frozen=True)
class MoleculeTable:
    """The molecules of a source, and how they relate to its rows."""

    collection: GraphCollection
    rows: int  # of the source
    kept: list[int]  # row of each molecule, from 0
    smiles: list[str]  # of each molecule, as in the source
    rejected: list[Rejected]


def read_molecules(source: object, **options: Unpack[RowOptions]) -> MoleculeTable:
    """Read molecules together with the rows they came from, to join results to the source.

    Args:
        source: A SMILES file, a table with a column of SMILES, or a list of SMILES strings.
        options: The options of the `smiles` reader.
    """
    rows, plan, total = prepare(source, **options)
    collection, rejected = load(rows, plan, total)
    lost = {row.row for row in rejected}
    kept = [(row.number, row.smiles) for row in rows.rows() if row.number not in lost]
    return MoleculeTable(collection, total, [row for row, _ in kept], [text for _, text in kept], rejected)


def load(
    source: Source,
    plan: Plan,
    rows: int,
    *,
    strict: bool = False,
    rejected: Path | None = None,
    workers: int | None = None,
) -> tuple[GraphCollection, list[Rejected]]:
    """Read the molecules of a prepared source into memory, on several processes if there are many.

    Returns:
        The collection, and the rows without a usable molecule.
    """
    size = chunk_size(rows)
    if rows > SEVERAL * size and (workers or os.cpu_count() or 1) > 1:
        with (
            tempfile.TemporaryDirectory() as folder,
            open_chunks(Path(folder) / "molecules", {}) as chunks,
        ):
            parts, outcomes = _convert_chunks(
                chunks, source, plan, rows, size=size, workers=workers, strict=strict
            )
            lost = all_rejected(outcomes, source, strict)
            collection = GraphCollection.concatenate(parts)  # a copy in memory, because the folder goes
    else:
        done = [chunk_to_collection(chunk, plan) for chunk in chunks_of(source.rows(), size)]
        outcomes = [outcome for _, outcome in done]
        lost = all_rejected(outcomes, source, strict)
        parts = [part for part, _ in done if part is not None]
        collection = GraphCollection.concatenate(parts) if len(parts) > 1 else parts[0]
    if rejected is not None and lost:
        write_rejected(rejected, lost)
    return replace(collection, notes=notes_of(outcomes, plan.censored), rejected=tuple(lost)), lost
