"""Data sets from their public addresses: over https, bounded, verified, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.files import atomic_write, process_alive
from graphsc.data.archive import open_archive, unpack
from graphsc.data.named_set import NamedSet
from graphsc.data.names import cache_folder, looked_in

SIZE_CAP = 2**30  # bytes on the wire
TIMEOUT = 20.0  # seconds without an answer or without a byte
TOTAL_TIME = 3600.0  # seconds for a whole download; a trickle is no download
BLOCK = 2**16

Progress = Callable[[int, int | None], None]


def download(
    address: str,
    target: Path,
    *,
    size_cap: int = SIZE_CAP,
    timeout: float = TIMEOUT,
    sha256: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Fetch one file; it appears under its name only when it is complete and verified."""
    digest = hashlib.sha256()
    deadline = time.monotonic() + TOTAL_TIME
    with connect(address, timeout) as answer, atomic_write(target) as file:
        declared = answer.headers.get("Content-Length")
        total = int(declared) if declared and declared.isdecimal() else None
        done = 0
        while True:
            try:
                block = answer.read(BLOCK)
            except (OSError, ValueError) as error:
                raise _unreachable(address, error) from error
            if not block:
                break
            done += len(block)
            if done > size_cap or (total or 0) > size_cap:
                raise DataError(f"download is larger than {size_cap:,} bytes", where=address)
            if time.monotonic() > deadline:
                raise DataError("download takes too long", where=address)
            digest.update(block)
            file.write(block)
            if progress:
                progress(done, total)
        if total is not None and done != total:
            raise DataError(f"download ended after {done:,} of {total:,} bytes", where=address)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise DataError(
                f"sha256 of the download is {digest.hexdigest()}, expected {sha256}", where=address
            )


def fetch_named(entry: NamedSet, *, address: str | None = None, progress: Progress | None = None) -> Path:
    """Download a named set, check it, and move it into the cache; return its file or folder."""
    if entry.files:
        from graphsc.data.index import fetch_molecules

        return fetch_molecules(entry, progress=progress)
    from graphsc.data.doors.tu import read_tu

    cache = cache_folder()
    target = cache / entry.title
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    remove_stray_folders(cache)
    work = cache / f".{entry.title}.{os.getpid()}.tmp"
    work.mkdir()
    try:
        zipped = work / f"{entry.title}.zip"
        try:
            download(address or entry.address, zipped, progress=progress)
        except NotFoundError as error:
            raise NotFoundError(
                f"{error.what}; no copy of {entry.name!r} on this machine either",
                where=f"looked in {looked_in()}",
                hint=f"put {entry.title}.zip into one of these folders",
            ) from error
        with open_archive(zipped) as archive:
            unpack(archive, work / "unpacked")
        found = next((work / "unpacked").rglob("*_A.txt"), None)
        if found is None:
            raise DataError("the archive holds no TU data set", where=entry.address)
        collection = read_tu(found.parent)
        if entry.content_hash and collection.content_hash != entry.content_hash:
            raise DataError(
                f"sha256 of the graphs is {collection.content_hash}, expected {entry.content_hash}",
                where=entry.address,
                hint="nothing was kept",
            )
        found.parent.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def remove_stray_folders(cache: Path) -> None:
    """Delete what fetches left behind that were killed."""
    for folder in cache.glob(".*.tmp"):
        pid = folder.name.split(".")[-2]
        if folder.is_dir() and pid.isdecimal() and not process_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def connect(address: str, timeout: float = TIMEOUT) -> urllib.request._UrlopenRet:
    """Open an https address, or say in a sentence why not."""
    # Plain http only to this machine, for tests and mirrors behind a tunnel.
    if not address.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise DataError("only https addresses are fetched", where=address)
    try:
        # The scheme is checked above.
        return urllib.request.urlopen(address, timeout=timeout)  # noqa: S310  # nosec B310
    except urllib.error.HTTPError as error:
        raise NotFoundError(f"the server answers {error.code} for {address}") from error
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> NotFoundError:
    reason = getattr(error, "reason", None) or error
    return NotFoundError(f"cannot fetch {address}: {reason}")
