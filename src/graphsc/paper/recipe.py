"""Recipes: the trials that a table or figure of the paper is made of, as YAML files.

A `Recipe` has parts with methods that run the same way. The recipe of Table 4 is a `TransferRecipe`: it has
tables of transfer trials instead. A `Request` asks for some data sets, methods and seeds of a recipe.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from graphsc.core.config import build, parse_yaml, read_config
from graphsc.core.errors import ConfigError
from graphsc.core.random import numpy_generator
from graphsc.core.registry import nearest
from graphsc.data.datasets.catalog import NAMED, find, find_converted
from graphsc.encoders import ENCODERS
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import (
    LOOP,
    PLAN_KEYS,
    TransferBlock,
    TransferTable,
    split_settings,
    transfer_tables,
)
from graphsc.experiments.search_space import Dimension, make_space
from graphsc.experiments.trial import ProbeTrial, TransferTrial
from graphsc.finetuning.model import NONE
from graphsc.methods import METHODS
from graphsc.methods.registry import ENCODER

Kind = Literal["statistics", "comparison", "negatives", "convergence", "rates", "weights"]
Probe = Literal["full", "cheap"]
Budget = Literal["quick", "day", "full"]

NAMES = ("table1", "table2", "table3", "table5", "figure1", "figure3", "figure4", "figure5")
TRANSFER = "table4"  # the recipe of transfer trials
SEARCH = "search"  # the part that holds candidates of the nested search
INITIALISATIONS = 10_000  # between the seeds of one point's initialisations in a search
SMALL = 1200  # data sets with fewer graphs are small
FEATURES = ("ecfp", "rdkit", "minimol")  # stand for the method where there is no encoder
# The cheap probe has two inner folds, because its grid has one value and nothing is chosen.
PROBES: Mapping[Probe, Protocol] = {
    "full": Protocol(),
    "cheap": Protocol(grid=(10.0,), inner_folds=2, scale="standardised"),
}


@dataclass(frozen=True)
class Part:
    """Methods that run the same way, once at every point of the space `vary`.

    Args:
        methods: Methods by name.
        name: The part's name in figures and CSV files.
        settings: Settings of the methods.
        training: Settings of the training loop.
        vary: A search space.
        curve: Epochs that are evaluated during training.
        open: Whether a request may add methods that no part of the recipe has.
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
        """Every combination of the varied settings; one empty combination where nothing is varied."""
        return make_space(self.vary).points() if self.vary else [{}]


@dataclass(frozen=True)
class Search:
    """Random points of a space, the same number for every method, from which settings are chosen.

    Args:
        space: A search space. A method's own space has only the settings that it has.
        methods: Methods by name; by default those of the recipe that have an encoder.
        points: Points per method. A method whose own space is smaller has its points several times, with
            other random initialisations.
        points_on: Data sets with another number of points, the first of the same sequence.
        draw: Seed of the random points. It is not the seed of a trial.
        data: Data sets, cheap ones first; by default those of the recipe.
        seeds: Repetitions of each point.
        curve: Epochs whose test accuracy is stored, for maxima over points and epochs. Nothing is chosen by
            them in the nested search.
    """

    space: dict[str, object]
    methods: list[str] = field(default_factory=list)
    points: int = 30
    points_on: dict[str, int] = field(default_factory=dict)
    draw: int = 0
    data: list[str] = field(default_factory=list)
    seeds: int = 3
    curve: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for dimension in make_space(self.space).dimensions:
            dimension.each()  # a range without a step is refused
        for method in self.methods:
            METHODS.get(method)
        if min(self.points, *self.points_on.values(), self.seeds) < 1:
            raise ConfigError("a search needs one point and one seed at least")

    def drawn(self, method: str, points: int | None = None) -> list[dict[str, object]]:
        """The points of a method.

        All methods share one sequence of random points. Each takes from it the settings that it has, and
        skips points that it has already.
        """
        dimensions = make_space(self.space).dimensions
        own = [dimension for dimension in dimensions if all(_has(method, name) for name in dimension.names)]
        wanted = min(points or self.points, math.prod(len(dimension.each()) for dimension in own))
        generator = numpy_generator(self.draw, "search")
        found: dict[str, dict[str, object]] = {}
        while len(found) < wanted:
            values = {
                dimension.key: dimension.each()[int(generator.integers(len(dimension.each())))]
                for dimension in dimensions
            }
            point = _settings_at(own, values)
            found.setdefault(repr(point), point)
        return list(found.values())


