"""The paper's claims, the rule of each verdict in words, and what applies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from graphsc.evaluation.significance import average_ranks
from graphsc.experiments.comparison import Comparison
from graphsc.experiments.result import ResultStore
from graphsc.experiments.tables import LEVEL
from graphsc.finetuning.result import TransferResult
from graphsc.paper.figures import (
    BATCH,
    SAMPLED,
    SYMBOLS,
    accuracies,
    axes_of,
    by_negatives,
    by_weight,
    curve_of,
    rate_reference_of,
)
from graphsc.paper.gather import Found, Series, gather, on_common_seeds, set_of, sets_of
from graphsc.paper.recipe import (
    TRANSFER,
    PlannedTrial,
    Recipe,
    Request,
    TransferRecipe,
    expand,
    read_recipe,
)
from graphsc.paper.tables import compared

# A claim of the paper, what we found, and a verdict that follows from a written rule.


Verdict = Literal["holds", "holds partly", "does not hold", "not tested"]


@dataclass(frozen=True)
class Finding:
    """What stored results say of one claim; `figures` are whole sentences with the numbers."""

    verdict: Verdict
    figures: str


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, what it says, and the rule of our verdict, in words."""

    name: str
    where: str
    says: str
    rule: str


NOT_TESTED = Finding("not tested", "Nothing of it has run yet.")


def by_share(true: int, of: int) -> Verdict:
    """Everywhere, somewhere, nowhere; and nothing where nothing was looked at."""
    if not of:
        return "not tested"
    if true == of:
        return "holds"
    return "holds partly" if 2 * true > of else "does not hold"


# What the figures' stored results say of the claims made with them.


OURS = "graphsc"
STABLE = 2.0  # points between the best and the worst within which accuracy counts as stable
RISE = 0.5  # points above the untrained encoder up to which nothing was learned
DROP = 2.0  # points below the best from which accuracy has fallen off

FigureRule = Callable[[Sequence[PlannedTrial], Sequence[Found]], Finding]


