"""Millions of molecules to one collection file: in chunks, on all cores, going on after a kill.

Chunks are featurised by worker processes and kept as parts in a folder beside the target; the last step
strings them together. Neither needs more memory than some chunks, and the bytes of the file depend on the
source alone, not on the number of workers nor on what was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, TypedDict, Unpack, cast

import numpy as np

import graphsc
from graphsc import __version__
from graphsc.core.errors import (
    CannotWriteError,
    ConfigError,
    DamagedFileError,
    DataError,
    GraphscError,
    NotFoundError,
)
from graphsc.core.files import InUseError, StoppedError, file_lock, stop_requests, write_atomic
from graphsc.core.registry import require
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import FeatureTable
from graphsc.data.molecules.featurize import (
    ATOM,
    BOND,
    CHIRALITY,
    DIRECTION,
    MAX_ATOMS,
    MAX_LENGTH,
    featurize,
)
from graphsc.data.molecules.labels import label_table, problem_of, survey
from graphsc.data.molecules.rejected import SHOWN, Outcome, Rejected, all_rejected, notes_of, write_rejected
from graphsc.data.molecules.rows import Row, Source, chunks_of, open_rows, pack
from graphsc.data.storage import save_parts

# One chunk of rows to one collection: what a worker does, and what a short source needs once.


@dataclass(frozen=True)
class Plan:
    """What is the same for all chunks of a source."""

    name: str
    features: str
    tasks: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]
    has_ids: bool
    max_atoms: int
    max_length: int

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def chunk_to_collection(rows: Sequence[Row], plan: Plan) -> tuple[GraphCollection | None, Outcome]:
    """Featurise the rows that hold molecules; no collection where none does."""
    problems = [row.problem or problem_of(row, plan.tasks, plan.classes) for row in rows]
    found = featurize(
        [row.smiles if problem is None else "" for row, problem in zip(rows, problems, strict=True)],
        max_atoms=plan.max_atoms,
        max_length=plan.max_length,
    )
    rejected = [
        Rejected(row.number, row.line, row.smiles[:SHOWN], problems[position] or reason, row.id)
        for position, reason in found.rejected
        for row in (rows[position],)
    ]
    outcome = Outcome(len(rows), rejected, found.other_bonds)
    if not len(found.kept):
        return None, outcome
    kept = [rows[position] for position in found.kept.tolist()]
    ids: Ids = np.array([row.number for row in kept], dtype=np.int64)
    if plan.has_ids:
        ids = Strings.of(row.id or str(row.number) for row in kept)
    collection = build_collection(
        node_counts=found.node_counts,
        edge_counts=found.edge_counts,
        source=found.source,
        destination=found.destination,
        nodes=FeatureTable.of(len(found.atoms), found.atoms, [ATOM, CHIRALITY]),
        edges=FeatureTable.of(len(found.bonds), found.bonds, [BOND, DIRECTION]),
        labels=label_table([row.labels for row in kept], plan.tasks, plan.classes) if plan.tasks else None,
        tasks=plan.tasks,
        classes=plan.classes,
        ids=ids,
        name=plan.name,
        features=plan.features,
    )
    return collection, outcome


# Finished chunks on disk: each a collection of its own, with a note beside it that says it is whole.
#
# The note is written last and holds the hashes of both, so that what a killed process left half done is seen
# and done again.


class Parts:
    """The folder of a conversion's finished chunks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, index: int) -> Path:
        """The collection of a chunk."""
        return self.folder / f"part-{index:06d}.safetensors"

    def keep(self, index: int, collection: GraphCollection | None, outcome: Outcome) -> None:
        """Store a finished chunk; a chunk without a molecule has no collection."""
        content = None
        if collection is not None:
            collection.save(self.path(index))
            content = collection.content_hash
        told = json.dumps([content, outcome.rows, outcome.rejected, outcome.other_bonds])
        write_atomic(self._note(index), json.dumps({"sha256": _hash(told), "told": told}))

    def outcome(self, index: int) -> Outcome | None:
        """What became of a chunk, or None where it is not there or not whole."""
        told = self._told(index)
        if told is None:
            return None
        content, rows, rejected, other_bonds = told
        try:
            if content is not None and GraphCollection.open(self.path(index)).content_hash != content:
                return None
        except (DamagedFileError, NotFoundError):
            return None
        return Outcome(
            cast(int, rows),
            [Rejected(*row) for row in cast(list[tuple[int, int, str, str, str | None]], rejected)],
            cast(int, other_bonds),
        )

    def collections(self, indices: Sequence[int]) -> Iterator[GraphCollection]:
        """The collections of these chunks, in order, without those that hold nothing."""
        for index in indices:
            told = self._told(index)
            if told is not None and told[0] is not None:
                yield GraphCollection.open(self.path(index))

    def _note(self, index: int) -> Path:
        return self.folder / f"part-{index:06d}.json"

    def _told(self, index: int) -> list[object] | None:
        try:
            note = json.loads(self._note(index).read_bytes())
            told = note["told"]
            return cast(list[object], json.loads(told)) if _hash(told) == note["sha256"] else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None


