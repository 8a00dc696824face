"""A recipe: what a table or figure of the paper is made of, as a file a person can read and change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from graphsc.core.config import build, parse_yaml, read_config
from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest
from graphsc.data.datasets.catalog import NAMED, find, find_converted
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import (
    PLAN_KEYS,
    TransferBlock,
    TransferTable,
    split_settings,
    transfer_tables,
)
from graphsc.experiments.search_space import make_space
from graphsc.experiments.trial import ProbeTrial, TransferTrial
from graphsc.finetuning.model import NONE
from graphsc.methods import METHODS

Kind = Literal["statistics", "comparison", "negatives", "convergence", "rates", "weights"]
Probe = Literal["full", "cheap"]
NAMES = ("table1", "table2", "table3", "table5", "figure1", "figure3", "figure4", "figure5")
KIND = "transfer"
FITTED = "ecfp"  # the name of the method where there is no encoder
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


def recipe_values(source: str) -> tuple[str, Mapping[str, object], str]:
    """The name of a recipe, what its file says, and where that stands."""
    known = sorted((*NAMES, TRANSFER))
    if source in known:
        where = f"{source}.yaml"
        values = parse_yaml((files("graphsc.paper") / "recipes" / where).read_text(), where)
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


# From a recipe to its trials: which sets and how many seeds a budget pays for.


Budget = Literal["quick", "day", "full"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)
SMALL = 1200  # graphs below which a set is small
SEARCH = "search"  # the name of the part that holds candidates of the nested search


@dataclass(frozen=True)
class PlannedTrial:
    """A trial and its place in the table or figure."""

    part: str
    trial: ProbeTrial
    point: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What of a recipe is asked for. Epochs are never fewer: what is cheaper has fewer sets and seeds."""

    budget: Budget = "full"
    data: Sequence[str] = ()  # by default what the budget pays for
    methods: Sequence[str] = ()
    seeds: int | None = None
    features: Sequence[str] = ("auto",)
    probe: Probe | None = None
    search: bool | None = None  # by default with the budget `full`

    def __post_init__(self) -> None:
        if self.seeds is not None and self.seeds < 1:
            raise ConfigError(f"seeds is {self.seeds}", hint="use 1 or more")
        if not self.features:
            raise ConfigError("no feature scheme is asked for")
        for method in self.methods:
            if method not in (NONE, FITTED):
                METHODS.get(method)

    def sets(self, recipe: Recipe) -> list[str]:
        """The data sets, in the recipe's order."""
        if self.data:
            return list(dict.fromkeys(self.data))
        if self.budget == "quick":
            return [name for name in recipe.data if is_small(name)] or recipe.small
        return recipe.data

    def seeds_on(self, recipe: Recipe, data: str) -> int:
        """How often each trial is repeated."""
        if self.seeds is not None:
            return self.seeds
        once = self.budget == "quick" or (self.budget == "day" and not is_small(data))
        return 1 if once else recipe.seeds

    def methods_of(self, part: Part, recipe: Recipe) -> list[str]:
        """The part's methods that are asked for, and in an open part those the recipe has not."""
        if not self.methods:
            return part.methods
        others = [name for name in self.methods if name not in recipe.methods] if part.open else []
        return [name for name in part.methods if name in self.methods] + others


def is_small(data: str) -> bool:
    """Whether a set has few graphs; what has no name is taken to be small."""
    return data.lower() not in NAMED or NAMED[data.lower()].graphs < SMALL


def is_here(data: str) -> bool:
    """Whether the graphs can be had on this machine without fetching."""
    entry = NAMED.get(data.lower())
    return entry is None or find(entry) is not None or find_converted(entry) is not None


def expand(recipe: Recipe, request: Request | None = None) -> list[PlannedTrial]:
    """Every cell, set by set and seed by seed, so that what is half done has every method."""
    asked = request or Request()
    found: list[PlannedTrial] = []
    for data in asked.sets(recipe):
        for seed in range(asked.seeds_on(recipe, data)):
            for features in asked.features:
                for part in recipe.parts:
                    for method in asked.methods_of(part, recipe):
                        found += _cells(
                            recipe, part, asked, ProbeTrial(data, method, seed, features=features)
                        )
    if asked.search if asked.search is not None else asked.budget == "full":
        found += candidates(recipe, found)
    return found


