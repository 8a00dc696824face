"""One cell of a table before it has run: which graphs, which method, which seed, judged how."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest
from graphsc.data.datasets.catalog import NAMED
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.selection import RULES, Rule
from graphsc.methods import METHODS, training_settings
from graphsc.methods.registry import ENCODER, declared_settings
from graphsc.training.trainer import TrainSettings


@dataclass(frozen=True)
class Trial:
    """A whole repetition: initialisation, training and folds all come from `seed`."""

    data: str  # a source as `open_collection` takes it
    method: str
    seed: int = 0
    fold_seed: int | None = None  # folds of another seed: the same embeddings re-split
    features: str = "auto"
    preset: str = "default"
    encoder: str = ENCODER
    settings: Mapping[str, object] = field(default_factory=dict)
    training: Mapping[str, object] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    selection: Rule = "last"
    inductive: bool = False
    curve: tuple[int, ...] = ()  # epochs that are judged on the way, 0 for the untrained encoder
    inner: bool = False  # keep each outer fold's inner accuracy, by which one of several trials is chosen

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", tuple(self.curve))  # JSON has lists
        if self.curve and (self.inductive or min(self.curve) < 0):
            raise ConfigError("a curve is of epochs from 0 on, and not inductive")
        if self.selection not in RULES:
            raise ConfigError(f"unknown selection rule {self.selection!r}", hint=f"valid: {', '.join(RULES)}")
        if self.inductive and self.selection != "last":
            raise ConfigError(f"inductive trials take the last epoch, not {self.selection!r}")

    @property
    def data_name(self) -> str:
        """What tables call the data set."""
        named = NAMED.get(self.data.lower())
        return named.title if named else Path(self.data).stem

    @property
    def folds_from(self) -> int:
        """The seed of the folds."""
        return self.seed if self.fold_seed is None else self.fold_seed

    def loop(self) -> TrainSettings:
        """Settings of the training loop: the preset's, then the trial's, then its seed."""
        of_preset = training_settings(self.method, self.preset, self.data_name)
        return build(TrainSettings, {**of_preset, **self.training, "seed": self.seed}, "training")

    def identity(self) -> dict[str, object]:
        """All that decides the outcome, with every default written out: a new default is a new trial."""
        loop = self.loop().to_json()
        entry = METHODS.get(self.method)
        if entry.kind != "trained" or not getattr(entry.make, "trains", True):
            loop = {"seed": self.seed}
        # Named only where a trial has it, so that all others keep their keys.
        beyond: dict[str, object] = {}
        if self.curve:
            beyond["curve"] = list(self.curve)
        if self.inner:
            beyond["inner"] = True
        return beyond | {
            "data": self.data_name,
            "features": self.features,
            "method": self.method,
            "preset": self.preset,
            "encoder": self.encoder if entry.kind == "trained" else None,
            "settings": self._settings(entry.later),
            "training": loop,
            "fold_seed": self.folds_from,
            "protocol": self.protocol.to_json(),
            "selection": self.selection,
            "inductive": self.inductive,
        }

    def _settings(self, later: Mapping[str, object]) -> dict[str, object]:
        """Every setting, but one that came later only where it has another value than it had unsaid."""
        declared = declared_settings(
            self.method, self.data_name, self.settings, preset=self.preset, encoder=self.encoder
        )
        return {name: value for name, value in declared.items() if name not in later or value != later[name]}

    def key(self) -> str:
        """Twelve characters that stand for the identity."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def run_name(self) -> str:
        """A folder name for the training alone: trials that differ only in how they are judged share it."""
        # A curve is judged while its run trains, so that its protocol belongs to the run.
        alone = self.inductive or bool(self.curve)
        judged = ("selection", "inner") if alone else ("protocol", "selection", "fold_seed", "inner")
        learned = {name: value for name, value in self.identity().items() if name not in judged}
        digest = hashlib.sha256(json.dumps(learned, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.data_name}/{self.method}-{self.features.replace(':', '')}-{self.seed}-{digest}"

    def to_json(self) -> dict[str, object]:
        """All fields as asked for, from which another machine makes the same trial."""
        return {
            **{item.name: getattr(self, item.name) for item in fields(self)},
            "settings": dict(self.settings),
            "training": dict(self.training),
            "protocol": self.protocol.to_json(),
            "curve": list(self.curve),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Trial:
        """A trial from what `to_json` gave; unknown keys are refused by name."""
        protocol = stored.get("protocol")
        if not isinstance(protocol, Mapping):
            raise ConfigError("a trial needs its protocol")
        names = {item.name for item in fields(cls)}
        unknown = sorted(set(stored) - names)
        if unknown:
            raise ConfigError(f"a trial has no {unknown[0]!r}", hint=nearest(unknown[0], names))
        return cls(**{**stored, "protocol": Protocol.from_json(protocol)})  # type: ignore[arg-type]

    def resplit(self, count: int) -> list[Trial]:
        """The trial with its own folds, then with `count` - 1 others."""
        return [self, *(replace(self, fold_seed=self.seed + 1000 * n) for n in range(1, count))]
