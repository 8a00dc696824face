"""Plans: which trials the tables of a page are made of, as a YAML file that people read and change.

A plan has `tables` of probe trials, or `transfer` with tables of transfer trials, or both. A table is a
list of blocks; a block is a product of data sets, methods and seeds. `methods` of a table are those of its
blocks that have none of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Literal, get_args

from graphsc.core.config import build, parse_yaml, read_config
from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest
from graphsc.evaluation.protocol import Classifier, InnerOrder, Protocol, Scale, Splitting
from graphsc.experiments.selection import Rule
from graphsc.experiments.trial import MODEL, ProbeTrial, TransferTrial, Way
from graphsc.finetuning.finetune import FineTuneSettings
from graphsc.finetuning.splits import SplitKind
from graphsc.methods import METHODS
from graphsc.methods.registry import ENCODER

CONTROL = "untrained"
LOOP = "training."
MOST_SEEDS = 1_000  # more is a slip of the hand
ModelRule = Literal["last", "best", "fit"]
PLAN_KEYS = ("pretraining", "tables")


@dataclass(frozen=True)
class Block:
    """A product of data sets, methods and seeds, all evaluated the same way.

    `variants` maps the title of a row to settings that it changes; `training.KEY` is a setting of the loop.
    """

    data: list[str]
    methods: list[str]
    seeds: int = 1
    first_seed: int = 0
    features: list[str] = field(default_factory=lambda: ["auto"])
    preset: str = "default"
    settings: dict[str, object] = field(default_factory=dict)
    training: dict[str, object] = field(default_factory=dict)
    classifier: Classifier = "svm"
    scale: Scale = "raw"
    folds: int = 10
    label_shares: list[float] = field(default_factory=lambda: [1.0])
    splitting: Splitting = "stratified"
    inner_order: InnerOrder = "shuffled"
    encoder: str = ENCODER
    selection: Rule = "last"
    inductive: bool = False
    label: str | None = None  # the title of the row, where the method's name does not say what differs
    variants: dict[str, dict[str, object]] = field(default_factory=dict)
    reader: str | None = None
    options: dict[str, object] = field(default_factory=dict)  # of the reader

    def __post_init__(self) -> None:
        _check_seeds(self.seeds)
        for method in self.methods:
            METHODS.get(method)

    def each(self) -> list[Block]:
        """One block per variant, or the block itself where it has none."""
        blocks = []
        for label, changes in self.variants.items():
            settings, training = split_settings(changes)
            both = {"settings": {**self.settings, **settings}, "training": {**self.training, **training}}
            blocks.append(replace(self, label=label, variants={}, **both))  # type: ignore[arg-type]
        return blocks or [self]

    def trials(self) -> list[ProbeTrial]:
        """Seed by seed, so that a half-done plan has every method and not one method five times."""
        protocols = [
            Protocol(
                classifier=self.classifier, scale=self.scale, folds=self.folds,
                label_share=share, splitting=self.splitting, inner_order=self.inner_order,
            )
            for share in self.label_shares
        ]  # fmt: skip
        return [
            ProbeTrial(
                data=data,
                method=method,
                seed=seed,
                features=features,
                preset=self.preset,
                encoder=self.encoder,
                settings=self.settings,
                training=self.training,
                protocol=protocol,
                selection=self.selection,
                inductive=self.inductive,
                reader=self.reader,
                options=self.options,
            )
            for data in self.data
            for features in self.features
            for protocol in protocols
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for method in self.methods
        ]


@dataclass(frozen=True)
class TransferBlock:
    """A product of molecule data sets, pre-training methods and seeds, all transferred the same way.

    `model` names a finished model to start from, in place of weights pre-trained as the table says; `members`
    is the number of fine-tuned encoders that an ensemble averages.
    """

    data: list[str]
    way: Way
    methods: list[str] = field(default_factory=lambda: ["ecfp"])
    seeds: int = 1
    split: SplitKind = "scaffold"
    settings: dict[str, object] = field(default_factory=dict)
    label: str | None = None
    pretraining: dict[str, object] = field(default_factory=dict)
    model: str | None = None
    members: int = 1

    def __post_init__(self) -> None:
        _check_seeds(self.seeds)
        build(FineTuneSettings, self.settings, "settings of fine-tuning")

    def trials(self) -> list[TransferTrial]:
        weights = self.pretraining if self.model is None else {MODEL: self.model}
        return [
            TransferTrial(data, method, self.way, seed, self.split, self.settings, weights, self.members)
            for data in self.data
            for seed in range(self.seeds)
            for method in self.methods
        ]


@dataclass(frozen=True)
class TablePlan:
    """A table of probe trials.

    `inner` tables show accuracies on inner folds, which hold training graphs only: all that a search may see.
    `control` is the row that the others are tested against.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    inner: bool = False
    control: str = CONTROL

    def rows(self) -> list[tuple[str, ProbeTrial]]:
        """Each trial with the title of its row."""
        return [(block.label or trial.row, trial) for block in self.blocks for trial in block.trials()]

    def trials(self) -> list[ProbeTrial]:
        return [trial for _, trial in self.rows()]


@dataclass(frozen=True)
class TransferTable:
    """A table of transfer trials, made once for each rule of choosing a model."""

    name: str
    title: str
    blocks: tuple[TransferBlock, ...]
    rules: tuple[ModelRule, ...]
    pretraining: Mapping[str, object]

    def rows(self) -> list[tuple[str, TransferTrial]]:
        """Each trial with the title of its row."""
        return [(block.label or trial.row, trial) for block in self.blocks for trial in block.trials()]

    def trials(self) -> list[TransferTrial]:
        return [trial for _, trial in self.rows()]


