"""`make fuzz`, second part: every kind of file we write, with single bits flipped and cut short.

A file is damaged in one place and read the way the product reads it. It must be refused by an error of ours,
or said to be edited, or give exactly what it gave before. Anything else is a silent change.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from faults.guard import Guard, HungError

FLIPS = 20_000  # of a file; all of its bits where it has fewer
CUTS = 2_000


@dataclass(frozen=True)
class Stored:
    """A kind of file: how one is made, and how the product reads it.

    `seed(home)` makes the file among the others that it needs, and gives its path. `read(home)` gives what is
    read, or raises. A file that `grows` by lines may be cut between two of them: it then reads as it was
    before the last lines were added, which no file can tell of itself. Where `restore` is true, reading
    changes the folder, which is put back each time.
    """

    seed: Callable[[Path], Path]
    read: Callable[[Path], object]
    grows: bool = False
    restore: bool = False


def damage_one(
    stored: Stored, flips: int = FLIPS, cuts: int = CUTS, seed: int = 0, keep: Path | None = None,
    seconds: float = inf,
) -> dict[str, object]:  # fmt: skip
    """Damage one file in as many ways, and count what reading it gave.

    Args:
        stored: The kind of file.
        flips: Bits to flip, one at a time; all of them where the file has no more.
        cuts: Lengths to cut it to; all of them where it is no longer.
        seed: Of the choice of bits and lengths in a larger file.
        keep: Folder for the files of findings.
        seconds: When to stop, at the latest.

    Returns:
        Figures by name. "silent" counts damaged files that gave something else without a word, "errors"
        those that were refused by anything but one of our errors.
    """
    home = Path(tempfile.mkdtemp(prefix="bits-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    guard, counts = Guard(), Counter[str]()
    try:
        path = stored.seed(home)
        content = path.read_bytes()
        before = {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = digest(stored.read(home))
        earlier = set(_earlier(stored, home, path, content)) if stored.grows else set()
        began = time.monotonic()
        for kind, place, damaged in damages(content, flips, cuts, seed):
            if time.monotonic() - began > seconds:
                break
            if stored.restore:
                _restore(home, before)
            path.write_bytes(damaged)
            outcome, problem = _outcome(stored, home, guard, expected)
            if outcome == "silent" and kind == "cut" and problem in earlier:
                outcome = "earlier"
            counts[kind] += 1
            counts[outcome] += 1
            if outcome in ("silent", "errors") and keep is not None:
                folder = keep / f"{path.name}-{kind}-{place}"
                folder.mkdir(parents=True, exist_ok=True)
                (folder / path.name).write_bytes(damaged)
                (folder / "problem.txt").write_text(problem)
        lasted = time.monotonic() - began
    finally:
        shutil.rmtree(home, ignore_errors=True)
    kinds = ("refused", "edited", "same", "earlier", "silent", "errors")
    return {
        "seed": seed, "bytes": len(content), "flips": counts["flip"], "cuts": counts["cut"],
        **{kind: counts[kind] for kind in kinds}, "seconds": round(lasted, 1),
    }  # fmt: skip


def damages(content: bytes, flips: int, cuts: int, seed: int) -> Iterator[tuple[str, int, bytes]]:
    """Kind, place and damaged content: single bits, then beginnings of the file."""
    draw = random.Random(f"{seed}/{len(content)}")
    for bit in _some(8 * len(content), flips, draw):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield "flip", bit, bytes(damaged)
    for length in _some(len(content), cuts, draw):
        yield "cut", length, content[:length]


def _some(total: int, most: int, draw: random.Random) -> Sequence[int]:
    return range(total) if total <= most else sorted(draw.sample(range(total), most))


def _earlier(stored: Stored, home: Path, path: Path, content: bytes) -> Iterator[str]:
    """What the file gave when it had fewer lines."""
    lines = content.splitlines(keepends=True)
    for count in range(len(lines)):
        path.write_bytes(b"".join(lines[:count]))
        yield digest(stored.read(home))


def _outcome(stored: Stored, home: Path, guard: Guard, expected: str) -> tuple[str, str]:
    """What reading gave: the name of a count, and what was read or went wrong."""
    from graphsc.core.errors import GraphscError, GraphscWarning

    try:
        with warnings.catch_warnings(), guard.watch():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", GraphscWarning)
            found = digest(stored.read(home))
    except GraphscWarning as warning:
        return "edited", str(warning)
    except GraphscError as error:
        text = str(error)
        return ("refused", text) if text and "\n" not in text else ("errors", text)
    except (Exception, HungError):
        return "errors", traceback.format_exc()
    return ("same" if found == expected else "silent"), found


def _restore(home: Path, before: Mapping[Path, bytes]) -> None:
    for file in list(home.rglob("*")):
        if file.is_file() and file not in before:
            file.unlink()
    for file, content in before.items():
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


def digest(value: object) -> str:
    """A hash of nested values and arrays, down to the last bit."""
    found = hashlib.sha256()
    for text in _texts(value):
        found.update(text)
    return found.hexdigest()


def _texts(value: object) -> Iterator[bytes]:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        yield value.tobytes() if value.dtype != object else repr(value.tolist()).encode()
    elif isinstance(value, Mapping):
        yield b"{"
        for key in sorted(value, key=repr):
            yield repr(key).encode()
            yield from _texts(value[key])
        yield b"}"
    elif isinstance(value, (list, tuple)):
        yield b"["
        for each in value:
            yield from _texts(each)
            yield b","
        yield b"]"
    elif value is None or isinstance(value, (str, bytes, int, float, Path, np.generic)):
        yield repr(value).encode()
    else:
        raise TypeError(f"cannot compare {type(value)}")
