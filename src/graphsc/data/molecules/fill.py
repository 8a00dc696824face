"""All chunks of a source as parts on disk, on all cores; those that are there already are left alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from graphsc.core.errors import DataError
from graphsc.core.signals import stop_requests
from graphsc.data.molecules.chunk import Plan, chunk_to_collection
from graphsc.data.molecules.outcome import Outcome, all_rejected
from graphsc.data.molecules.parts import Parts
from graphsc.data.molecules.pool import Pool
from graphsc.data.molecules.rows import Row, Source, chunks_of

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
