"""A recipe: what a table or figure of the paper is made of, as a file a person can read and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from graphsc.core.config import build, parse_yaml, read_config
from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.space import make_space
from graphsc.methods import METHODS

Kind = Literal["statistics", "comparison", "negatives", "convergence", "rates", "weights"]
Probe = Literal["full", "cheap"]
NAMES = ("table1", "table2", "table3", "table5", "figure1", "figure3", "figure4", "figure5")
TRANSFER = "table4"  # has trials of another kind, and so a recipe of another form
# Inner folds in the order of the file, as in the results that are kept. Cheap has two of them, because its
# grid has one value and there is nothing to choose.
PROBES: Mapping[Probe, Protocol] = {
    "full": Protocol(inner_order="file"),
    "cheap": Protocol(grid=(10.0,), inner_folds=2, scale="standardised", inner_order="file"),
}


@dataclass(frozen=True)
class Part:
    """Methods that run the same way, at every point of a space where it varies something.

    An `open` part also takes methods that a caller names and that no part of the recipe has.
    """

    methods: list[str]
    name: str = "main"
    settings: dict[str, object] = field(default_factory=dict)
    training: dict[str, object] = field(default_factory=dict)
    vary: dict[str, object] = field(default_factory=dict)
    curve: list[int] = field(default_factory=list)
    open: bool = False

    def __post_init__(self) -> None:
        for method in self.methods:
            METHODS.get(method)
        self.points()

    def points(self) -> list[dict[str, object]]:
        """Every combination of what varies, as settings; one without any where nothing does."""
        return make_space(self.vary).points() if self.vary else [{}]


@dataclass(frozen=True)
class Recipe:
    """One table or figure."""

    kind: Kind
    title: str
    data: list[str]
    small: list[str] = field(default_factory=list)  # in place of `data` where none of that is small
    seeds: int = 5
    probe: Probe = "full"
    control: str = "untrained"  # whom the others are tested against
    directed: bool = False  # statistics count both directions of an edge
    last: Literal["rank", "mean"] = "rank"  # the last column of a comparison
    search: dict[str, object] = field(default_factory=dict)  # space of the nested search
    printed: dict[str, object] = field(default_factory=dict)  # what the paper prints beside it, by row
    notes: list[str] = field(default_factory=list)
    name: str = ""  # its file's
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        if self.search:
            make_space(self.search).points()

    @property
    def methods(self) -> list[str]:
        """Every method once, in order."""
        return list(dict.fromkeys(method for part in self.parts for method in part.methods))


def read_recipe(source: str) -> Recipe:
    """A recipe by name, or from a YAML file of one's own."""
    return _recipe(*recipe_values(source))


def recipe_values(source: str) -> tuple[str, Mapping[str, object], str]:
    """The name of a recipe, what its file says, and where that stands."""
    known = sorted((*NAMES, TRANSFER))
    if source in known:
        where = f"{source}.yaml"
        values = parse_yaml((files("graphsc.experiments.reproduce") / "recipes" / where).read_text(), where)
        assert isinstance(values, dict)  # noqa: S101 - ours
        return source, values, where
    if not source.endswith((".yaml", ".yml")):
        raise ConfigError(
            f"there is no recipe {source!r}", hint=f"{nearest(source, known)}; or give a YAML file"
        )
    return Path(source).stem, read_config(source), source


def _recipe(name: str, values: Mapping[str, object], where: str) -> Recipe:
    parts = values.get("parts", [])
    if not isinstance(parts, list):
        raise ConfigError(f"recipe {name!r}: `parts` must be a list", where=where)
    made = []
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Mapping):
            raise ConfigError(f"recipe {name!r}: part {number} is not `key: value` lines", where=where)
        made.append(build(Part, part, f"part {number} of {where}"))
    recipe = build(Recipe, {key: value for key, value in values.items() if key != "parts"}, f"recipe {where}")
    if (recipe.kind == "statistics") == bool(made):
        raise ConfigError(
            f"recipe {name!r}: statistics have no `parts`, and all else needs some", where=where
        )
    return replace(recipe, name=name, parts=tuple(made))
