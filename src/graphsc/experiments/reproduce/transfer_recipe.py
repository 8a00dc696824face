"""The recipe of Table 4: trials of transfer, which have blocks of their own in place of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.experiments.reproduce.expand import Budget, is_small, trains
from graphsc.experiments.reproduce.recipe import recipe_values
from graphsc.experiments.transfer_plan import PLAN_KEYS, TransferBlock, TransferTable, tables_of
from graphsc.transfer.start import NONE

KIND = "transfer"
FITTED = "ecfp"  # the method's name where there is no encoder


@dataclass(frozen=True)
class TransferRecipe:
    """A table of transfer: one sheet for each of its tables and each rule of choosing a model."""

    title: str
    small: list[str]  # the sets that the budget `quick` pays for
    printed: dict[str, float] = field(default_factory=dict)  # averages of the paper, by row
    notes: list[str] = field(default_factory=list)
    name: str = ""  # its file's
    tables: tuple[TransferTable, ...] = ()


@dataclass(frozen=True)
class TransferRequest:
    """What of it is asked for. Epochs are never fewer; what is cheaper has fewer sets and seeds."""

    budget: Budget = "full"
    data: Sequence[str] = ()
    methods: Sequence[str] = ()
    seeds: int | None = None  # of fine-tuning; what is fitted in one go is fitted as often as the recipe says

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        for method in self.methods:
            if method not in (NONE, FITTED) and not trains(method):
                raise ConfigError(
                    f"{method} has no weights that training changes, and so none to transfer",
                    hint="name a method that trains, or none",
                )


def is_transfer(source: str) -> bool:
    """Whether a recipe, by name or file, is one of transfer."""
    return recipe_values(source)[1].get("kind") == KIND


def read_transfer_recipe(source: str) -> TransferRecipe:
    """A recipe of transfer by name, or from a YAML file of one's own."""
    name, values, where = recipe_values(source)
    plan = {key: values[key] for key in PLAN_KEYS if key in values}
    rest = {key: value for key, value in values.items() if key not in ("kind", *PLAN_KEYS)}
    tables = tuple(tables_of(plan, where))
    return replace(build(TransferRecipe, rest, f"recipe {where}"), name=name, tables=tables)


def asked_of(recipe: TransferRecipe, request: TransferRequest | None = None) -> list[TransferTable]:
    """The recipe's tables, cut down or widened to what is asked for; a table without trials is left out."""
    asked = request or TransferRequest()
    narrowed = []
    for table in recipe.tables:
        blocks = [made for block in table.blocks if (made := _block(block, table, recipe, asked)) is not None]
        if blocks:
            narrowed.append(replace(table, blocks=tuple(blocks)))
    return narrowed


def _block(
    block: TransferBlock, table: TransferTable, recipe: TransferRecipe, asked: TransferRequest
) -> TransferBlock | None:
    data, methods, seeds = block.data, block.methods, block.seeds
    if asked.data:
        known = {name for one in table.blocks for name in one.data}
        # A set that the recipe has not is done as its first ones are.
        first = table.blocks[0].data[0] in block.data
        data = [name for name in dict.fromkeys(asked.data) if name in data or (name not in known and first)]
    elif asked.budget == "quick":
        data = [name for name in data if name in recipe.small]
    if asked.methods:
        known = {name for one in table.blocks for name in one.methods}
        others = [name for name in asked.methods if name not in known] if methods != [FITTED] else []
        methods = [name for name in methods if name in asked.methods] + others
    if block.way == "fine-tuned" and asked.seeds is not None:
        seeds = asked.seeds
    elif asked.budget == "quick" or (
        asked.budget == "day" and not all(name in recipe.small or is_small(name) for name in data)
    ):
        seeds = 1
    return replace(block, data=data, methods=methods, seeds=seeds) if data and methods else None