def _settings_at(dimensions: Sequence[Dimension], values: Mapping[str, object]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for dimension in dimensions:
        settings |= dimension.settings(values[dimension.key])
    return settings


def _has(method: str, setting: str) -> bool:
    """Whether a method, its encoder or its training loop has a setting."""
    entry = METHODS.get(method)
    if setting.startswith(LOOP):
        return trains(method)
    if setting.startswith("encoder."):
        known = inspect.signature(ENCODERS.get(ENCODER)).parameters
        return entry.kind == "trained" and setting.removeprefix("encoder.") in known
    return setting in inspect.signature(entry.make).parameters


@dataclass(frozen=True)
class Recipe:
    """A table or figure of probe trials, or a table of statistics."""

    kind: Kind
    title: str
    data: list[str]
    small: list[str] = field(default_factory=list)  # for `quick`, where none of `data` is small
    seeds: int = 5
    seeds_on: dict[str, int] = field(default_factory=dict)  # data sets with another number of seeds
    probe: Probe = "full"
    control: str = "untrained"  # the method that the others are tested against
    directed: bool = False  # statistics count both directions of an edge
    last: Literal["rank", "mean"] = "rank"  # the last column of a comparison
    printed: dict[str, object] = field(default_factory=dict)  # the paper's numbers, by row
    notes: list[str] = field(default_factory=list)
    name: str = ""  # that of its file
    parts: tuple[Part, ...] = ()
    search: Search | None = None

    def __post_init__(self) -> None:
        for seeds in (self.seeds, *self.seeds_on.values()):
            if seeds < 1:
                raise ConfigError(f"seeds is {seeds}", hint="use 1 or more")

    @property
    def methods(self) -> list[str]:
        """The methods of all parts, each once."""
        return list(dict.fromkeys(method for part in self.parts for method in part.methods))


@dataclass(frozen=True)
class TransferRecipe:
    """Tables of transfer trials."""

    title: str
    small: list[str]  # the data sets of the budget `quick`
    printed: dict[str, float] = field(default_factory=dict)  # the paper's averages, by row
    notes: list[str] = field(default_factory=list)
    name: str = ""  # that of its file
    tables: tuple[TransferTable, ...] = ()


AnyRecipe = Recipe | TransferRecipe


def read_recipe(source: str) -> AnyRecipe:
    """A recipe of the paper by name, or one from a YAML file."""
    name, values, where = _read(source)
    if values.get("kind") == "transfer":
        plan = {key: values[key] for key in PLAN_KEYS if key in values}
        rest = {key: value for key, value in values.items() if key not in ("kind", *PLAN_KEYS)}
        tables = tuple(transfer_tables(plan, where))
        return replace(build(TransferRecipe, rest, f"recipe {where}"), name=name, tables=tables)
    parts = values.get("parts", [])
    if not isinstance(parts, list):
        raise ConfigError(f"recipe {name!r}: `parts` must be a list", where=where)
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Mapping):
            raise ConfigError(f"recipe {name!r}: part {number} is not `key: value` lines", where=where)
    built = tuple(build(Part, part, f"part {n} of {where}") for n, part in enumerate(parts, start=1))
    rest = {key: value for key, value in values.items() if key not in ("parts", "search")}
    recipe = build(Recipe, rest, f"recipe {where}")
    search = values.get("search")
    if search is not None and not isinstance(search, Mapping):
        raise ConfigError(f"recipe {name!r}: `search` must be `key: value` lines", where=where)
    candidates = None if search is None else build(Search, search, f"search of {where}")
    if (recipe.kind == "statistics") == bool(built):
        raise ConfigError(
            f"recipe {name!r}: statistics have no `parts`; every other kind needs some", where=where
        )
    return replace(recipe, name=name, parts=built, search=candidates)


def _read(source: str) -> tuple[str, Mapping[str, object], str]:
    """The name of a recipe, the values of its file, and the file's name."""
    known = sorted((*NAMES, TRANSFER))
    if source in known:
        where = f"{source}.yaml"
        values = parse_yaml((files("graphsc.paper") / "recipes" / where).read_text(), where)
        assert isinstance(values, dict)  # noqa: S101 - a file of this package
        return source, values, where
    if not source.endswith((".yaml", ".yml")):
        raise ConfigError(
            f"there is no recipe {source!r}", hint=f"{nearest(source, known)}; or give a YAML file"
        )
    return Path(source).stem, read_config(source), source


