"""From a recipe to its trials: which sets and how many seeds a budget pays for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from graphsc.core.errors import ConfigError
from graphsc.data.names import NAMED, find, find_converted
from graphsc.experiments.reproduce.recipe import PROBES, Part, Probe, Recipe
from graphsc.experiments.space import make_space
from graphsc.experiments.trial import Trial
from graphsc.methods import METHODS

Budget = Literal["quick", "day", "full"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)
SMALL = 1200  # graphs below which a set is small
SEARCH = "search"  # the name of the part that holds candidates of the nested search


@dataclass(frozen=True)
class Cell:
    """A trial and its place in the table or figure."""

    part: str
    trial: Trial
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


def expand(recipe: Recipe, request: Request | None = None) -> list[Cell]:
    """Every cell, set by set and seed by seed, so that what is half done has every method."""
    asked = request or Request()
    found: list[Cell] = []
    for data in asked.sets(recipe):
        for seed in range(asked.seeds_on(recipe, data)):
            for features in asked.features:
                for part in recipe.parts:
                    for method in asked.methods_of(part, recipe):
                        found += _cells(recipe, part, asked, Trial(data, method, seed, features=features))
    if asked.search if asked.search is not None else asked.budget == "full":
        found += candidates(recipe, found)
    return found


def _cells(recipe: Recipe, part: Part, asked: Request, trial: Trial) -> list[Cell]:
    return [
        Cell(
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


def candidates(recipe: Recipe, cells: Sequence[Cell]) -> list[Cell]:
    """The trials among which the nested search chooses, for each cell of a method that trains."""
    if not recipe.search:
        return []
    found: dict[str, Cell] = {}
    for cell in cells:
        trial = cell.trial
        if not trains(trial.method):
            continue
        base = Trial(trial.data, trial.method, trial.seed, features=trial.features, inner=True)
        for point in make_space(recipe.search).points():
            made = with_settings(base, point, {}, recipe.probe)
            found.setdefault(made.key(), Cell(SEARCH, made, point))
    return list(found.values())


def trains(method: str) -> bool:
    """Whether a method has weights that training changes."""
    entry = METHODS.get(method)
    return entry.kind == "trained" and bool(getattr(entry.make, "trains", True))


def with_settings(
    trial: Trial,
    settings: dict[str, object],
    training: dict[str, object],
    probe: Probe,
    curve: tuple[int, ...] = (),
) -> Trial:
    """The trial at a point: keys that begin with `training.` are the loop's."""
    prefix = "training."
    of_loop = {key.removeprefix(prefix): v for key, v in settings.items() if key.startswith(prefix)}
    return Trial(
        trial.data, trial.method, trial.seed, features=trial.features,
        settings={key: value for key, value in settings.items() if not key.startswith(prefix)},
        training={**training, **of_loop}, protocol=PROBES[probe], curve=curve, inner=trial.inner,
    )  # fmt: skip