def rdt_does_not_learn(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    gains = {
        data: curve.gain
        for data in sets_of(cells)
        if (curve := curve_of(found, data, "graphsc-rdt")) is not None
    }
    if not gains:
        return NOT_TESTED
    flat = sum(gain <= RISE for gain in gains.values())
    said = ", ".join(f"{data} {gain:+.2f}" for data, gain in gains.items())
    return Finding(
        by_share(flat, len(gains)), f"The end of graphsc-rdt minus the untrained encoder, in points: {said}."
    )


def twenty_not_sixty(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    pairs = _epochs(cells, found, ["graphsc-nm"])
    if not pairs:
        return NOT_TESTED
    said = f"Epochs to come near the end, {OURS} and the variant: {_said(pairs)}."
    if all(ours <= 20 and theirs > 60 for _, _, ours, theirs in pairs):
        return Finding("holds", said)
    faster = sum(ours < theirs for _, _, ours, theirs in pairs)
    return Finding("holds partly" if 2 * faster > len(pairs) else "does not hold", said)


def faster_than_others(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    pairs = _epochs(cells, found, ["graphsc-rd", "graphsc-nb"])
    if not pairs:
        return NOT_TESTED
    faster = sum(ours < theirs for _, _, ours, theirs in pairs)
    said = f"Epochs to come near the end, {OURS} and the variant: {_said(pairs)}."
    return Finding(by_share(faster, len(pairs)), said)


def _epochs(
    cells: Sequence[PlannedTrial], found: Sequence[Found], others: Sequence[str]
) -> list[tuple[str, str, int, int]]:
    """Data set, variant, our epochs, its epochs."""
    pairs = []
    for data in sets_of(cells):
        ours = curve_of(found, data, OURS)
        for other in others:
            theirs = curve_of(found, data, other)
            if ours is not None and theirs is not None:
                pairs.append((data, other, ours.near, theirs.near))
    return pairs


def _said(pairs: Sequence[tuple[str, str, int, int]]) -> str:
    return ", ".join(f"{data} {ours} and {theirs} ({other})" for data, other, ours, theirs in pairs)


def graphcl_depends(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    drops = {}
    for data in sets_of(cells):
        for part, words in ((BATCH, "batch size varied"), (SAMPLED, "K drawn")):
            line = _complete_series(by_negatives(cells, found, data, part, "graphcl"))
            if line:
                drops[f"{data}, {words}"] = max(line) - line[0]
    if not drops:
        return NOT_TESTED
    fallen = sum(drop >= DROP for drop in drops.values())
    said = "; ".join(f"{where} {drop:.2f}" for where, drop in drops.items())
    return Finding(
        by_share(fallen, len(drops)), f"GraphCL at its smallest K below its best, in points: {said}."
    )


def graphsc_does_not_depend(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    spreads = {
        data: max(line) - min(line)
        for data in sets_of(cells)
        if (line := _complete_series(by_negatives(cells, found, data, BATCH, OURS)))
    }
    return _stable("Best minus worst over the batch sizes", spreads)


def stable_over_weights(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    spreads = {
        f"{data} {symbol}": max(line) - min(line)
        for data in sets_of(cells)
        for part, symbol in SYMBOLS.items()
        if (line := _complete_series(by_weight(cells, found, data, part, OURS)))
    }
    return _stable("Best minus worst over the six values", spreads)


def stable_over_rates(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> Finding:
    weak, strong = axes_of(cells)
    possible = np.array([[low < high for high in strong] for low in weak])
    narrow, above, said = [], [], []
    for data in sets_of(cells):
        values = accuracies(cells, found, data, OURS)[possible]
        beside = rate_reference_of(found, data).mean
        if np.isnan(values).any() or np.isnan(beside):
            continue
        spread, share = float(np.ptp(values)), float((values > beside).mean())
        narrow.append(spread <= STABLE)
        above.append(share >= 0.75)
        said.append(f"{data}: within {spread:.2f} points, above GraphCL at {share:.0%} of the pairs")
    if not said:
        return NOT_TESTED
    text = f"{'; '.join(said)}."
    if all(narrow) and all(above):
        return Finding("holds", text)
    partly = max(2 * sum(narrow), 2 * sum(above)) > len(said)
    return Finding("holds partly" if partly else "does not hold", text)


def _complete_series(line: dict[float, Series] | dict[int, Series]) -> list[float]:
    """Means along a sweep; nothing where a point of it is missing."""
    means = [one.mean for one in line.values()]
    return means if means and not np.isnan(means).any() else []


def _stable(words: str, spreads: dict[str, float]) -> Finding:
    if not spreads:
        return NOT_TESTED
    said = ", ".join(f"{where} {spread:.2f}" for where, spread in spreads.items())
    narrow = sum(spread <= STABLE for spread in spreads.values())
    return Finding(by_share(narrow, len(spreads)), f"{words}, in points: {said}.")


# What the tables' stored results say of the claims made with them.


YARDSTICKS = ("raw", "untrained")  # rows that the paper has not
FEWEST = 3  # data sets below which ranks are not spoken of
FIRST = 5 / 8  # of the data sets, as the paper has it
AMONG = 3  # places that still count as near the top


def first_places(table: Comparison) -> Finding:
    """On how many sets GraphSC is first among the systems of the paper."""
    systems, sets = _systems(table)
    if len(sets) < FEWEST:
        return _too_few(systems, sets)
    best = {}
    for column in sets:
        means = {method: table.cells[method, column].summary.mean for method in systems}
        best[column] = max(means, key=lambda method: means[method])
    first = [column for column in sets if best[column] == OURS]
    said = ", ".join(f"{column}: {method}" for column, method in best.items())
    text = f"First on {len(first)} of the {len(sets)} data sets that every system has ({said})."
    if len(first) >= FIRST * len(sets):
        return Finding("holds", text)
    return Finding("holds partly" if first else "does not hold", text)


def average_rank(table: Comparison) -> Finding:
    """Whether GraphSC has the best average rank."""
    systems, sets = _systems(table)
    if len(sets) < FEWEST:
        return _too_few(systems, sets)
    means = np.array([[table.cells[method, c].summary.mean for c in sets] for method in systems])
    ranks = dict(zip(systems, average_ranks(means).tolist(), strict=True))
    order = sorted(systems, key=lambda method: (ranks[method], method))
    place = order.index(OURS) + 1
    shown = ", ".join(f"{method} {ranks[method]:.2f}" for method in order[:AMONG])
    text = (
        f"Average ranks over {len(sets)} data sets: {shown}; {OURS} has {ranks[OURS]:.2f}, place {place} of "
        f"{len(systems)}."
    )
    if place == 1:
        return Finding("holds", text)
    return Finding("holds partly" if place <= AMONG else "does not hold", text)


def below(table: Comparison, ablation: str) -> Finding:
    """Whether an ablation is below the full model, set by set."""
    sets = _complete_columns(table, [OURS, ablation])
    if not sets:
        return NOT_TESTED
    gaps = {c: table.cells[OURS, c].summary.mean - table.cells[ablation, c].summary.mean for c in sets}
    lower = [c for c in sets if gaps[c] > 0]
    p_values = {c: table.cells[ablation, c].p_value for c in lower}
    sure = [c for c, p_value in p_values.items() if p_value is not None and p_value < LEVEL]
    said = ", ".join(f"{c} {gap:+.2f}" for c, gap in gaps.items())
    text = (
        f"The full model minus {ablation}, in points: {said}. Above on {len(lower)} of {len(sets)}, "
        f"significantly on {len(sure)}."
    )
    return Finding(by_share(len(lower), len(sets)), text)


def _systems(table: Comparison) -> tuple[list[str], list[str]]:
    systems = [method for method in table.methods if method not in YARDSTICKS]
    return systems, _complete_columns(table, systems)


def _complete_columns(table: Comparison, methods: Sequence[str]) -> list[str]:
    """Columns in which every method has a number."""
    return [c for c in table.columns if all((method, c) in table.cells for method in methods)]


def _too_few(systems: Sequence[str], sets: Sequence[str]) -> Finding:
    return Finding("not tested", f"All {len(systems)} systems have run on {len(sets)} data sets only.")


# What stored results of transfer say of the claim made with Table 4.


THEIRS = "graphcl"
SETS = ("ClinTox", "MUV")
LEAD = 6.0  # points of AUROC
RULE = "best"  # of validation: the choice of a model that needs no test label and no fixed number of epochs

CLAIM = Claim(
    "6 points over GraphCL in transfer",
    "Table 4",
    "GraphSC leads GraphCL by more than 6 points of AUROC on ClinTox and on MUV.",
    "Of fine-tuned encoders, the model being that of the epoch which validation likes best; mean test AUROC "
    "over the seeds that both have. Holds if GraphSC is 6 points higher or more on both sets; partly if on "
    "one; not tested as long as either set has not run with both.",
)


def six_points(store: ResultStore) -> Finding:
    """The lead on each set that has run; a verdict where both have."""
    leads = {}
    for data in SETS:
        ours, theirs = _scores(store, data, OURS), _scores(store, data, THEIRS)
        common = sorted(set(ours) & set(theirs))
        if common:
            leads[data] = 100 * sum(ours[seed] - theirs[seed] for seed in common) / len(common), len(common)
    if not leads:
        return NOT_TESTED
    said = ", ".join(f"{data} {lead:+.2f} ({_seeds(count)})" for data, (lead, count) in leads.items())
    text = f"GraphSC minus GraphCL, in points of AUROC: {said}."
    missing = [data for data in SETS if data not in leads]
    if missing:
        return Finding("not tested", f"{text} {' and '.join(missing)} has not run with both.")
    met = sum(lead >= LEAD for lead, _ in leads.values())
    return Finding("holds" if met == len(SETS) else "holds partly" if met else "does not hold", text)


def _scores(store: ResultStore, data: str, method: str) -> dict[int, float]:
    """Test AUROC by seed, of the fine-tuned trials of the recipe that have run."""
    found: dict[int, float] = {}
    for table in _transfer_recipe().tables:
        for trial in table.trials():
            if (trial.data_name, trial.method, trial.way) == (data, method, "fine-tuned"):
                kept = store.get(trial)
                if kept is not None:
                    found[trial.seed] = _score(kept)
    return found


def _transfer_recipe() -> TransferRecipe:
    recipe = read_recipe(TRANSFER)
    assert isinstance(recipe, TransferRecipe)  # noqa: S101 - narrows the type
    return recipe


def _score(result: TransferResult) -> float:
    return result.score(RULE if RULE in result.rules else "last")


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


@dataclass(frozen=True)
class Stored:
    """A recipe with what of it has run."""

    recipe: Recipe
    cells: Sequence[PlannedTrial]
    found: Sequence[Found]

    @classmethod
    def of(cls, name: str, store: ResultStore) -> Stored:
        recipe = read_recipe(name)
        assert isinstance(recipe, Recipe)  # noqa: S101 - claims of transfer have a rule of their own
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
    return [*found, (CLAIM, six_points(ResultStore(results)))]


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
        lambda table: below(table, method),
    )  # fmt: skip


def _figure(name: str, recipe: str, where: str, says: str, rule: str, find: FigureRule) -> Rule:
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
        f"five eighths of these or more; partly if on any; not tested with fewer than {FEWEST} such "
        "sets.",
        first_places,
    ),
    _table(
        "Best average rank", "table3", "Table 3", "GraphSC has the best average rank of all systems.",
        "On the same data sets. Holds if its average rank is the lowest; partly if among the lowest "
        f"{AMONG}.",
        average_rank,
    ),
    _ablation("graphsc-rd", "the variant whose negative is another graph"),
    _ablation("graphsc-nm", "the variant without masked contrast"),
    _ablation("graphsc-nb", "the variant without the absolute term"),
    _figure(
        "rdt does not learn", "figure3", "Figure 3",
        "With another graph as negative and the triplet loss alone, accuracy does not rise with training.",
        f"Holds if the curve of graphsc-rdt ends no more than {RISE:g} points above its first point, "
        "which is the untrained encoder, on every data set; partly if on more than half of them.",
        rdt_does_not_learn,
    ),
    _figure(
        "20 epochs, not 60", "figure3", "Figure 3",
        "GraphSC converges in 20 epochs where the variant without masked contrast needs more than 60.",
        "By the first epoch that comes within 0.5 points of the end. Holds if on every data set GraphSC "
        "needs 20 or fewer and graphsc-nm more than 60; partly if GraphSC needs fewer than graphsc-nm on "
        "more than half of them.",
        twenty_not_sixty,
    ),
    _figure(
        "Faster than rd and nb", "figure3", "Figure 3", "GraphSC converges faster than the variants rd and "
        "nb.",
        "By the same epochs. Holds if GraphSC needs fewer than both on every data set; partly if fewer in "
        "more than half of the pairs.",
        faster_than_others,
    ),
    _figure(
        "GraphCL depends on K", "figure1", "Figure 1",
        "GraphCL is strongly affected by the number K of negatives, and falls off where K is small.",
        f"Holds if GraphCL at the smallest K is {DROP:g} points or more below its best, both with "
        "the batch size varied and with K drawn, on every data set; partly if in more than half of these "
        "sweeps.",
        graphcl_depends,
    ),
    _figure(
        "GraphSC does not depend on K", "figure1", "Figure 1",
        "GraphSC, which has one negative, is not affected by the batch size.",
        f"Holds if its accuracy over the batch sizes stays within {STABLE:g} points on every data "
        "set; partly if on more than half of them.",
        graphsc_does_not_depend,
    ),
    _figure(
        "Stable over rates", "figure4", "Figure 4", "GraphSC does well over many pairs of rates.",
        f"Two conditions: over all pairs its accuracy stays within {STABLE:g} points, and it is "
        "above GraphCL at three quarters of the pairs or more. Holds if both are met on every data set; "
        "partly if one of them is met on more than half.",
        stable_over_rates,
    ),
    _figure(
        "Stable over the weights", "figure5", "Figure 5",
        "GraphSC is very stable over a wide range of its three weights.",
        f"Holds if accuracy stays within {STABLE:g} points over the six values of a weight, for each "
        "weight and data set; partly if for more than half of them.",
        stable_over_weights,
    ),
)  # fmt: skip


# What is known of every claim of the paper, in words.


_SEVERAL = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}


def claims_markdown(results: Path) -> str:
    """Every claim with what we found, its verdict and the rule of the verdict."""
    found = claims(results)
    summary = ", ".join(
        f"{count} {name if count == 1 else _SEVERAL.get(name, name)}"
        for name, count in counts(found).items()
        if count
    )
    lines = [f"Of {len(found)} claims: {summary}.", "", "| claim | where | verdict |", "| --- | --- | --- |"]
    lines += [f"| {claim.says} | {claim.where} | **{finding.verdict}** |" for claim, finding in found]
    for claim, finding in found:
        lines += [
            "", f"### {claim.name}", "", f"{claim.says} ({claim.where})", "",
            f"**{finding.verdict.capitalize()}.** {finding.figures}", "", f"*Rule.* {claim.rule}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"