def begin(folder: Path, wanted: str) -> None:
    """Keep the parts of interrupted work that was the same as the one `wanted` names, throw away others'.

    For whoever holds the folder's file `lock`.
    """
    told = folder / "plan.json"
    try:
        found = told.read_text()
    except OSError:
        found = ""
    if found != wanted:
        for path in folder.iterdir():
            if path.name != "lock":
                path.unlink()
        write_atomic(told, wanted)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Several workers at once: chunks go to whoever is free, answers come back as they are done.


POLL = 0.2  # seconds after which a caller may look whether it was asked to stop

Answer = tuple[int, int, int]  # chunk, rows, rows rejected


class Pool:
    """Worker processes that write finished chunks into one folder."""

    def __init__(self, workers: int, folder: Path, plan: Plan) -> None:
        require("rdkit")  # here, where a missing one is an error of one line
        root = str(Path(graphsc.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self._children = [
            # Our own interpreter and module, and no shell.
            subprocess.Popen(  # nosec B603
                # -P: a file of the working folder must not stand in for a module of the same name.
                [sys.executable, "-P", "-m", "graphsc.data.molecules.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("GRAPHSC_DEBUG") else subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,  # Ctrl-C is for us to hear, and to pass on in our own way
            )
            for _ in range(workers)
        ]
        self._selector = selectors.DefaultSelector()
        for child in self._children:
            self._selector.register(cast(IO[bytes], child.stdout), selectors.EVENT_READ, child)
            _send(child, [str(folder), plan.to_json()])

    def run(self, chunks: Iterable[tuple[int, list[Row]]]) -> Iterator[Answer | None]:
        """Answers in the order in which chunks are done, and None whenever a while has passed without."""
        waiting = iter(chunks)
        free = list(self._children)
        busy = 0
        following = next(waiting, None)
        while busy or following is not None:
            while free and following is not None:
                _send(free.pop(), [following[0], pack(following[1])])
                busy += 1
                following = next(waiting, None)  # read ahead while the workers work
            ready = self._selector.select(POLL)
            if not ready:
                yield None
            for key, _ in ready:
                child = cast("subprocess.Popen[bytes]", key.data)
                line = cast(IO[bytes], child.stdout).readline()
                if not line:
                    raise DataError(
                        f"a worker process ended with code {child.wait()}",
                        hint="is there enough memory? pass workers=1",
                    )
                answer = json.loads(line)
                if len(answer) == 2:
                    raise DataError(answer[1])
                free.append(child)
                busy -= 1
                yield cast(Answer, tuple(answer))

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for child in self._children:
            if error is not None:
                child.kill()
            with suppress(BrokenPipeError):
                cast(IO[bytes], child.stdin).close()
            cast(IO[bytes], child.stdout).close()
        for child in self._children:
            child.wait()


def _send(child: subprocess.Popen[bytes], message: object) -> None:
    pipe = cast(IO[bytes], child.stdin)
    with suppress(BrokenPipeError):  # it has died; reading its answer will say so
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()


# All chunks of a source as parts on disk, on all cores; those that are there already are left alone.


CHUNK = 20_000  # rows; a worker needs about 100 MB for them, and a kill loses so many at most
LEAST_CHUNK = 2_000  # fewer are not worth a file
MOST_PARTS = 400  # all are open at once at the end

Progress = Callable[[int, int], None]  # rows done, rows in all


def chunk_size(rows: int) -> int:
    """Rows a chunk: by the length of the source alone, so that another number of workers can go on."""
    return max(LEAST_CHUNK, min(CHUNK, rows // 32), -(-rows // MOST_PARTS))


def fill(
    parts: Parts,
    source: Source,
    plan: Plan,
    rows: int,
    *,
    size: int,
    workers: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Make every part that is not there yet; what became of each chunk, in order.

    Asked to stop by a signal, it ends with a `StoppedError`; what is done stays.
    """
    number = -(-rows // size)
    outcomes: dict[int, Outcome] = {}
    for index in range(number):
        outcome = parts.outcome(index)
        if outcome is not None:
            outcomes[index] = outcome
    done = sum(outcome.rows for outcome in outcomes.values())

    def missing() -> Iterator[tuple[int, list[Row]]]:
        for index, chunk in enumerate(chunks_of(source.rows(), size)):
            if index not in outcomes:
                yield index, chunk

    def finished(index: int) -> None:
        nonlocal done
        outcome = parts.outcome(index)
        if outcome is None:
            raise DataError("a finished part cannot be read back", where=str(parts.path(index)))
        outcomes[index] = outcome
        done += outcome.rows
        if strict:
            all_rejected([outcome], source, strict)
        if progress:
            progress(done, rows)

    if progress:
        progress(done, rows)
    # Waiting for several pipes at once is not to be had on Windows.
    cores = 1 if os.name == "nt" else min(workers or os.cpu_count() or 1, number - len(outcomes))
    with stop_requests() as request:
        for done_index in _work(parts, missing(), plan, cores):
            if done_index is not None:
                finished(done_index)
            request.check(str(parts.folder))
    return [outcomes[index] for index in sorted(outcomes)]


def _work(
    parts: Parts, chunks: Iterator[tuple[int, list[Row]]], plan: Plan, cores: int
) -> Iterator[int | None]:
    """Indices of chunks as they are done, and None now and then."""
    if cores <= 1:
        for index, chunk in chunks:
            parts.keep(index, *chunk_to_collection(chunk, plan))
            yield index
        return
    with Pool(cores, parts.folder, plan) as pool:
        for answer in pool.run(chunks):
            yield None if answer is None else answer[0]


@dataclass(frozen=True)
class Converted:
    """What a conversion has written."""

    path: Path
    name: str
    graphs: int
    rows: int  # of the source
    rejected: int  # rows left out
    listing: Path | None  # of the rows left out
    content_hash: str


def convert_smiles(
    source: object,
    target: Path,
    *,
    strict: bool = False,
    rejected: str | Path | None = None,
    workers: int | None = None,
    chunk: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[RowOptions],
) -> Converted:
    """Write all molecules of a source into one file; the same call goes on after a stop or a kill.

    The options are those of the `smiles` door. Rows without a molecule are listed in `rejected`, by default
    `NAME.rejected.csv` beside the target.
    """
    rows, plan, number = prepare(source, **options)
    listing = Path(rejected) if rejected is not None else target.with_suffix(".rejected.csv")
    parts = Parts(target.with_name(f".{target.name}.parts"))
    size = chunk or chunk_size(number)
    try:
        with file_lock(parts.folder / "lock"):
            # Parts of another source, version or plan are of no use.
            same = [__version__, require("rdkit").__version__, rows.fingerprint(), size, plan.to_json()]
            begin(parts.folder, json.dumps(same, sort_keys=True))
            outcomes = fill(
                parts, rows, plan, number, size=size, workers=workers, strict=strict, progress=progress
            )
            lost = all_rejected(outcomes, rows, strict)
            collections = list(parts.collections(range(len(outcomes))))
            content_hash = save_parts(collections, target, plan.name, notes_of(outcomes))
            if lost:
                write_rejected(listing, lost)
            else:
                listing.unlink(missing_ok=True)  # of another source under this name
            shutil.rmtree(parts.folder, ignore_errors=True)
    except (StoppedError, CannotWriteError):
        raise  # what is done stays, to go on from
    except InUseError as error:
        where = str(target)
        raise DataError(f"this file is being written by process {error.owner}", where=where) from error
    except OSError as error:
        raise DataError(f"cannot write: {error.strerror}", where=str(target)) from error
    except GraphscError:
        shutil.rmtree(parts.folder, ignore_errors=True)
        raise
    graphs = sum(map(len, collections))
    return Converted(target, plan.name, graphs, number, len(lost), listing if lost else None, content_hash)


# Molecules of any source into memory, with the rows they came from.


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


# A first look through a source: its rows, what they mean, how many there are.


class RowOptions(TypedDict, total=False):
    """What can be said of the rows of a source; the `smiles` door explains each."""

    name: str | None
    features: str
    smiles_column: str | None
    label_columns: str | Sequence[str] | None
    id_column: str | None
    max_atoms: int
    max_length: int


def prepare(
    source: object,
    *,
    name: str | None = None,
    features: str = "auto",
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    max_atoms: int = MAX_ATOMS,
    max_length: int = MAX_LENGTH,
) -> tuple[Source, Plan, int]:
    """Look through a source once: its rows, what they mean, how many there are."""
    require("rdkit")
    if max_atoms < 1 or max_length < 1:
        raise ConfigError("max_atoms and max_length must be at least 1")
    rows = open_rows(source, smiles_column=smiles_column, label_columns=label_columns, id_column=id_column)
    found = survey(rows)
    plan = Plan(name or rows.name, features, rows.tasks, found.classes, rows.has_ids, max_atoms, max_length)
    return rows, plan, found.rows
