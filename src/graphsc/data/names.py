"""Data sets known by name, and the folders in which they are looked for."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from graphsc.core.errors import NotFoundError
from graphsc.data.molecule_sets import MOLECULE_SETS
from graphsc.data.named_set import NamedSet
from graphsc.data.tu_sets import TU_SETS

NAMED = {entry.name: entry for entry in (*TU_SETS, *MOLECULE_SETS)}


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
    """The file or folder of a named set, or None where there is no copy."""
    for folder in search_folders():
        if entry.files:
            candidates = [folder / (name + ending) for name in entry.files for ending in ("", ".gz", ".xz")]
        else:
            candidates = [folder / f"{entry.title}.zip", folder / entry.title]
        for candidate in candidates:
            if candidate.is_file() or (candidate / f"{entry.title}_A.txt").is_file():
                return candidate
    return None if entry.files else _inside_grakel(entry)


def find_converted(entry: NamedSet) -> Path | None:
    """A collection file NAME.safetensors on the search path, made of a set that is slow to read."""
    if not entry.files:
        return None
    candidates = (folder / f"{entry.name}.safetensors" for folder in search_folders())
    return next((path for path in candidates if path.is_file()), None)


def locate(entry: NamedSet) -> Path:
    """The file or folder of a named set, or one line that says where we looked."""
    path = find(entry)
    if path is None:
        raise NotFoundError(
            f"data set {entry.name!r} is not on this machine",
            where=f"looked in {looked_in()}",
            hint=f"run 'graphsc data get {entry.name}' or put {entry.wanted_file} into one of these folders",
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
