"""Data sets known by name, and the folders in which they are looked for."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from graphsc.core.errors import NotFoundError

TU_ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"


@dataclass(frozen=True)
class NamedSet:
    """A public data set: where it comes from, and what it must hold."""

    title: str  # as its files are named
    kind: str
    summary: str
    graphs: int
    # Of the graphs as we read them, because archives are repacked and graphs are not.
    content_hash: str | None = None

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def address(self) -> str:
        return f"{TU_ADDRESS}/{self.title}.zip"


NAMED = {
    entry.name: entry
    for entry in (
        NamedSet(
            "MUTAG",
            "molecules",
            "mutagenic compounds",
            188,
            "18b42ddc6696b32154316c28a1a4e5faaa81807fcb74e2f796ea675f13576bed",
        ),
        NamedSet(
            "NCI1",
            "molecules",
            "activity against lung cancer cells",
            4110,
            "8d00e295e2f0728dad7ac2f741fc0bfea7474009e5318ab401c7469756fd2ad3",
        ),
        NamedSet(
            "PROTEINS",
            "proteins",
            "enzymes or not",
            1113,
            "f040f6d4678b65d5cbb8efb60fdd2f347279192dd52e1aae4a3567235a8bb2a0",
        ),
        NamedSet(
            "DD",
            "proteins",
            "enzymes or not, large graphs",
            1178,
            "d477a07944db7367281c4b8c06a6ddf60746a105860cc6f33856254294fb0e7d",
        ),
        NamedSet(
            "COLLAB",
            "social",
            "fields of scientific collaboration",
            5000,
            "00b4d568ae04df7431cd4353b6727b26afd04031b373769a76d50809cc2b4ca4",
        ),
        NamedSet(
            "REDDIT-BINARY",
            "social",
            "question threads or discussions",
            2000,
            "8704ffc681cdc89259dfe00340fe8482172b9fdc8eae4155af94d9e8b682c06e",
        ),
        NamedSet("REDDIT-MULTI-5K", "social", "threads of five communities", 4999),
        NamedSet(
            "IMDB-BINARY",
            "social",
            "genres of films by their casts",
            1000,
            "41d13e892ab9e31785731bc00e85df2377e7300d1931d9a839f6cd734cd15a15",
        ),
    )
}


def cache_folder() -> Path:
    """Where downloads of this user are kept."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphsc"


def search_folders() -> list[Path]:
    """$GRAPHSC_DATA (separated like $PATH), ./data, the user's cache; each also one level down."""
    roots = [Path(part) for part in os.environ.get("GRAPHSC_DATA", "").split(os.pathsep) if part]
    roots += [Path("data"), cache_folder()]
    folders = []
    for root in roots:
        folders.append(root)
        try:
            folders += sorted(child for child in root.iterdir() if child.is_dir())
        except OSError:
            continue  # a folder that is not there, or not ours to read, holds nothing for us
    return folders


def find(entry: NamedSet) -> Path | None:
    """The folder or zip of a named set, or None where there is no copy."""
    for folder in search_folders():
        for candidate in (folder / f"{entry.title}.zip", folder / entry.title):
            if candidate.is_file() or (candidate / f"{entry.title}_A.txt").is_file():
                return candidate
    return _inside_grakel(entry)


def locate(entry: NamedSet) -> Path:
    """The folder or zip of a named set, or one line that says where we looked."""
    path = find(entry)
    if path is None:
        raise NotFoundError(
            f"data set {entry.name!r} is not on this machine",
            where=f"looked in {looked_in()}",
            hint=f"run 'graphsc data get {entry.name}' or put {entry.title}.zip into one of these folders",
        )
    return path


def looked_in() -> str:
    """The roots of the search path, for an error."""
    roots = [part for part in os.environ.get("GRAPHSC_DATA", "").split(os.pathsep) if part]
    return ", ".join([*roots, "./data", str(cache_folder())])


def _inside_grakel(entry: NamedSet) -> Path | None:
    """GraKeL's wheel carries MUTAG in the TU layout; found without importing it."""
    spec = importlib.util.find_spec("grakel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "tests" / "data" / entry.title
    return folder if (folder / f"{entry.title}_A.txt").is_file() else None