def _cells(recipe: Recipe, part: Part, asked: Request, trial: ProbeTrial) -> list[PlannedTrial]:
    return [
        PlannedTrial(
            part.name,
            with_settings(
                trial,
                {**part.settings, **point},
                part.training,
                asked.probe or recipe.probe,
                tuple(part.curve),
            ),
            point,
        )
        for point in part.points()
    ]


def candidates(recipe: Recipe, cells: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """The trials among which the nested search chooses, for each cell of a method that trains."""
    if not recipe.search:
        return []
    found: dict[str, PlannedTrial] = {}
    for cell in cells:
        trial = cell.trial
        if not trains(trial.method):
            continue
        base = ProbeTrial(trial.data, trial.method, trial.seed, features=trial.features, inner=True)
        for point in make_space(recipe.search).points():
            made = with_settings(base, point, {}, recipe.probe)
            found.setdefault(made.key(), PlannedTrial(SEARCH, made, point))
    return list(found.values())


def trains(method: str) -> bool:
    """Whether a method has weights that training changes."""
    entry = METHODS.get(method)
    return entry.kind == "trained" and bool(getattr(entry.make, "trains", True))


def with_settings(
    trial: ProbeTrial,
    settings: dict[str, object],
    training: dict[str, object],
    probe: Probe,
    curve: tuple[int, ...] = (),
) -> ProbeTrial:
    """The trial at a point: keys that begin with `training.` are the loop's."""
    of_method, of_loop = split_settings(settings)
    return ProbeTrial(
        trial.data, trial.method, trial.seed, features=trial.features,
        settings=of_method,
        training={**training, **of_loop}, protocol=PROBES[probe], curve=curve, inner=trial.inner,
    )  # fmt: skip


# The recipe of Table 4: trials of transfer, which have blocks of their own in place of parts.


@dataclass(frozen=True)
class TransferRecipe:
    """A table of transfer: one sheet for each of its tables and each rule of choosing a model."""

    title: str
    small: list[str]  # the sets that the budget `quick` pays for
    printed: dict[str, float] = field(default_factory=dict)  # averages of the paper, by row
    notes: list[str] = field(default_factory=list)
    name: str = ""  # its file's
    tables: tuple[TransferTable, ...] = ()


AnyRecipe = Recipe | TransferRecipe


def read_recipe(source: str) -> AnyRecipe:
    """A recipe by name, or from a YAML file of one's own."""
    name, values, where = recipe_values(source)
    if values.get("kind") != KIND:
        return _recipe(name, values, where)
    plan = {key: values[key] for key in PLAN_KEYS if key in values}
    rest = {key: value for key, value in values.items() if key not in ("kind", *PLAN_KEYS)}
    tables = tuple(transfer_tables(plan, where))
    return replace(build(TransferRecipe, rest, f"recipe {where}"), name=name, tables=tables)


def trials_of(recipe: AnyRecipe, request: Request | None = None) -> list[ProbeTrial | TransferTrial]:
    """Every trial that a request asks of a recipe; a wrong setting is refused here."""
    trials: list[ProbeTrial | TransferTrial] = []
    if isinstance(recipe, TransferRecipe):
        trials += [trial for table in asked_of(recipe, request) for trial in table.trials()]
    elif recipe.kind != "statistics":
        trials += [planned.trial for planned in expand(recipe, request)]
    for trial in trials:
        trial.identity()
    return trials


def asked_of(recipe: TransferRecipe, request: Request | None = None) -> list[TransferTable]:
    """The recipe's tables, cut down or widened to the request; a table without trials is left out."""
    asked = request or Request()
    for name, value in (("--probe", asked.probe), ("--search", asked.search)):
        if value is not None:
            raise ConfigError(f"{recipe.name} is a table of transfer and has no {name}", hint="leave it out")
    if tuple(asked.features) != ("auto",):
        raise ConfigError(f"{recipe.name} is a table of transfer and has no --features", hint="leave it out")
    for method in asked.methods:
        if method not in (NONE, FITTED) and not trains(method):
            raise ConfigError(
                f"{method} has no weights that training changes, and so none to transfer",
                hint="name a method that trains, or none",
            )
    narrowed = []
    for table in recipe.tables:
        blocks = [made for block in table.blocks if (made := _block(block, table, recipe, asked)) is not None]
        if blocks:
            narrowed.append(replace(table, blocks=tuple(blocks)))
    if not narrowed:
        raise ConfigError(
            f"{recipe.name} has no trial of these methods on these data sets", hint="see them with --dry-run"
        )
    return narrowed


def _block(
    block: TransferBlock, table: TransferTable, recipe: TransferRecipe, asked: Request
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
