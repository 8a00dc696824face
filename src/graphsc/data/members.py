"""Members of a wheel or a source distribution, read as streams and saved under a name of ours."""

from __future__ import annotations

import gzip
import lzma
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from graphsc.core.errors import DamagedFileError, DataError, UnsafeArchiveError
from graphsc.core.files import atomic_write
from graphsc.data.archive import ARCHIVE_ERRORS, MEMBER_CAP, SIZE_CAP, open_archive

HEADER = b"smiles"  # of a column, where several tables of one column become one list


def save_members(archive: Path, name: str, members: Sequence[str], target: Path) -> None:
    """Save one member as it is, or several strung together line by line; whole or not at all.

    `name` says what kind of archive it is; `target` ends in .smi.gz where members are to become a list.
    """
    try:
        with atomic_write(target) as file:
            if not target.name.endswith(".smi.gz"):
                for member in members:
                    with open_member(archive, name, member) as stream:
                        shutil.copyfileobj(stream, file, 2**20)
                return
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                for member in members:
                    with open_member(archive, name, member) as stream, _plain(stream, member) as lines:
                        first = lines.readline()
                        packed.write(b"" if first.strip().lower() == HEADER else first)
                        shutil.copyfileobj(lines, packed, 2**20)
    except (*ARCHIVE_ERRORS, tarfile.TarError) as error:
        raise DamagedFileError(f"archive is damaged: {error}", where=name) from error


@contextmanager
def open_member(archive: Path, name: str, member: str) -> Iterator[IO[bytes]]:
    """One member as a stream, after a look at every other member's path and kind."""
    if name.endswith((".whl", ".zip")):
        with open_archive(archive) as opened:
            if member not in opened.namelist():
                raise DataError(f"no {member} in {name}")
            with opened.open(member) as stream:
                yield stream
        return
    with tarfile.open(archive, "r:*") as tar:
        found = None
        total = 0
        for number, each in enumerate(tar):
            total += each.size
            _refuse(each, name, number, total)
            if each.name == member and each.isreg():
                found = each
        content = tar.extractfile(found) if found is not None else None
        if content is None:
            raise DataError(f"no {member} in {name}")
        with content:
            yield content


def _refuse(member: tarfile.TarInfo, name: str, number: int, total: int) -> None:
    parts = PurePosixPath(member.name).parts
    reason = None
    if number >= MEMBER_CAP:
        reason = f"is one of more than {MEMBER_CAP:,}"
    elif parts and parts[0].startswith("/"):
        reason = "has an absolute path"
    elif ".." in parts:
        reason = "leads outside its folder"
    elif not (member.isreg() or member.isdir()):
        reason = "is a link or a device"
    elif total > SIZE_CAP:
        reason = f"takes the unpacked size beyond {SIZE_CAP:,} bytes"
    if reason:
        raise UnsafeArchiveError(
            f"unsafe archive member {member.name[:80]!r} {reason}", where=name, hint="nothing was unpacked"
        )


@contextmanager
def _plain(stream: IO[bytes], member: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    if member.endswith(".gz"):
        with gzip.open(stream) as file:
            yield file
    elif member.endswith(".xz"):
        with lzma.open(stream) as file:
            yield file
    else:
        yield stream
