"""Archives from elsewhere: looked at before anything is read, never trusted with a path."""

from __future__ import annotations

import lzma
import shutil
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from graphsc.core.errors import DamagedFileError, UnsafeArchiveError

SIZE_CAP = 4 * 2**30  # bytes unpacked; the largest TU set has well under one
MEMBER_CAP = 100_000
# All that reading a member of a damaged zip has been seen to raise.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError,
)  # fmt: skip


def open_archive(path: Path, size_cap: int = SIZE_CAP) -> zipfile.ZipFile:
    """Open a zip after checking every member's path, kind and declared size."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DamagedFileError(f"not a readable zip: {error}", where=str(path)) from error
    try:
        _check_members(archive, path, size_cap)
    except BaseException:
        archive.close()
        raise
    return archive


def _check_members(archive: zipfile.ZipFile, path: Path, size_cap: int) -> None:
    members = archive.infolist()
    if len(members) > MEMBER_CAP:
        raise UnsafeArchiveError(f"unsafe archive: {len(members):,} members", where=str(path))
    total = 0
    folders: set[tuple[str, ...]] = set()
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        folders.update(parts[:depth] for depth in range(1, len(parts)))
        mode = member.external_attr >> 16
        reason = None
        if not member.filename:
            reason = "has no name"
        elif parts and (parts[0].startswith("/") or ":" in parts[0]):  # two slashes are a root of their own
            reason = "has an absolute path"
        elif ".." in parts:
            reason = "leads outside its folder"
        elif stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            reason = "is a link or a device"
        elif "\0" in member.filename:
            reason = "has a name with a NUL"
        total += member.file_size
        if total > size_cap:
            reason = f"takes the unpacked size beyond {size_cap:,} bytes"
        if reason:
            raise UnsafeArchiveError(
                f"unsafe archive member {member.filename[:80]!r} {reason}",
                where=str(path),
                hint="nothing was unpacked",
            )
    seen: set[tuple[str, ...]] = set()
    for member in members:
        parts = PurePosixPath(member.filename.replace("\\", "/")).parts
        if member.is_dir():
            continue
        if parts in folders or parts in seen or not parts:
            raise UnsafeArchiveError(
                f"unsafe archive member {member.filename[:80]!r} has the place of another",
                where=str(path),
                hint="nothing was unpacked",
            )
        seen.add(parts)


def unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """Unpack a checked archive into an empty folder, member by member."""
    folder.mkdir(parents=True)
    for member in archive.infolist():
        if member.is_dir():
            continue
        target = folder.joinpath(*PurePosixPath(member.filename.replace("\\", "/")).parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with archive.open(member) as source, open(target, "xb") as sink:
                shutil.copyfileobj(source, sink, 2**20)
        except ARCHIVE_ERRORS as error:
            raise DamagedFileError(
                f"archive is damaged at {member.filename[:80]!r}: {error}", where=str(archive.filename)
            ) from error
