"""A plan: which trials the tables of a page are made of, as a file a person can read and change."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from graphsc.core.config import build, read_config
from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest
from graphsc.evaluation.protocol import Classifier, InnerOrder, Protocol, Scale, Splitting
from graphsc.experiments.comparison import CONTROL
from graphsc.experiments.selection import Rule
from graphsc.experiments.trial import Trial
from graphsc.methods import METHODS
from graphsc.methods.registry import ENCODER

LOOP = "training."
MOST_SEEDS = 1_000  # more is a slip of the hand


@dataclass(frozen=True)
class Block:
    """A product of data sets, methods and seeds, all judged the same way."""

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
    label: str | None = None  # the row's name, where the method's does not say what differs
    variants: dict[str, dict[str, object]] = field(default_factory=dict)  # changes, by row

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        if self.seeds > MOST_SEEDS:
            raise ConfigError(f"seeds is {self.seeds}", hint=f"use up to {MOST_SEEDS:,}")
        for method in self.methods:
            METHODS.get(method)

    def each(self) -> list[Block]:
        """A block for each of its variants, or itself where it has none.

        A key of a variant is a setting of the method, or `training.KEY`.
        """
        blocks = []
        for label, changes in self.variants.items():
            training = {key.removeprefix(LOOP): v for key, v in changes.items() if key.startswith(LOOP)}
            settings = {key: value for key, value in changes.items() if not key.startswith(LOOP)}
            both = {"settings": {**self.settings, **settings}, "training": {**self.training, **training}}
            blocks.append(replace(self, label=label, variants={}, **both))  # type: ignore[arg-type]
        return blocks or [self]

    def trials(self) -> list[Trial]:
        """Seed by seed, so that a half-done plan has every method and not one method five times."""
        protocols = [
            Protocol(
                classifier=self.classifier, scale=self.scale, folds=self.folds,
                label_share=share, splitting=self.splitting, inner_order=self.inner_order,
            )
            for share in self.label_shares
        ]  # fmt: skip
        return [
            Trial(
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
            )
            for data in self.data
            for features in self.features
            for protocol in protocols
            for seed in range(self.first_seed, self.first_seed + self.seeds)
            for method in self.methods
        ]


@dataclass(frozen=True)
class TablePlan:
    """A table by name: what it is called and the blocks it shows.

    `inner` tables show accuracies on inner folds, which hold training graphs only: what a search may look at.
    `control` is the row that the others are tested against.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    inner: bool = False
    control: str = CONTROL

    def trials(self) -> list[Trial]:
        return [trial for block in self.blocks for trial in block.trials()]

    def rows(self) -> list[tuple[str, Trial]]:
        """Each trial with the name of its row."""
        return [(block.label or row_name(t), t) for block in self.blocks for t in block.trials()]


def row_name(trial: Trial) -> str:
    """The method, with its preset where that is not the default one."""
    return trial.method if trial.preset == "default" else f"{trial.method} ({trial.preset})"


def read_plan(path: str | os.PathLike[str]) -> list[TablePlan]:
    """The tables of a plan file, in their order."""
    where = str(path)
    found = read_config(path)
    tables = found.get("tables")
    if set(found) != {"tables"} or not isinstance(tables, Mapping):
        raise ConfigError("a plan has one key, `tables`, with a table under each name", where=where)
    return [_table(name, table, where) for name, table in tables.items()]


def _table(name: str, table: object, where: str) -> TablePlan:
    if not isinstance(table, Mapping) or set(table) - {"inner", "control"} != {"title", "trials"}:
        raise ConfigError(
            f"table {name!r} needs `title` and `trials`, may have `inner` and `control`, and nothing else",
            where=where,
        )
    if not isinstance(table["trials"], list) or not table["trials"]:
        raise ConfigError(f"table {name!r}: `trials` must be a list of blocks", where=where)
    blocks: list[Block] = []
    for position, block in enumerate(table["trials"], start=1):
        if not isinstance(block, Mapping):
            raise ConfigError(f"table {name!r}: block {position} is not `key: value` lines", where=where)
        blocks += build(Block, block, f"table {name!r}, block {position} of {where}").each()
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
