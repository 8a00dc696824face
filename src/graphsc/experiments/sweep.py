"""A sweep: which settings of a method to try on which graphs, how to draw them, and what decides.

What decides is the accuracy on inner folds, which hold training graphs only, on seeds kept for development.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from graphsc.core.config import build
from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.core.random import derive_seed, numpy_generator
from graphsc.core.registry import nearest, require
from graphsc.core.run_folder import differences
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.space import Space, make_space
from graphsc.experiments.storage import Storage, in_words
from graphsc.experiments.study import Study
from graphsc.experiments.trial import Trial
from graphsc.training.trainer import TrainSettings

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

SamplerName = Literal["tpe", "random", "grid"]
PrunerName = Literal["none", "median", "hyperband"]
DEVELOPMENT = 1000  # the first of the seeds that no table reports
TRIALS = 20
GRID_CAP = 1000  # points of a grid that are queued without being asked for by number
_SWEEP = "sweep"  # attribute of the study


@dataclass(frozen=True)
class Sweep:
    """All that a worker on another machine needs to know of a search."""

    data: str
    method: str
    space: dict[str, object]
    features: str = "auto"
    preset: str = "default"
    settings: dict[str, object] = field(default_factory=dict)  # the same in every trial
    training: dict[str, object] = field(default_factory=dict)
    folds: int = 10
    seeds: int = 1
    first_seed: int = DEVELOPMENT
    sampler: SamplerName = "tpe"
    pruner: PrunerName = "none"

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        for name, value, valid in (
            ("sampler", self.sampler, get_args(SamplerName)),
            ("pruner", self.pruner, get_args(PrunerName)),
        ):
            if value not in valid:
                raise ConfigError(f"unknown {name} {value!r}", hint=nearest(value, valid))

    @property
    def dimensions(self) -> Space:
        """The space, read."""
        return make_space(self.space)

    def trials(self, values: Mapping[str, object]) -> list[Trial]:
        """A trial a seed, with these settings."""
        prefix = "training."
        of_loop = {key.removeprefix(prefix): v for key, v in values.items() if key.startswith(prefix)}
        of_method = {key: value for key, value in values.items() if not key.startswith(prefix)}
        return [
            Trial(
                data=self.data,
                method=self.method,
                seed=seed,
                features=self.features,
                preset=self.preset,
                settings={**self.settings, **of_method},
                training={**self.training, **of_loop},
                protocol=Protocol(folds=self.folds),
            )
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]

    def check(self) -> None:
        """Refuse a setting that there is not, or a value of another type, before anything runs."""
        identity = self.trials({})[0].identity()
        known = identity["settings"]
        assert isinstance(known, Mapping)  # noqa: S101 - narrows the type
        of_loop = [f"training.{item.name}" for item in dataclasses.fields(TrainSettings)]
        valid = [*known, *(name for name in of_loop if name != "training.seed")]
        for one in self.dimensions.dimensions:
            for name in one.names:
                if name not in valid:
                    raise ConfigError(
                        f"space: {self.method} has no setting {name!r}", hint=nearest(name, valid)
                    )
            for value in one.extremes():
                self.trials(one.settings(value))[0].identity()

    def make_sampler(self, number: int) -> BaseSampler:
        """A sampler for one trial, seeded by its number: who runs it changes nothing of what it draws."""
        samplers = require("optuna.samplers")
        seed = derive_seed(self.first_seed, "sampler", number) % 2**32
        if self.sampler != "tpe":  # a grid's points are given, not drawn
            return samplers.RandomSampler(seed=seed)  # type: ignore[no-any-return]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", require("optuna.exceptions").ExperimentalWarning)
            # Trials still running count as poor ones, so that workers do not all try the same place.
            return samplers.TPESampler(seed=seed, constant_liar=True)  # type: ignore[no-any-return]

    def make_pruner(self) -> BasePruner:
        """What decides whether a trial is worth going on with."""
        pruners = require("optuna.pruners")
        if self.pruner == "median":
            return pruners.MedianPruner(n_startup_trials=5)  # type: ignore[no-any-return]
        if self.pruner == "hyperband":
            epochs = self.trials({})[0].loop().epochs
            return pruners.HyperbandPruner(max_resource=max(2, epochs))  # type: ignore[no-any-return]
        return pruners.NopPruner()  # type: ignore[no-any-return]


def open_sweep(storage: Storage, name: str, sweep: Sweep, trials: int | None = None) -> Study:
    """The study of a sweep with at least so many trials queued; another sweep's study is refused by key."""
    sweep.check()
    study = Study(storage, name, create=True)
    with in_words(storage.name):
        before = study.optuna.user_attrs.get(_SWEEP)
        asked = json.loads(json.dumps(dataclasses.asdict(sweep)))
        if before is None:
            if study.cells():
                raise ConfigError(
                    f"study {name!r} is not a sweep", where=storage.name, hint="use another --study"
                )
            study.optuna.set_user_attr(_SWEEP, asked)
        elif differing := differences(before, asked):
            raise ConfigError(
                f"study {name!r} is another sweep: {'; '.join(differing)}", where=storage.name,
                hint="use the same settings to go on, or another --study",
            )  # fmt: skip
    here = {cell.key for cell in study.cells()}
    for key, fixed in _points(sweep, trials):
        if key not in here:
            study.queue(fixed, {"cell": key})
    return study


def sweep_of(study: Study) -> Sweep:
    """What the study searches."""
    with in_words(study.storage.name):
        stored = study.optuna.user_attrs.get(_SWEEP)
    if not isinstance(stored, Mapping):
        raise NotFoundError(f"study {study.name!r} is not a sweep", where=study.storage.name)
    return build(Sweep, stored, f"sweep {study.name!r}")


def _points(sweep: Sweep, trials: int | None) -> list[tuple[str, dict[str, object]]]:
    """Keys of cells, with the parameters that are given: all of them for a grid, else none."""
    if trials is not None and trials < 1:
        raise ConfigError(f"trials is {trials}", hint="use 1 or more")
    if sweep.sampler != "grid":
        return [(f"draw-{number}", {}) for number in range(trials or TRIALS)]
    space = sweep.dimensions
    size = space.size()
    if trials is None and size > GRID_CAP:
        raise ConfigError(
            f"the grid has {size:,} points",
            hint="give --trials for a random part of it, or another --sampler",
        )
    order = numpy_generator(sweep.first_seed, "grid").permutation(size)[:trials]
    points = [space.point(int(index)) for index in (range(size) if trials is None else order)]
    return [(f"grid-{_digest(point)}", dict(point)) for point in points]


def _digest(point: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(point, sort_keys=True).encode()).hexdigest()[:12]
