"""Rows of molecules as they stand in a source, read as a stream.

A row that cannot be used is handed on with its problem, to be listed with the others; only what makes a whole
file unreadable is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

LOOK_AT = 1_000  # entries of a list, to see what it holds


class Row(NamedTuple):
    """One row: its number from 0, its line, its text, and why it cannot be used, if so."""

    number: int
    line: int
    smiles: str
    id: str | None = None
    labels: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Source:
    """Where rows come from, and what their cells mean."""

    name: str
    where: str
    rows: Callable[[], Iterator[Row]]  # from the start, each time it is called
    fingerprint: Callable[[], str]
    tasks: tuple[str, ...] = ()
    has_ids: bool = False


def is_strings(source: object) -> bool:
    """Whether this is a list (tuple, array, pandas column) of strings, by its first entry that is there."""
    if isinstance(source, (list, tuple)):
        start: list[object] = list(source[:LOOK_AT])
    elif getattr(source, "ndim", 0) == 1 and hasattr(source, "tolist"):
        start = source[:LOOK_AT].tolist()  # type: ignore[index]
    else:
        return False
    return isinstance(next((text for text in start if not _missing(text)), None), str)


def _missing(text: object) -> bool:
    return text is None or (isinstance(text, float) and text != text)  # NaN is how pandas says it


def rows_of_strings(strings: object) -> Source:
    """A list of strings; anything else in it, such as None, is a row that cannot be used."""
    texts: list[object] = list(strings if isinstance(strings, (list, tuple)) else strings.tolist())  # type: ignore[attr-defined]

    def rows() -> Iterator[Row]:
        for number, text in enumerate(texts):
            if isinstance(text, str):
                yield Row(number, number + 1, text.strip())
            else:
                problem = "empty" if _missing(text) else f"not text but {type(text).__name__}"
                yield Row(number, number + 1, "", problem=problem)

    return Source(
        "molecules", "list", rows, lambda: sha256(repr(texts).encode("utf-8", "replace")).hexdigest()
    )


def chunks_of(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Rows by so many at a time."""
    while chunk := list(islice(rows, size)):
        yield chunk


# Number of the first row, lines, texts, ids, labels, problems by position; None where no row has any.
Packed = tuple[
    int, list[int], list[str], list[str | None] | None, list[list[str]] | None, list[tuple[int, str]]
]


def pack(rows: Sequence[Row]) -> Packed:
    """Rows that follow each other as columns: a third of the work of sending them one by one."""
    return (
        rows[0].number,
        [row.line for row in rows],
        [row.smiles for row in rows],
        [row.id for row in rows] if any(row.id is not None for row in rows) else None,
        [list(row.labels) for row in rows] if rows[0].labels else None,
        [(place, row.problem) for place, row in enumerate(rows) if row.problem is not None],
    )


def unpack(packed: Packed) -> list[Row]:
    """What `pack` packed."""
    first, lines, texts, ids, labels, problems = packed
    problem_of = dict(problems)
    return [
        Row(
            first + place,
            lines[place],
            text,
            None if ids is None else ids[place],
            () if labels is None else tuple(labels[place]),
            problem_of.get(place),
        )
        for place, text in enumerate(texts)
    ]
