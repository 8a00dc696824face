"""Search spaces: for each setting a list of values, or a range.

A key is a setting of the method, `encoder.KEY` or `training.KEY`. Several settings that change together are
one key with commas (`weak_rate, strong_rate`); each of its values is a list with one entry per setting.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING

from graphsc.core.config import build, parse_yaml, read_config
from graphsc.core.errors import ConfigError

if TYPE_CHECKING:
    from optuna.trial import Trial as OptunaTrial

Settings = dict[str, object]
Scalar = str | int | float | bool | None  # the values that an Optuna study can store


class Dimension(ABC):
    """One key of a space."""

    key: str

    @property
    def names(self) -> list[str]:
        """The settings of the key."""
        return [name.strip() for name in self.key.split(",")]

    @abstractmethod
    def draw(self, trial: OptunaTrial) -> object:
        """A value from the study's sampler."""

    @abstractmethod
    def extremes(self) -> list[object]:
        """Values that are checked in place of all."""

    @abstractmethod
    def grid(self) -> list[Scalar]:
        """Every value as a study stores it.

        Raises:
            ConfigError: Where the values are a continuous range.
        """

    @abstractmethod
    def each(self) -> list[object]:
        """Every value as in settings."""

    def settings(self, value: object) -> Settings:
        """A value as settings by name."""
        if len(self.names) == 1:
            return {self.names[0]: value}
        assert isinstance(value, list)  # noqa: S101 - checked when the space was read
        return dict(zip(self.names, value, strict=True))


@dataclass(frozen=True)
class Choices(Dimension):
    """A list of values."""

    key: str
    values: list[object]

    def __post_init__(self) -> None:
        if not self.values:
            raise ConfigError(f"space: {self.key!r} has no values")
        if len(set(map(repr, self.grid()))) < len(self.values):
            raise ConfigError(f"space: {self.key!r} has a value twice")
        count = len(self.names)
        for value in self.values:
            if count > 1 and not (isinstance(value, list) and len(value) == count):
                raise ConfigError(
                    f"space: {self.key!r} sets {count} settings at once; {value!r} is not a list of {count}"
                )

    def draw(self, trial: OptunaTrial) -> object:
        stored = self.grid()
        value = trial.suggest_categorical(self.key, stored)
        return self.values[[repr(other) for other in stored].index(repr(value))]  # repr tells 1 from True

    def extremes(self) -> list[object]:
        return self.values

    def each(self) -> list[object]:
        return list(self.values)

    def grid(self) -> list[Scalar]:
        return [
            value if value is None or isinstance(value, (str, int, float)) else json.dumps(value)
            for value in self.values
        ]


@dataclass(frozen=True)
class Range(Dimension):
    """Numbers from `low` to `high`: integers if both and `step` are; on a log scale with `log`."""

    key: str
    low: int | float
    high: int | float
    log: bool = False
    step: int | float | None = None

    def __post_init__(self) -> None:
        if len(self.names) > 1:
            raise ConfigError(
                f"space: {self.key!r} sets several settings at once, which takes a list of values"
            )
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(f"space: {self.key!r} goes from {self.low} to {self.high}")
        if self.log and (self.low <= 0 or self.step is not None):
            raise ConfigError(f"space: {self.key!r} with `log` needs a low above 0, and no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ConfigError(f"space: {self.key!r} has a step of {self.step}")

    @property
    def whole(self) -> bool:
        return all(isinstance(v, int) for v in (self.low, self.high, self.step) if v is not None)

    def draw(self, trial: OptunaTrial) -> object:
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.key, int(self.low), int(self.high), step=step, log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, step=self.step, log=self.log)

    def extremes(self) -> list[object]:
        return [self.low, self.high]

    def each(self) -> list[object]:
        return list(self.grid())

    def grid(self) -> list[Scalar]:
        step = 1 if self.whole and self.step is None and not self.log else self.step
        if step is None:
            raise ConfigError(f"space: {self.key!r} is no grid", hint="list its values, or give it a step")
        steps = math.floor((self.high - self.low) / step + 1e-9)
        return [self.low + k * step for k in range(steps + 1)]


@dataclass(frozen=True)
class Space:
    """All dimensions, in the order of the file."""

    dimensions: tuple[Dimension, ...]

    def draw(self, trial: OptunaTrial) -> Settings:
        """A point from the study's sampler; a resumed trial has the same point again."""
        return {
            name: value
            for dimension in self.dimensions
            for name, value in dimension.settings(dimension.draw(trial)).items()
        }

    def points(self) -> list[Settings]:
        """Every point of the grid as settings, in the order of `point`."""
        settings = [[key.settings(value) for value in key.each()] for key in self.dimensions]
        return [{name: v for part in parts for name, v in part.items()} for parts in product(*settings)]

    def size(self) -> int:
        """The number of points of the grid."""
        return math.prod(len(key.grid()) for key in self.dimensions)

    def point(self, index: int) -> dict[str, Scalar]:
        """A point of the grid by number, as a study stores it; the last dimension changes fastest."""
        point: dict[str, Scalar] = {}
        for dimension in reversed(self.dimensions):
            grid = dimension.grid()
            index, position = divmod(index, len(grid))
            point[dimension.key] = grid[position]
        return dict(reversed(point.items()))


def read_space(source: str) -> dict[str, object]:
    """The values of a space file, or of the paper's space under the name `paper`."""
    values = _paper() if source == "paper" else read_config(source)
    if values == {"space": "paper"}:
        values = _paper()
    if not values:
        raise ConfigError("the space is empty", where=source, hint="give a setting and its values")
    return values


def make_space(values: Mapping[str, object]) -> Space:
    """A space from the values of its file."""
    dimensions: list[Dimension] = []
    for key, value in values.items():
        if isinstance(value, list):
            dimensions.append(Choices(key, value))
        elif isinstance(value, Mapping):
            dimensions.append(build(Range, {**value, "key": key}, f"space: {key!r}"))
        else:
            raise ConfigError(
                f"space: {key!r} is {value!r}", hint="give a list of values, or low and high (and log, step)"
            )
    names = [name for one in dimensions for name in one.names]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"space: {twice[0]!r} is set twice")
    return Space(tuple(dimensions))


def _paper() -> dict[str, object]:
    values = parse_yaml((files("graphsc.experiments") / "spaces" / "paper.yaml").read_text(), "paper.yaml")
    assert isinstance(values, dict)  # noqa: S101 - a file of this package
    return values
