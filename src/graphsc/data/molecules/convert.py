"""Millions of molecules to one collection file: in chunks, on all cores, going on after a kill.

Chunks are featurised by worker processes and kept as parts in a folder beside the target; the last step
strings them together. Neither needs more memory than some chunks, and the bytes of the file depend on the
source alone, not on the number of workers nor on what was interrupted.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from graphsc import __version__
from graphsc.core.errors import CannotWriteError, DataError, GraphscError
from graphsc.core.extras import require
from graphsc.core.lock import InUseError, hold
from graphsc.core.signals import StoppedError
from graphsc.data.molecules.fill import Progress, chunk_size, fill
from graphsc.data.molecules.outcome import all_rejected, notes_of
from graphsc.data.molecules.parts import Parts, begin
from graphsc.data.molecules.prepare import RowOptions, prepare
from graphsc.data.molecules.rejects import write_rejected
from graphsc.data.storage import save_parts


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
        with hold(parts.folder / "lock"):
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
