"""Lines and errors of text files that people bring: bounded, and told in a sentence."""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from graphsc.core.errors import DataError

LONGEST_LINE = 100_000  # characters; under the limit of Python's csv module for one cell
TOO_LONG = "\0too long"  # stands for a longer line; no text with a NUL is taken for a molecule


def bounded_lines(file: TextIO) -> Iterator[str]:
    """Lines of bounded length, so that a file without line ends does not fill the memory."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            while (more := file.readline(LONGEST_LINE)) and not more.endswith("\n"):
                pass
            line = TOO_LONG + "\n"
        yield line


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever reading this file may raise, as one sentence with its place."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError("compressed file is damaged", where=str(path)) from error
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read: {reason}", where=str(path), hint="check the path") from error


def hash_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with readable(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
