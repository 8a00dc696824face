"""The paper's claims, the rule of each verdict in words, and what applies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graphsc.experiments.comparison import Comparison
from graphsc.experiments.reproduce import claims_of_figures as figures
from graphsc.experiments.reproduce import claims_of_tables as tables
from graphsc.experiments.reproduce import claims_of_transfer as transfer
from graphsc.experiments.reproduce.comparison_table import compared
from graphsc.experiments.reproduce.expand import Cell, Request, expand
from graphsc.experiments.reproduce.gather import Found, gather, on_common_seeds, set_of, sets_of
from graphsc.experiments.reproduce.recipe import Recipe, read_recipe
from graphsc.experiments.reproduce.verdict import NOT_TESTED, Claim, Finding
from graphsc.experiments.store import ResultStore
from graphsc.experiments.transfer_run import TransferStore


@dataclass(frozen=True)
class Stored:
    """A recipe with what of it has run."""

    recipe: Recipe
    cells: Sequence[Cell]
    found: Sequence[Found]

    @classmethod
    def of(cls, name: str, store: ResultStore) -> Stored:
        recipe = read_recipe(name)
        cells = expand(recipe, Request(search=False))
        return cls(recipe, cells, gather(cells, store))


Rule = tuple[Claim, str, Callable[[Stored], Finding]]  # the claim, its recipe, and what looks at it


def claims(results: Path) -> list[tuple[Claim, Finding]]:
    """Every claim with its finding, in the order of the page."""
    store = ResultStore(results)
    known: dict[str, Stored] = {}
    found = []
    for claim, recipe, find in CLAIMS:
        if recipe not in known:
            known[recipe] = Stored.of(recipe, store)
        found.append((claim, find(known[recipe])))
    return [*found, (transfer.CLAIM, transfer.six_points(TransferStore(results)))]


def counts(found: Sequence[tuple[Claim, Finding]]) -> Mapping[str, int]:
    """How many claims have which verdict."""
    verdicts = [finding.verdict for _, finding in found]
    return {name: verdicts.count(name) for name in ("holds", "holds partly", "does not hold", "not tested")}


def _table(
    name: str, recipe: str, where: str, says: str, rule: str, find: Callable[[Comparison], Finding]
) -> Rule:
    claim = Claim(name, where, says, rule)
    return claim, recipe, lambda stored: find(compared(stored.recipe, stored.cells, stored.found))


def _ablation(method: str, what: str) -> Rule:
    return _table(
        f"The full model is above {method}", "table5", "Table 5",
        f"GraphSC is better than {what}, on every data set.",
        "Holds if the full model's mean is higher on every data set that both have; partly if on more than "
        "half of them.",
        lambda table: tables.below(table, method),
    )  # fmt: skip


def _figure(name: str, recipe: str, where: str, says: str, rule: str, find: figures.Rule) -> Rule:
    def finding(stored: Stored) -> Finding:
        kept = on_common_seeds(stored.found)
        made = find(stored.cells, kept)
        seeds = {
            data: len({one.cell.trial.seed for one in kept if set_of(one.cell) == data})
            for data in sets_of(one.cell for one in kept)
        }
        noise = " One seed a point: the noise of a single training is in it." if 1 in seeds.values() else ""
        return made if made == NOT_TESTED else replace(made, figures=made.figures + noise)

    return Claim(name, where, says, rule), recipe, finding


CLAIMS: tuple[Rule, ...] = (
    _table(
        "First on 5 of 8", "table3", "Table 3", "GraphSC ranks first on 5 of 8 data sets.",
        "Among the paper's systems, on the data sets that all of them have. Holds if GraphSC is first on "
        f"five eighths of these or more; partly if on any; not tested with fewer than {tables.FEWEST} such "
        "sets.",
        tables.first_places,
    ),
    _table(
        "Best average rank", "table3", "Table 3", "GraphSC has the best average rank of all systems.",
        "On the same data sets. Holds if its average rank is the lowest; partly if among the lowest "
        f"{tables.AMONG}.",
        tables.average_rank,
    ),
    _ablation("graphsc-rd", "the variant whose negative is another graph"),
    _ablation("graphsc-nm", "the variant without masked contrast"),
    _ablation("graphsc-nb", "the variant without the absolute term"),
    _figure(
        "rdt does not learn", "figure3", "Figure 3",
        "With another graph as negative and the triplet loss alone, accuracy does not rise with training.",
        f"Holds if the curve of graphsc-rdt ends no more than {figures.RISE:g} points above its first point, "
        "which is the untrained encoder, on every data set; partly if on more than half of them.",
        figures.rdt_does_not_learn,
    ),
    _figure(
        "20 epochs, not 60", "figure3", "Figure 3",
        "GraphSC converges in 20 epochs where the variant without masked contrast needs more than 60.",
        "By the first epoch that comes within 0.5 points of the end. Holds if on every data set GraphSC "
        "needs 20 or fewer and graphsc-nm more than 60; partly if GraphSC needs fewer than graphsc-nm on "
        "more than half of them.",
        figures.twenty_not_sixty,
    ),
    _figure(
        "Faster than rd and nb", "figure3", "Figure 3", "GraphSC converges faster than the variants rd and "
        "nb.",
        "By the same epochs. Holds if GraphSC needs fewer than both on every data set; partly if fewer in "
        "more than half of the pairs.",
        figures.faster_than_others,
    ),
    _figure(
        "GraphCL depends on K", "figure1", "Figure 1",
        "GraphCL is strongly affected by the number K of negatives, and falls off where K is small.",
        f"Holds if GraphCL at the smallest K is {figures.DROP:g} points or more below its best, both with "
        "the batch size varied and with K drawn, on every data set; partly if in more than half of these "
        "sweeps.",
        figures.graphcl_depends,
    ),
    _figure(
        "GraphSC does not depend on K", "figure1", "Figure 1",
        "GraphSC, which has one negative, is not affected by the batch size.",
        f"Holds if its accuracy over the batch sizes stays within {figures.STABLE:g} points on every data "
        "set; partly if on more than half of them.",
        figures.graphsc_does_not_depend,
    ),
    _figure(
        "Stable over rates", "figure4", "Figure 4", "GraphSC does well over many pairs of rates.",
        f"Two conditions: over all pairs its accuracy stays within {figures.STABLE:g} points, and it is "
        "above GraphCL at three quarters of the pairs or more. Holds if both are met on every data set; "
        "partly if one of them is met on more than half.",
        figures.stable_over_rates,
    ),
    _figure(
        "Stable over the weights", "figure5", "Figure 5",
        "GraphSC is very stable over a wide range of its three weights.",
        f"Holds if accuracy stays within {figures.STABLE:g} points over the six values of a weight, for each "
        "weight and data set; partly if for more than half of them.",
        figures.stable_over_weights,
    ),
)  # fmt: skip