@dataclass(frozen=True)
class Request:
    """The part of a recipe to make.

    Args:
        budget: `quick` has small data sets and one seed, `day` one seed on large data sets, `full`
            everything. The number of epochs is never reduced.
        data: Data sets; by default those of the budget.
        methods: Methods; by default those of the recipe.
        seeds: Seeds per trial; by default by budget.
        features: Feature schemes.
        probe: The protocol; by default that of the recipe.
        search: Whether the search takes part.
        points: Random points of the search; by default as the recipe says.
    """

    budget: Budget = "full"
    data: Sequence[str] = ()
    methods: Sequence[str] = ()
    seeds: int | None = None
    features: Sequence[str] = ("auto",)
    probe: Probe | None = None
    search: bool = False
    points: int | None = None

    def __post_init__(self) -> None:
        if self.points is not None and self.points < 1:
            raise ConfigError(f"points is {self.points}", hint="use 1 or more")
        if self.seeds is not None and self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        if not self.features:
            raise ConfigError("no feature scheme is asked for")
        for method in self.methods:
            if method not in (NONE, *FEATURES):
                METHODS.get(method)

    def sets(self, recipe: Recipe) -> list[str]:
        """The data sets, in the recipe's order."""
        if self.data:
            return list(dict.fromkeys(self.data))
        if self.budget == "quick":
            return [name for name in recipe.data if is_small(name)] or recipe.small
        return recipe.data

    def seeds_on(self, recipe: Recipe, data: str) -> int:
        """The number of seeds on a data set."""
        if self.seeds is not None:
            return self.seeds
        once = self.budget == "quick" or (self.budget == "day" and not is_small(data))
        return 1 if once else recipe.seeds_on.get(data.lower(), recipe.seeds)

    def methods_of(self, part: Part, recipe: Recipe) -> list[str]:
        """The requested methods of a part; an open part also takes those that the recipe does not have."""
        if not self.methods:
            return part.methods
        others = [name for name in self.methods if name not in recipe.methods] if part.open else []
        return [name for name in part.methods if name in self.methods] + others


def is_small(data: str) -> bool:
    """Whether a data set has few graphs; one that has no known name counts as small."""
    return data.lower() not in NAMED or NAMED[data.lower()].graphs < SMALL


def is_available(data: str) -> bool:
    """Whether the data set is on this machine and needs no download."""
    entry = NAMED.get(data.lower())
    return entry is None or find(entry) is not None or find_converted(entry) is not None


def trains(method: str) -> bool:
    """Whether a method has weights that training changes."""
    entry = METHODS.get(method)
    return entry.kind == "trained" and bool(getattr(entry.make, "trains", True))


@dataclass(frozen=True)
class PlannedTrial:
    """A trial and its place in a table or figure: the part of the recipe, and the values of `vary` in it.

    In a search `again` counts the further random initialisations of a point.
    """

    part: str
    trial: ProbeTrial
    point: dict[str, object] = field(default_factory=dict)
    again: int = 0

    @property
    def column(self) -> str:
        """The title of the data set, with its features where they are not the default ones."""
        trial = self.trial
        return trial.data_name if trial.features == "auto" else f"{trial.data_name} ({trial.features})"


def trials_of(recipe: AnyRecipe, request: Request | None = None) -> list[ProbeTrial | TransferTrial]:
    """All requested trials of a recipe.

    Raises:
        ConfigError: Where a trial has a wrong setting.
    """
    trials: list[ProbeTrial | TransferTrial] = []
    if isinstance(recipe, TransferRecipe):
        trials += [trial for table in requested_tables(recipe, request) for trial in table.trials()]
    elif recipe.kind != "statistics":
        trials += [planned.trial for planned in expand(recipe, request)]
    for trial in trials:
        trial.identity()
    return trials


def expand(recipe: Recipe, request: Request | None = None) -> list[PlannedTrial]:
    """The requested trials by data set, then by seed, so that a half-done recipe has every method."""
    request = request or Request()
    protocol = PROBES[request.probe or recipe.probe]
    planned = []
    for data in request.sets(recipe):
        for seed in range(request.seeds_on(recipe, data)):
            for features in request.features:
                for part in recipe.parts:
                    for method in request.methods_of(part, recipe):
                        trial = ProbeTrial(
                            data, method, seed, features=features, training=part.training,
                            protocol=protocol, curve=tuple(part.curve),
                        )  # fmt: skip
                        planned += [
                            PlannedTrial(part.name, _with_settings(trial, {**part.settings, **point}), point)
                            for point in part.points()
                        ]
    return planned + _candidates(recipe, request) if request.search else planned


