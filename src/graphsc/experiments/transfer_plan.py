"""The plan of the transfer tables: which weights are tried on which molecules, and how."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from graphsc.core.config import build, read_config
from graphsc.core.errors import ConfigError
from graphsc.data.datasets.catalog import NAMED
from graphsc.finetuning.baselines import BITS, RADIUS, STRENGTHS, TREES
from graphsc.finetuning.finetune import FineTuneSettings
from graphsc.finetuning.model import ENCODER, NONE, encoder_defaults
from graphsc.finetuning.splits import SplitKind

Way = Literal["fine-tuned", "frozen", "ecfp-forest", "ecfp-linear"]
Rule = Literal["last", "best", "fit"]
PLAN_KEYS = ("pretraining", "tables")


@dataclass(frozen=True)
class TransferTrial:
    """One cell and seed of a transfer table, before it has run."""

    data: str
    method: str  # that made the weights; none: first weights
    way: Way
    seed: int = 0
    split: SplitKind = "scaffold"
    settings: Mapping[str, object] = field(default_factory=dict)  # of fine-tuning
    pretraining: Mapping[str, object] = field(default_factory=dict)  # what the weights are made from

    @property
    def data_name(self) -> str:
        """What tables call the set of molecules."""
        named = NAMED.get(self.data.lower())
        return named.title if named else Path(self.data).stem

    @property
    def needs_weights(self) -> bool:
        return self.way in ("fine-tuned", "frozen") and self.method != NONE

    def tuning(self) -> FineTuneSettings:
        return build(FineTuneSettings, self.settings, "settings of fine-tuning")

    def identity(self) -> dict[str, object]:
        """All that decides the outcome, with every default written out: a new default is a new trial."""
        found: dict[str, object] = {
            "data": self.data_name,
            "method": self.method,
            "way": self.way,
            "seed": self.seed,
            "split": self.split,
            "pretraining": dict(self.pretraining) if self.needs_weights else None,
        }
        if self.way in ("fine-tuned", "frozen") and not self.needs_weights:
            found["encoder"] = {"name": ENCODER, **encoder_defaults()}
        if self.way == "fine-tuned":
            found["settings"] = self.tuning().to_json()
        if self.way in ("frozen", "ecfp-linear"):
            found["strengths"] = list(STRENGTHS)
        if self.way.startswith("ecfp"):
            found["fingerprint"] = [RADIUS, BITS]
        if self.way == "ecfp-forest":
            found["trees"] = TREES
        return found

    def to_json(self) -> dict[str, object]:
        """All fields as asked for, from which another machine makes the same trial."""
        return {
            **{item.name: getattr(self, item.name) for item in fields(self)},
            "settings": dict(self.settings),
            "pretraining": dict(self.pretraining),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> TransferTrial:
        """A trial from what `to_json` gave; unknown keys are refused by name."""
        return build(cls, stored, "a trial of transfer")

    def key(self) -> str:
        """Twelve characters that stand for the identity."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class TransferBlock:
    """A product of sets of molecules, pre-training methods and seeds, all done the same way."""

    data: list[str]
    way: Way
    methods: list[str] = field(default_factory=lambda: ["ecfp"])
    seeds: int = 1
    split: SplitKind = "scaffold"
    settings: dict[str, object] = field(default_factory=dict)
    label: str | None = None  # the row's name, where the method's does not say what differs

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        build(FineTuneSettings, self.settings, "settings of fine-tuning")

    def trials(self, pretraining: Mapping[str, object]) -> list[TransferTrial]:
        return [
            TransferTrial(data, method, self.way, seed, self.split, self.settings, pretraining)
            for data in self.data
            for seed in range(self.seeds)
            for method in self.methods
        ]


@dataclass(frozen=True)
class TransferTable:
    """A table by name: its blocks, and by which rules the models in it are chosen."""

    name: str
    title: str
    blocks: tuple[TransferBlock, ...]
    rules: tuple[Rule, ...]
    pretraining: Mapping[str, object]

    def rows(self) -> list[tuple[str, TransferTrial]]:
        """Each trial with the name of its row."""
        return [(b.label or t.method, t) for b in self.blocks for t in b.trials(self.pretraining)]

    def trials(self) -> list[TransferTrial]:
        return [trial for _, trial in self.rows()]


def is_transfer_plan(path: str | os.PathLike[str]) -> bool:
    """Whether a plan file is one of transfer tables."""
    return "transfer" in read_config(path)


def read_transfer_plan(path: str | os.PathLike[str]) -> list[TransferTable]:
    """The tables of a plan file, in their order; `transfer` may name a recipe that has them."""
    where = str(path)
    found = read_config(path)
    plan = found.get("transfer")
    if isinstance(plan, str):
        from graphsc.paper.recipe import recipe_values

        _, values, where = recipe_values(plan)
        plan = {key: values[key] for key in PLAN_KEYS if key in values}
    if set(found) != {"transfer"} or not isinstance(plan, Mapping):
        raise ConfigError("a transfer plan has one key, `transfer`", where=where)
    return tables_of(plan, where)


def tables_of(plan: Mapping[str, object], where: str) -> list[TransferTable]:
    """The tables of `pretraining` and `tables`, checked."""
    tables, pretraining = plan.get("tables"), plan.get("pretraining")
    if set(plan) != set(PLAN_KEYS) or not isinstance(tables, Mapping):
        raise ConfigError("`transfer` needs `pretraining` and `tables`, and nothing else", where=where)
    if not isinstance(pretraining, Mapping):
        raise ConfigError("`pretraining` must be `key: value` lines", where=where)
    return [_table(str(name), table, dict(pretraining), where) for name, table in tables.items()]


def _table(name: str, table: object, pretraining: Mapping[str, object], where: str) -> TransferTable:
    if not isinstance(table, Mapping) or set(table) - {"rules"} != {"title", "trials"}:
        raise ConfigError(
            f"table {name!r} needs `title` and `trials`, may have `rules`, and nothing else", where=where
        )
    rules = tuple(table.get("rules") or ("fit",))
    if not set(rules) <= {"last", "best", "fit"}:
        raise ConfigError(f"table {name!r}: rules are last, best and fit", where=where)
    if not isinstance(table["trials"], list) or not table["trials"]:
        raise ConfigError(f"table {name!r}: `trials` must be a list of blocks", where=where)
    blocks = []
    for position, block in enumerate(table["trials"], start=1):
        if not isinstance(block, Mapping):
            raise ConfigError(f"table {name!r}: block {position} is not `key: value` lines", where=where)
        blocks.append(build(TransferBlock, block, f"table {name!r}, block {position} of {where}"))
    return TransferTable(name, str(table["title"]), tuple(blocks), rules, pretraining)
