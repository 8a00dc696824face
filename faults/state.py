"""What lies in a folder: names of files, and whether those under their final names can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path

# By the folder a file is in, then by its name; all others are models.
KINDS = {
    "checkpoints": "checkpoint",
    "embeddings": "embeddings",
    "best.safetensors": "predictor",
    "last.safetensors": "predictor",
}


def files_in(folder: Path) -> list[str]:
    """Names of all files; which step the checkpoint before the last is of is the clock's to say."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(re.sub(r"checkpoints/step-\d+", "checkpoints/step", name) for name in names)


def damaged_in(folder: Path) -> list[Path]:
    """Files under their final names that cannot be read; there must be none after any kill."""
    from graphsc.core.errors import GraphscError

    bad = []
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if hidden or not path.is_file():
            continue
        try:
            _read(path)
        except (ValueError, GraphscError):
            bad.append(path)
    return bad


def _read(path: Path) -> None:
    from graphsc.core.config import read_config
    from graphsc.core.serialization import load_tensors
    from graphsc.data.collection import GraphCollection

    if path.suffix == ".json":
        json.loads(path.read_text())
    elif path.suffix == ".yaml":
        read_config(path)
    elif path.suffix == ".safetensors" and path.name.startswith("graphs"):
        GraphCollection.open(path)
    elif path.suffix == ".safetensors":
        load_tensors(path, KINDS.get(path.parent.name) or KINDS.get(path.name, "model"))