AnyTable = TablePlan | TransferTable


def split_settings(values: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Settings of the method, and those of the training loop, whose keys start with `training.`."""
    training = {key.removeprefix(LOOP): value for key, value in values.items() if key.startswith(LOOP)}
    return {key: value for key, value in values.items() if not key.startswith(LOOP)}, training


def read_plan(path: str | os.PathLike[str]) -> list[AnyTable]:
    """The tables of a plan file, in their order."""
    where, plan = str(path), read_config(path)
    if not plan or set(plan) - {"tables", "transfer"}:
        raise ConfigError("a plan has the keys `tables` and `transfer`, or one of them", where=where)
    tables: list[AnyTable] = []
    if "tables" in plan:
        tables += [_table(name, table, where) for name, table in _named(plan["tables"], where).items()]
    if "transfer" in plan:
        transfer = plan["transfer"]
        if isinstance(transfer, str):  # a recipe of the paper holds the tables
            where = f"{transfer}.yaml"
            recipe = files("graphsc.paper") / "recipes" / where
            if not recipe.is_file():
                raise ConfigError(f"there is no recipe {transfer!r}", where=str(path))
            values = parse_yaml(recipe.read_text(), where)
            assert isinstance(values, dict)  # noqa: S101 - it is shipped with the package
            transfer = {key: values[key] for key in PLAN_KEYS if key in values}
        if not isinstance(transfer, Mapping):
            raise ConfigError("`transfer` needs `pretraining` and `tables`, and nothing else", where=where)
        tables += transfer_tables(transfer, where)
    return tables


def transfer_tables(plan: Mapping[str, object], where: str) -> list[TransferTable]:
    """The tables of `pretraining` and `tables`, checked."""
    if set(plan) != set(PLAN_KEYS) or not isinstance(plan["tables"], Mapping):
        raise ConfigError("`transfer` needs `pretraining` and `tables`, and nothing else", where=where)
    if not isinstance(plan["pretraining"], Mapping):
        raise ConfigError("`pretraining` must be `key: value` lines", where=where)
    return [
        _transfer_table(str(name), table, dict(plan["pretraining"]), where)
        for name, table in plan["tables"].items()
    ]


def _table(name: str, table: object, where: str) -> TablePlan:
    blocks: list[Block] = []
    parts = _blocks(name, table, where, {"inner", "control", "methods"})
    assert isinstance(table, Mapping)  # noqa: S101 - checked by `_blocks`
    shared = {"methods": table["methods"]} if "methods" in table else {}
    for place, block in parts:
        blocks += build(Block, {**shared, **block}, place).each()
    made = TablePlan(
        name, str(table["title"]), tuple(blocks), bool(table.get("inner", False)),
        str(table.get("control", CONTROL)),
    )  # fmt: skip
    rows = [row for row, _ in made.rows()]
    if "control" in table and made.control not in rows:
        raise ConfigError(
            f"table {name!r} has no row {made.control!r} to test the others against", where=where,
            hint=nearest(made.control, set(rows)),
        )  # fmt: skip
    return made


def _transfer_table(name: str, table: object, pretraining: dict[str, object], where: str) -> TransferTable:
    blocks = [
        build(TransferBlock, {**block, "pretraining": pretraining}, place)
        for place, block in _blocks(name, table, where, {"rules"})
    ]
    assert isinstance(table, Mapping)  # noqa: S101 - checked by `_blocks`
    rules = tuple(table.get("rules") or ("fit",))
    if not set(rules) <= set(get_args(ModelRule)):
        raise ConfigError(f"table {name!r}: rules are last, best and fit", where=where)
    return TransferTable(name, str(table["title"]), tuple(blocks), rules, pretraining)


def _named(tables: object, where: str) -> Mapping[str, object]:
    if not isinstance(tables, Mapping):
        raise ConfigError("`tables` needs a table under each name", where=where)
    return tables


def _blocks(
    name: str, table: object, where: str, optional: set[str]
) -> list[tuple[str, Mapping[str, object]]]:
    """The blocks of a table, each with its place for error messages."""
    if not isinstance(table, Mapping) or set(table) - optional != {"title", "trials"}:
        may = ", ".join(f"`{key}`" for key in sorted(optional))
        raise ConfigError(
            f"table {name!r} needs `title` and `trials`, may have {may}, and nothing else", where=where
        )
    if not isinstance(table["trials"], list) or not table["trials"]:
        raise ConfigError(f"table {name!r}: `trials` must be a list of blocks", where=where)
    blocks: list[tuple[str, Mapping[str, object]]] = []
    for position, block in enumerate(table["trials"], start=1):
        if not isinstance(block, Mapping):
            raise ConfigError(f"table {name!r}: block {position} is not `key: value` lines", where=where)
        blocks.append((f"table {name!r}, block {position} of {where}", block))
    return blocks


def _check_seeds(seeds: int) -> None:
    if seeds < 1:
        raise ConfigError(f"seeds is {seeds}", hint="use 1 or more")
    if seeds > MOST_SEEDS:
        raise ConfigError(f"seeds is {seeds}", hint=f"use up to {MOST_SEEDS:,}")


def chosen_tables(tables: Sequence[AnyTable], names: str | None, plan: str) -> list[AnyTable]:
    """The tables with these names, separated by commas; all of them for `None`."""
    if names is None:
        return list(tables)
    by_name = {table.name: table for table in tables}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in by_name:
            raise ConfigError(f"the plan has no table {name!r}", where=plan, hint=nearest(name, by_name))
    return [by_name[name] for name in wanted]
