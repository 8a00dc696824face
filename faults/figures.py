"""What the long commands measured: a small file each, and the tables of the page made of them."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "reliability"


def store(name: str, figures: dict[str, object]) -> None:
    """Keep the figures of one command."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def load(name: str) -> dict[str, object]:
    """The figures of the last run of a command; none where it has not run."""
    path = RESULTS / f"{name}.json"
    found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    return found
