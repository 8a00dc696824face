"""What it takes to feed a reader with mutated files."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEEDS = Path(__file__).parent / "seeds"
Files = dict[str, bytes]


@dataclass(frozen=True)
class Target:
    """A reader: its seed files, how one is changed, and how it is read.

    `seed(folder)` may write into a folder of its own; `read(folder)` gives what was read, or raises.
    """

    seed: Callable[[Path], Files]
    change: Callable[[Files, random.Random], Files]
    read: Callable[[Path], object]
