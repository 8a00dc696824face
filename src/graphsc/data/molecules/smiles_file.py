"""Files of one SMILES string a line, with or without an id behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphsc.data.molecules.lines import LONGEST_LINE, TOO_LONG, bounded_lines, hash_of, readable
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.sheet import open_text

ENDINGS = (".smi", ".smiles")
HEADERS = ("smiles", "canonical_smiles", "isomeric_smiles")  # some files begin with a line of names


def is_smiles_file(path: Path) -> bool:
    """Whether a file is a list of SMILES by its name: .smi or .smiles, also with .gz or .xz."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".xz"):
        endings.pop()
    return bool(endings) and endings[-1] in ENDINGS


def rows_of_file(path: Path) -> Source:
    """One molecule a line, its id behind a space or tab where the first line has one."""
    with readable(path), open_text(path, errors="replace") as file:
        first = next((line for line in bounded_lines(file) if line.strip()), "").split(maxsplit=1)
    stem = path.name[: max(path.name.lower().rfind(ending) for ending in ENDINGS)]
    header = bool(first) and first[0].lower() in HEADERS
    has_ids = len(first) > 1 and not first[1].startswith("|")

    def rows() -> Iterator[Row]:
        number = 0
        skip = header
        with readable(path), open_text(path, errors="replace") as file:
            for line, text in enumerate(bounded_lines(file), start=1):
                text = text.strip()
                if not text:
                    continue
                if skip:
                    skip = False
                    continue
                if text == TOO_LONG:
                    problem = f"line is longer than {LONGEST_LINE:,} characters"
                    yield Row(number, line, "", problem=problem)
                else:
                    smiles, *rest = text.split(maxsplit=1)
                    # The id is what stands behind the SMILES, up to the next tab.
                    identity = rest[0].split("\t")[0].strip() if has_ids and rest else None
                    yield Row(number, line, smiles, identity)
                number += 1

    return Source(stem, str(path), rows, lambda: hash_of(path), has_ids=has_ids)
