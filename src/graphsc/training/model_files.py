"""Where models are: by name, by path, or in a run folder. Nothing is loaded here, so torch is not needed."""

from __future__ import annotations

import os
from pathlib import Path

import graphsc
from graphsc.core.errors import NotFoundError
from graphsc.core.registry import nearest
from graphsc.core.run_folder import RunFolder

ENDING = ".safetensors"


def model_folders() -> list[Path]:
    """Folders of models by name: those of $GRAPHSC_MODELS (separated like $PATH), then the package's."""
    user = [Path(part) for part in os.environ.get("GRAPHSC_MODELS", "").split(os.pathsep) if part]
    return [*user, Path(graphsc.__file__).parent / "models"]


def available_models() -> dict[str, Path]:
    """Model files by name; if several folders have a name, the first wins."""
    models: dict[str, Path] = {}
    for folder in model_folders():
        for path in sorted(folder.glob(f"*{ENDING}")):
            models.setdefault(path.name.removesuffix(ENDING), path)
    return models


def find_model(source: str | os.PathLike[str]) -> Path:
    """The model file of a run folder, of a model name, or the given file itself."""
    path = Path(source)
    if path.is_dir():
        return RunFolder(path).model
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    models = available_models()
    if path.name not in models:
        raise NotFoundError(
            f"there is no run folder, model file or model called {path.name!r}",
            where=f"models by name are in {', '.join(map(str, model_folders()))}",
            hint=nearest(path.name, models),
        )
    return models[path.name]
