"""Tables with a column of SMILES: CSV or TSV, plain or in .gz or .xz."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphsc.core.errors import DataError
from graphsc.data.molecules.lines import LONGEST_LINE, TOO_LONG, bounded_lines, hash_of, readable
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.sheet import delimiter_of, kind_of, open_text, stem_of

# Names under which a column is taken for SMILES without being asked for.
USUAL = (
    "smiles", "smile", "smiles_string", "canonical_smiles", "canonicalsmiles", "isomeric_smiles",
    "isomericsmiles", "mol", "molecule", "structure",
)  # fmt: skip
ALL = "*"  # as label column: every one but those of SMILES and ids


def rows_of_table(
    path: Path, smiles_column: str | None, label_columns: str | Sequence[str] | None, id_column: str | None
) -> Source:
    """The rows of a table; its header is read here, and decides what each column is."""
    delimiter = delimiter_of(kind_of(path))
    with readable(path), open_text(path, errors="replace") as file:
        header = [cell.strip() for cell in next(csv.reader(bounded_lines(file), delimiter=delimiter), [])]
    if not any(header):
        raise DataError("table has no header", where=f"{path}, line 1")
    for place, name in enumerate(header):
        if name and name in header[:place]:
            raise DataError(f"column {name!r} appears twice", where=f"{path}, line 1", hint="rename one")
    smiles = _pick_smiles(header, smiles_column, path)
    identity = None if id_column is None else _column(header, id_column, path)
    asked = (label_columns,) if isinstance(label_columns, str) else tuple(label_columns or ())
    rest = [name for name in header if name and name not in (smiles, identity)]
    tasks = tuple(rest) if asked == (ALL,) else tuple(_column(header, name, path) for name in asked)
    if smiles in tasks:
        raise DataError(f"column {smiles!r} holds the molecules and cannot be a label", where=str(path))
    at = header.index(smiles)
    at_id = None if identity is None else header.index(identity)
    at_labels = [header.index(task) for task in tasks]
    width = len(header)

    def rows() -> Iterator[Row]:
        with readable(path), open_text(path, errors="replace") as file:
            reader = csv.reader(bounded_lines(file), delimiter=delimiter, strict=True)
            number = -1
            try:
                next(reader)
                for cells in reader:
                    if len(cells) < 2 and not "".join(cells).strip():
                        continue  # a blank line
                    number += 1
                    long = cells[-1] == TOO_LONG
                    if long or len(cells) != width:
                        problem = (
                            f"line is longer than {LONGEST_LINE:,} characters" if long
                            else f"{len(cells)} cells where the header has {width}"
                        )  # fmt: skip
                        text = cells[at] if at < len(cells) and not long else ""
                        yield Row(number, reader.line_num, text, str(number), ("",) * len(tasks), problem)
                        continue
                    yield Row(
                        number,
                        reader.line_num,
                        cells[at].strip(),
                        None if at_id is None else cells[at_id].strip(),
                        tuple([cells[place].strip() for place in at_labels]),
                    )
            except csv.Error as error:
                where = f"{path}, line {reader.line_num}"
                raise DataError(f"not a table: {error}", where=where, hint="mend the quotes there") from error

    return Source(stem_of(path), str(path), rows, lambda: hash_of(path), tasks, at_id is not None)


def _pick_smiles(header: Sequence[str], asked: str | None, path: Path) -> str:
    if asked is not None:
        return _column(header, asked, path)
    found = [name for name in header if name.lower() in USUAL]
    if len(found) == 1:
        return found[0]
    which = f"{' and '.join(found)} could each be it" if found else "none has a usual name"
    raise DataError(
        f"which column holds the SMILES? {which}",
        where=str(path),
        hint=f"set smiles_column; columns: {_listing(header)}",
    )


def _column(header: Sequence[str], asked: str, path: Path) -> str:
    if asked not in header or not asked:
        raise DataError(f"no column {asked!r}", where=str(path), hint=f"columns: {_listing(header)}")
    return asked


def _listing(header: Sequence[str]) -> str:
    shown = ", ".join(name for name in header[:30] if name)
    return f"{shown} and {len(header) - 30} more" if len(header) > 30 else shown
