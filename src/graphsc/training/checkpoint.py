"""Everything a run needs to go on as if it had never stopped, in one verified file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor
from torch.optim import Optimizer

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.tensors import load_tensors, save_tensors
from graphsc.methods.base import TrainedMethod

KEPT = 2
_NAME = re.compile(r"^step-(\d+)\.safetensors$")


@dataclass
class Progress:
    """Where a run stands: the next thing to do is step `step` of epoch `epoch` (from 0)."""

    epoch: int = 0
    step: int = 0
    total_steps: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # of this epoch's losses so far
    seconds: float = 0.0  # of this epoch so far


def save_checkpoint(
    folder: Path, method: TrainedMethod, optimisers: dict[str, Optimizer], progress: Progress
) -> None:
    """Write the newest checkpoint, then remove all but the last two."""
    tensors: dict[str, Tensor] = {f"weights/{name}": value for name, value in method.state_dict().items()}
    tensors |= {f"state/{name}": value for name, value in method.state().items()}
    for player, optimiser in optimisers.items():
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{player}/{index}/{name}": value for name, value in values.items()}
    save_tensors(
        folder / f"step-{progress.total_steps:09d}.safetensors", "checkpoint", tensors, vars(progress)
    )
    for path in _newest_first(folder)[KEPT:]:
        path.unlink(missing_ok=True)


def load_checkpoint(
    folder: Path, method: TrainedMethod, optimisers: dict[str, Optimizer], say: Callable[[str], None]
) -> Progress | None:
    """Put back the newest good checkpoint; None where there is none."""
    for path in _newest_first(folder):
        try:
            tensors, facts = load_tensors(path, "checkpoint")
        except (DamagedFileError, NotFoundError) as error:
            say(f"warning: {error}; trying the one before")
            continue
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "state": {}, "optimiser": {}}
        for name, value in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = value
        method.load_state_dict(parts["weights"])
        method.load_state(parts["state"])
        for player, optimiser in optimisers.items():
            state: dict[int, dict[str, Tensor]] = {}
            for name, value in parts["optimiser"].items():
                owner, index, key = name.split("/")
                if owner == player:
                    state.setdefault(int(index), {})[key] = value
            optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
        return Progress(**facts)  # type: ignore[arg-type]
    return None


def _newest_first(folder: Path) -> list[Path]:
    found = [path for path in folder.glob("step-*.safetensors") if _NAME.match(path.name)]
    return sorted(found, reverse=True)
