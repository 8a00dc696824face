"""Checkpoints: weights, method state, optimiser state and progress of a run in one verified file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor
from torch.optim import Optimizer

from graphsc.core.config import build
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.methods.base import TrainedMethod
from graphsc.training.model_io import check_weights

KEPT = 2  # checkpoints per run
_NAME = re.compile(r"^step-(\d+)\.safetensors$")


@dataclass
class Progress:
    """The position of a run: the next step is step `step` of epoch `epoch`, both counted from 0."""

    epoch: int = 0
    step: int = 0
    total_steps: int = 0
    sums: dict[str, float] = field(default_factory=dict)  # losses of this epoch so far
    seconds: float = 0.0  # time spent on this epoch so far


def save_checkpoint(
    folder: Path,
    method: TrainedMethod,
    optimisers: dict[str, Optimizer],
    progress: Progress,
    identity: Mapping[str, object],
) -> None:
    """Write a checkpoint, then remove all but the newest two.

    Args:
        folder: Of the checkpoints.
        method: With its weights and state.
        optimisers: By player.
        progress: The position of the run.
        identity: JSON values that `load_checkpoint` compares.
    """
    tensors: dict[str, Tensor] = {f"weights/{name}": value for name, value in method.state_dict().items()}
    tensors |= {f"state/{name}": value for name, value in method.state().items()}
    for player, optimiser in optimisers.items():
        for index, values in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{player}/{index}/{name}": value for name, value in values.items()}
    facts = {**vars(progress), "run": dict(identity)}
    save_tensors(folder / f"step-{progress.total_steps:09d}.safetensors", "checkpoint", tensors, facts)
    for path in _newest_first(folder)[KEPT:]:
        path.unlink(missing_ok=True)


def load_checkpoint(
    folder: Path,
    method: TrainedMethod,
    optimisers: dict[str, Optimizer],
    identity: Mapping[str, object],
    log: Callable[[str], None],
) -> Progress | None:
    """Restore the newest intact checkpoint of a folder.

    A damaged checkpoint is skipped, with a warning passed to `log`.

    Returns:
        The position to resume at, or None if there is no intact checkpoint.

    Raises:
        ConfigError: The checkpoint is of another model, method or seed.
    """
    for path in _newest_first(folder):
        try:
            stored = _read(path, method, optimisers, identity)
        except (DamagedFileError, NotFoundError) as error:
            log(f"warning: {error}; trying the one before")
            continue
        try:
            method.load_state(stored.state)
        except (LookupError, ValueError, TypeError, RuntimeError) as error:
            raise ConfigError(f"this checkpoint is of another method: {error}", where=str(path)) from error
        method.load_state_dict(stored.weights)
        for player, optimiser in optimisers.items():
            optimiser.load_state_dict({**optimiser.state_dict(), "state": stored.optimisers[player]})
        return stored.progress
    return None


@dataclass(frozen=True)
class _Stored:
    """The contents of a checkpoint file, before any of it is loaded."""

    progress: Progress
    weights: dict[str, Tensor]
    state: dict[str, Tensor]
    optimisers: dict[str, dict[int, dict[str, Tensor]]]


def _read(
    path: Path, method: TrainedMethod, optimisers: dict[str, Optimizer], identity: Mapping[str, object]
) -> _Stored:
    """Read a whole checkpoint and check that its parts fit the method before any of them is loaded."""
    tensors, facts = load_tensors(path, "checkpoint")
    found = facts.pop("run", None)
    for key, value in identity.items():
        if isinstance(found, dict) and found.get(key) != value:
            raise ConfigError(
                f"this checkpoint is of {key} {found.get(key)}, the run has {key} {value}", where=str(path),
                hint="remove the file, or use another folder",
            )  # fmt: skip
    damaged = "checkpoint file is damaged"
    parts: dict[str, dict[str, Tensor]] = {"weights": {}, "state": {}, "optimiser": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition("/")
        if part not in parts:
            raise DamagedFileError(f"{damaged}: {name} has no place", where=str(path))
        parts[part][rest] = value
    if facts.get("total_steps") != int(path.stem.removeprefix("step-")):
        raise DamagedFileError(f"{damaged}: it is of step {facts.get('total_steps')}", where=str(path))
    check_weights(method, {name: tuple(value.shape) for name, value in parts["weights"].items()}, str(path))
    try:
        progress = build(Progress, facts, "checkpoint")
        if min(progress.epoch, progress.step, progress.total_steps) < 0:
            raise ValueError("its progress is negative")
        states: dict[str, dict[int, dict[str, Tensor]]] = {player: {} for player in optimisers}
        for name, value in parts["optimiser"].items():
            player, index, key = name.split("/")
            parameter = optimisers[player].param_groups[0]["params"][int(index)]
            if value.shape not in ((), parameter.shape) or int(index) < 0:
                raise ValueError(f"{name} has shape {tuple(value.shape)}")
            states[player].setdefault(int(index), {})[key] = value
    except (LookupError, ValueError, TypeError, AttributeError, ConfigError) as error:
        raise DamagedFileError(f"{damaged}: {error}", where=str(path)) from error
    return _Stored(progress, parts["weights"], parts["state"], states)


def _newest_first(folder: Path) -> list[Path]:
    paths = [path for path in folder.glob("step-*.safetensors") if _NAME.match(path.name)]
    return sorted(paths, reverse=True)