def _candidates(recipe: Recipe, request: Request) -> list[PlannedTrial]:
    """The trials of the search, seed by seed, so that a half-done search has a seed of every data set."""
    search = recipe.search
    if search is None:
        raise ConfigError(f"recipe {recipe.name!r} has no `search`", hint="leave out --search")
    sets = search.data or recipe.data
    if request.data:
        sets = [data for data in sets if data in request.data] + [d for d in request.data if d not in sets]
    elif request.budget == "quick":
        sets = [data for data in sets if is_small(data)]
    usual = search.methods or [method for method in recipe.methods if METHODS.get(method).kind == "trained"]
    methods = [method for method in request.methods or usual if any(search.drawn(method, 1))]
    seeds = request.seeds or (1 if request.budget == "quick" else search.seeds)
    planned = []
    for seed in range(seeds):
        for data in sets:
            for features in request.features:
                for method in methods:
                    curve = tuple(search.curve) if trains(method) else ()
                    base = ProbeTrial(
                        data, method, seed, features=features, protocol=PROBES[recipe.probe], curve=curve,
                        inner=True,
                    )  # fmt: skip
                    count = request.points or search.points_on.get(data.lower(), search.points)
                    points = search.drawn(method, count)
                    for number in range(count):
                        again, position = divmod(number, len(points))
                        trial = _with_settings(base, points[position])
                        if again:
                            trial = replace(trial, seed=seed + INITIALISATIONS * again, fold_seed=seed)
                        planned.append(PlannedTrial(SEARCH, trial, points[position], again))
    return planned


def _with_settings(trial: ProbeTrial, settings: Mapping[str, object]) -> ProbeTrial:
    """The trial with these settings; keys that start with `training.` are those of the loop."""
    of_method, of_loop = split_settings(settings)
    return replace(trial, settings=of_method, training={**trial.training, **of_loop})


def requested_tables(recipe: TransferRecipe, request: Request | None = None) -> list[TransferTable]:
    """The recipe's tables, narrowed or extended to the request; tables without trials are left out."""
    request = request or Request()
    options = {
        "--probe": request.probe is not None,
        "--search": request.search,
        "--points": request.points is not None,
        "--features": tuple(request.features) != ("auto",),
    }
    for option, given in options.items():
        if given:
            raise ConfigError(f"{recipe.name} is a transfer table and has no {option}", hint="leave it out")
    for method in request.methods:
        if method not in (NONE, *FEATURES) and not trains(method):
            raise ConfigError(
                f"{method} has no weights that training changes, and so none to transfer",
                hint="name a method that trains, or none",
            )
    tables = []
    for table in recipe.tables:
        blocks = [_requested_block(block, table, recipe, request) for block in table.blocks]
        if any(blocks):
            tables.append(replace(table, blocks=tuple(block for block in blocks if block is not None)))
    if not tables:
        raise ConfigError(
            f"{recipe.name} has no trial of these methods on these data sets", hint="see them with --dry-run"
        )
    return tables


def _requested_block(
    block: TransferBlock, table: TransferTable, recipe: TransferRecipe, request: Request
) -> TransferBlock | None:
    data, methods, seeds = block.data, block.methods, block.seeds
    if request.data:
        known = {name for other in table.blocks for name in other.data}
        # Data sets that the recipe does not have run as its first ones do.
        first = table.blocks[0].data[0] in block.data
        data = [name for name in dict.fromkeys(request.data) if name in data or (name not in known and first)]
    elif request.budget == "quick":
        data = [name for name in data if name in recipe.small]
    if request.methods:
        known = {name for other in table.blocks for name in other.methods}
        fixed = block.model is not None or set(methods) <= set(FEATURES)
        # Fingerprints and descriptors are no encoders, so they never join a table that has none of them.
        others = [] if fixed else [name for name in request.methods if name not in (*known, *FEATURES)]
        methods = [name for name in methods if name in request.methods] + others
    if block.way == "fine-tuned" and request.seeds is not None:
        seeds = request.seeds
    elif request.budget == "quick" or (
        request.budget == "day" and not all(name in recipe.small or is_small(name) for name in data)
    ):
        seeds = 1
    return replace(block, data=data, methods=methods, seeds=seeds) if data and methods else None
