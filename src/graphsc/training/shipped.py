"""Models by name: those that come with the package, and those in folders of the user's."""

from __future__ import annotations

import os
from pathlib import Path

import graphsc
from graphsc.core.errors import NotFoundError
from graphsc.core.registry import nearest
from graphsc.core.run_folder import RunFolder

ENDING = ".safetensors"


def model_folders() -> list[Path]:
    """$GRAPHSC_MODELS (separated like $PATH), then the package's own."""
    own = [Path(part) for part in os.environ.get("GRAPHSC_MODELS", "").split(os.pathsep) if part]
    return [*own, Path(graphsc.__file__).parent / "models"]


def shipped_models() -> dict[str, Path]:
    """Model files by name; the first folder that has a name wins."""
    found: dict[str, Path] = {}
    for folder in model_folders():
        for path in sorted(folder.glob(f"*{ENDING}")):
            found.setdefault(path.name.removesuffix(ENDING), path)
    return found


def find_model(source: str | os.PathLike[str]) -> Path:
    """The model file of a run folder, a model file itself, or that of a name."""
    path = Path(source)
    if path.is_dir():
        return RunFolder(path).model
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    named = shipped_models()
    if path.name not in named:
        raise NotFoundError(
            f"there is no run folder, model file or model called {path.name!r}",
            where=f"models by name are in {', '.join(map(str, model_folders()))}",
            hint=nearest(path.name, named),
        )
    return named[path.name]
