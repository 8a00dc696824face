"""Claims of the paper, and verdicts on them that follow from written rules and stored results.

A claim is about several cases, for example data sets. Each case is a difference in points with its 95 %
interval, so that it is met, not met, or undecided within noise. `CLAIMS` maps each claim to the function that
applies its rule. The claim about transfer is apart, because transfer results have another form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from graphsc.core.tables import Table
from graphsc.evaluation.significance import average_ranks, corrected_t_test
from graphsc.experiments.result import ResultStore
from graphsc.paper.figures import (
    BATCH,
    OURS,
    REFERENCE,
    SAMPLED,
    TAIL,
    TOLERANCE,
    WEIGHT_TITLES,
    convergence_curve,
    negatives_of,
    rates_of,
    weight_of,
)
from graphsc.paper.gather import Position, RecipeResults, gather
from graphsc.paper.recipe import TRANSFER, PlannedTrial, Recipe, Request, TransferRecipe, read_recipe

Verdict = Literal["holds", "does not hold", "undecided", "not tested"]
State = Literal["met", "not met", "undecided"]  # of a case
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Finding:
    """A verdict, and the numbers behind it in whole sentences."""

    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: where it is made, what it states, and the rule of our verdict in words."""

    name: str
    where: str
    statement: str
    rule: str

    @property
    def recipe(self) -> str:
        """The recipe of the table or figure."""
        return self.where.lower().replace(" ", "")


NOT_TESTED = Finding("not tested", "No trial of it has run yet.")


def on_every_case(states: Iterable[State]) -> Verdict:
    """Holds if all cases are met, does not hold if one is clearly not met; undecided otherwise."""
    found = list(states)
    if not found:
        return "not tested"
    if "not met" in found:
        return "does not hold"
    return "undecided" if "undecided" in found else "holds"


def on_a_share(states: Sequence[State], share: float) -> Verdict:
    """Holds if this share of the cases is met, does not hold if it cannot be reached; undecided otherwise."""
    if not states:
        return "not tested"
    if states.count("met") >= share * len(states):
        return "holds"
    return "undecided" if len(states) - states.count("not met") >= share * len(states) else "does not hold"


@dataclass(frozen=True)
class Estimate:
    """A mean difference in points, and half of its 95 % interval (infinite where noise is not known)."""

    mean: float
    margin: float

    def above(self, threshold: float) -> State:
        """Whether the difference is above a threshold."""
        if self.mean - self.margin > threshold:
            return "met"
        return "not met" if self.mean + self.margin <= threshold else "undecided"

    def within(self, threshold: float) -> State:
        """Whether the difference is no larger than a threshold."""
        opposite: dict[State, State] = {"met": "not met", "not met": "met", "undecided": "undecided"}
        return opposite[self.above(threshold)]

    @property
    def text(self) -> str:
        return f"{self.mean:+.2f}" + (f" ± {self.margin:.2f}" if np.isfinite(self.margin) else "")


def estimate(differences: NDArray[np.float64]) -> Estimate:
    """The mean of differences in points on common folds, seeds x folds, by the test of all our tables."""
    test = corrected_t_test(differences, 1 / differences.shape[1])
    if not test.degrees:
        return Estimate(test.mean, np.inf)
    return Estimate(test.mean, float(stats.t.ppf((1 + CONFIDENCE) / 2, test.degrees)) * test.error)


def difference(one: RecipeResults, other: RecipeResults) -> Estimate | None:
    """Accuracy of one point minus that of another, over the seeds that both have; `None` without any."""
    ours, theirs = _by_seed(one), _by_seed(other)
    common = sorted(ours.keys() & theirs.keys())
    return estimate(np.stack([ours[seed] - theirs[seed] for seed in common])) if common else None


def _by_seed(point: RecipeResults) -> dict[int, NDArray[np.float64]]:
    """Fold accuracies in per cent by seed."""
    return {c.planned.trial.seed: 100 * c.result.accuracies for c in point.completed}


def _all_seeds_agree(met: Sequence[bool]) -> State:
    """A case that is met or not by seed: decided if two or more seeds agree, and none disagrees."""
    if len(met) < 2 or len(set(met)) > 1:
        return "undecided"
    return "met" if met[0] else "not met"


# Tables 3 and 5.

BASELINES = ("raw", "untrained")  # rows that the paper does not have
MIN_DATA_SETS = 3  # data sets that all methods need before ranks are compared
FIRST_SHARE = 5 / 8  # of the data sets, as in the paper
TOP = 3  # ranks that are listed


def first_places(results: RecipeResults) -> Finding:
    """On how many data sets GraphSC is first among the methods of the paper."""
    methods, columns = _paper_methods(results)
    if len(columns) < MIN_DATA_SETS:
        return _too_few(methods, columns)
    states, texts = [], []
    for column in columns:
        means = {m: results.line(column, m).series().mean for m in methods if m != OURS}
        rival = max(means, key=lambda method: means[method])
        lead = difference(results.line(column, OURS), results.line(column, rival))
        if lead is not None:
            states.append(lead.above(0))
            texts.append(f"{column} {lead.text} ({rival})")
    return Finding(
        on_a_share(states, FIRST_SHARE),
        f"GraphSC minus the best other method, in points: {', '.join(texts)}. First on {states.count('met')} "
        f"of {len(states)} data sets, not first on {states.count('not met')}, within noise on "
        f"{states.count('undecided')}.",
    )


def average_rank(results: RecipeResults) -> Finding:
    """Whether GraphSC has the best average rank, seed by seed."""
    methods, columns = _paper_methods(results)
    if len(columns) < MIN_DATA_SETS:
        return _too_few(methods, columns)
    cells = {(m, c): _by_seed(results.line(c, m)) for m in methods for c in columns}
    seeds = sorted(set.intersection(*(set(cell) for cell in cells.values())))
    if not seeds:
        return Finding("not tested", "No seed has run with every method.")
    ranks = np.stack(
        [average_ranks([[cells[m, c][seed].mean() for c in columns] for m in methods]) for seed in seeds]
    )
    ours = methods.index(OURS)
    first = [bool(row[ours] == row.min()) for row in ranks]
    means = dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True))
    order = sorted(methods, key=lambda method: (means[method], method))
    listed = ", ".join(f"{method} {means[method]:.2f}" for method in order[:TOP])
    return Finding(
        on_every_case([_all_seeds_agree(first)]),
        f"Average ranks over {len(columns)} data sets and {_seeds(len(seeds))}: {listed}; {OURS} has "
        f"{means[OURS]:.2f}, place {order.index(OURS) + 1} of {len(methods)}. It is first with {sum(first)} "
        f"of {_seeds(len(seeds))}.",
    )


def below_full_model(results: RecipeResults, ablation: str) -> Finding:
    """Whether an ablation is below the full model on every data set."""
    gaps = {
        column: gap
        for column in results.columns
        if (gap := difference(results.line(column, OURS), results.line(column, ablation))) is not None
    }
    return _above(gaps, 0.0, f"The full model minus {ablation}")


def _paper_methods(results: RecipeResults) -> tuple[list[str], list[str]]:
    """The methods of the paper, and the columns in which all of them have a number."""
    methods = [method for method in results.methods if method not in BASELINES]
    complete = [c for c in results.columns if all(results.line(c, method).completed for method in methods)]
    return methods, complete


def _too_few(methods: Sequence[str], columns: Sequence[str]) -> Finding:
    return Finding("not tested", f"All {len(methods)} methods have run on {len(columns)} data sets only.")


def _above(cases: Mapping[str, Estimate], threshold: float, what: str) -> Finding:
    """Whether differences are above a threshold in every case."""
    if not cases:
        return NOT_TESTED
    states = [case.above(threshold) for case in cases.values()]
    return Finding(on_every_case(states), _listed(cases, what) + _counted(states))


def _within(cases: Mapping[str, Estimate], threshold: float, what: str) -> Finding:
    """Whether differences are no larger than a threshold in every case."""
    if not cases:
        return NOT_TESTED
    states = [case.within(threshold) for case in cases.values()]
    return Finding(on_every_case(states), _listed(cases, what) + _counted(states))


def _listed(cases: Mapping[str, Estimate], what: str) -> str:
    return f"{what}, in points: {', '.join(f'{name} {case.text}' for name, case in cases.items())}."


def _counted(states: Sequence[State]) -> str:
    return (
        f" Met in {states.count('met')} of {len(states)} cases, not met in {states.count('not met')}, within "
        f"noise in {states.count('undecided')}."
    )


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count > 1 else ''}"


# Figures 1, 3, 4 and 5.

STABLE_RANGE = 2.0  # points between best and worst within which accuracy counts as stable
MIN_GAIN = 0.5  # points above the untrained encoder from which on a method has learned
MIN_DROP = 2.0  # points below the best from which on accuracy has fallen
REFERENCE_SHARE = 0.75  # of the pairs of rates at which GraphSC must be above GraphCL


def rdt_does_not_learn(results: RecipeResults) -> Finding:
    gains = {}
    for data in results.columns:
        curves = [c.result.curve for c in results.line(data, "graphsc-rdt").completed]
        accuracies = [100 * curve.right / curve.sizes for curve in curves if curve is not None]
        if accuracies:  # epochs x folds
            gains[data] = estimate(np.stack([one[-TAIL:].mean(axis=0) - one[0] for one in accuracies]))
    what = "Final accuracy of graphsc-rdt minus that of the untrained encoder"
    return _within(gains, MIN_GAIN, what)


def converges_in_20_epochs(results: RecipeResults) -> Finding:
    return _epochs_to_convergence(results, ["graphsc-nm"], lambda ours, theirs: ours <= 20 and theirs > 60)


def converges_faster_than_variants(results: RecipeResults) -> Finding:
    variants = ["graphsc-rd", "graphsc-nb"]
    return _epochs_to_convergence(results, variants, lambda ours, theirs: ours < theirs)


def _epochs_to_convergence(
    results: RecipeResults, variants: Sequence[str], met: Callable[[int, int], bool]
) -> Finding:
    """Compare the epochs of GraphSC with those of variants, seed by seed."""
    states, texts = [], []
    for data in results.columns:
        ours = convergence_curve(results, data, OURS)
        for variant in variants:
            theirs = convergence_curve(results, data, variant)
            if ours is not None and theirs is not None:
                pairs = list(zip(ours.converged_by_seed, theirs.converged_by_seed, strict=False))
                states.append(_all_seeds_agree([met(*pair) for pair in pairs]))
                listed = ", ".join(f"{one} and {other}" for one, other in pairs)
                texts.append(f"{data} {listed} ({variant})")
    if not states:
        return NOT_TESTED
    text = f"Epochs to convergence by seed, {OURS} and the variant: {'; '.join(texts)}."
    return Finding(on_every_case(states), text + _counted(states))


def graphcl_depends_on_k(results: RecipeResults) -> Finding:
    drops = {}
    for data in results.columns:
        for part, title in ((BATCH, "batch size varied"), (SAMPLED, "K sampled")):
            points = _complete_points(results.line(data, "graphcl", part), negatives_of)
            if points:
                drop = difference(_best(points), next(iter(points.values())))
                assert drop is not None  # noqa: S101 - points have common seeds
                drops[f"{data}, {title}"] = drop
    return _above(drops, MIN_DROP, "Best accuracy of GraphCL minus that at the smallest K")


def graphsc_does_not_depend_on_k(results: RecipeResults) -> Finding:
    lines = {data: results.line(data, OURS, BATCH) for data in results.columns}
    return _stable("Best minus worst over the batch sizes", lines, negatives_of)


def stable_over_weights(results: RecipeResults) -> Finding:
    lines = {
        f"{data} {title}": results.line(data, OURS, part)
        for data in results.columns
        for part, title in WEIGHT_TITLES.items()
    }
    return _stable("Best minus worst over the six values", lines, weight_of)


def stable_over_rates(results: RecipeResults) -> Finding:
    states: list[State] = []
    texts = []
    for data in results.columns:
        graphcl = results.line(data, "graphcl", REFERENCE)
        points = _complete_points(results.line(data, OURS), rates_of)
        leads = [difference(point, graphcl) for point in points.values()]
        width = _range(points)
        if width is None or None in leads:
            continue
        signs = [lead.above(0) for lead in leads if lead is not None]
        above: dict[Verdict, State] = {"holds": "met", "does not hold": "not met"}
        states += [
            width.within(STABLE_RANGE),
            above.get(on_a_share(signs, REFERENCE_SHARE), "undecided"),
        ]
        texts.append(
            f"{data}: best minus worst {width.text} points; above GraphCL at {signs.count('met')} of "
            f"{len(signs)} pairs, below at {signs.count('not met')}, within noise at "
            f"{signs.count('undecided')}"
        )
    return Finding(on_every_case(states), f"{'. '.join(texts)}.") if texts else NOT_TESTED


def _complete_points(
    line: RecipeResults, position: Callable[[PlannedTrial], Position]
) -> dict[Position, RecipeResults]:
    """The points of a sweep in order; empty where one of them has not run."""

    def at(x: Position) -> RecipeResults:
        return line.filtered(lambda planned: position(planned) == x)

    points = {x: at(x) for x in sorted({position(planned) for planned in line.planned})}
    return points if all(point.completed for point in points.values()) else {}


def _best(points: Mapping[Position, RecipeResults]) -> RecipeResults:
    return max(points.values(), key=lambda point: point.series().mean)


def _range(points: Mapping[Position, RecipeResults]) -> Estimate | None:
    """Best minus worst point of a sweep."""
    if not points:
        return None
    return difference(_best(points), min(points.values(), key=lambda point: point.series().mean))


def _stable(
    what: str, lines: Mapping[str, RecipeResults], position: Callable[[PlannedTrial], float]
) -> Finding:
    widths = {name: _range(_complete_points(line, position)) for name, line in lines.items()}
    return _within({name: w for name, w in widths.items() if w is not None}, STABLE_RANGE, what)


# Table 4.

TRANSFER_SETS = ("ClinTox", "MUV")
LEAD = 6.0  # points of AUROC
TRANSFER_CLAIM = Claim(
    "6 points over GraphCL in transfer",
    "Table 4",
    "GraphSC leads GraphCL by more than 6 points of AUROC on ClinTox and on MUV.",
    "Fine-tuned encoders at the epoch with the best validation score; mean lead in test AUROC over the "
    "seeds that both methods have, with its 95 % interval over seeds. Holds if the interval is above 6 "
    "points on both data sets, does not hold if it is below on one; not tested until both methods have run "
    "on both.",
)


def leads_graphcl(store: ResultStore) -> Finding:
    """Mean lead of GraphSC over GraphCL on each data set that has run; a verdict if both have."""
    leads, texts = {}, []
    for data in TRANSFER_SETS:
        ours, theirs = _test_scores(store, data, OURS), _test_scores(store, data, "graphcl")
        common = sorted(ours.keys() & theirs.keys())
        if common:
            differences = np.array([100 * (ours[seed] - theirs[seed]) for seed in common])
            leads[data] = _over_seeds(differences)
            texts.append(f"{data} {leads[data].text} ({_seeds(len(common))})")
    if not leads:
        return NOT_TESTED
    text = f"GraphSC minus GraphCL, in points of AUROC: {', '.join(texts)}."
    missing = [data for data in TRANSFER_SETS if data not in leads]
    if missing:
        return Finding("not tested", f"{text} {' and '.join(missing)} has not run with both.")
    return Finding(on_every_case([lead.above(LEAD) for lead in leads.values()]), text)


def _over_seeds(differences: NDArray[np.float64]) -> Estimate:
    """The mean over seeds with its 95 % interval by Student's t."""
    count = len(differences)
    if count < 2:
        return Estimate(float(differences.mean()), np.inf)
    error = float(differences.std(ddof=1)) / np.sqrt(count)
    return Estimate(float(differences.mean()), float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error)


def _test_scores(store: ResultStore, data: str, method: str) -> dict[int, float]:
    """Test AUROC by seed, of the recipe's fine-tuning trials that have run."""
    recipe = read_recipe(TRANSFER)
    assert isinstance(recipe, TransferRecipe)  # noqa: S101 - narrows the type
    scores = {}
    for trial in (trial for table in recipe.tables for trial in table.trials()):
        if (trial.data_name, trial.method, trial.way) == (data, method, "fine-tuned"):
            result = store.get(trial)
            if result is not None:
                scores[trial.seed] = result.score("best" if "best" in result.rules else "last")
    return scores


# The claims in the order of the page.

Check = Callable[[RecipeResults], Finding]


def _on_figure(check: Check) -> Check:
    """Points of a figure are compared on common seeds."""
    return lambda results: check(results.on_common_seeds())


def _ablation_claim(method: str, description: str) -> Claim:
    return Claim(
        f"The full model is above {method}", "Table 5",
        f"GraphSC is better than {description}, on every data set.",
        "The full model minus the variant on common folds, with its 95 % interval. Holds if the interval is "
        "above 0 on every data set that both have, does not hold if it is below on one.",
    )  # fmt: skip


CLAIMS: Mapping[Claim, Check] = {
    Claim(
        "First on 5 of 8", "Table 3", "GraphSC ranks first on 5 of 8 data sets.",
        "Among the paper's methods, on the data sets that all of them have: GraphSC is first where the 95 % "
        "interval of its lead over the best other method is above 0, and not first where it is below. Holds "
        "if it is first on five eighths or more, does not hold if it is not first on more than three "
        f"eighths; not tested with fewer than {MIN_DATA_SETS} such data sets.",
    ): first_places,
    Claim(
        "Best average rank", "Table 3", "GraphSC has the best average rank of all methods.",
        "On the same data sets, once for each seed that all methods have. Holds if its average rank is the "
        "lowest with every seed, does not hold if with none; undecided with a single seed.",
    ): average_rank,
    **{
        _ablation_claim(method, description): partial(below_full_model, ablation=method)
        for method, description in (
            ("graphsc-rd", "the variant whose negative is another graph"),
            ("graphsc-nm", "the variant without masked contrast"),
            ("graphsc-nb", "the variant without the absolute term"),
        )
    },
    Claim(
        "rdt does not learn", "Figure 3",
        "With another graph as negative and the triplet loss alone, accuracy does not rise with training.",
        f"Final accuracy (mean of the last {TAIL} evaluated epochs) minus that of the untrained encoder, "
        f"with its 95 % interval. Holds if the interval is below {MIN_GAIN:g} points on every data set, does "
        "not hold if it is above on one.",
    ): _on_figure(rdt_does_not_learn),
    Claim(
        "20 epochs, not 60", "Figure 3",
        "GraphSC converges in 20 epochs where the variant without masked contrast needs more than 60.",
        f"A curve has converged at the first evaluated epoch no more than {TOLERANCE:g} points below its "
        "final accuracy. Met on a data set if with every seed GraphSC needs 20 epochs or fewer and "
        "graphsc-nm more than 60, not met if with none. Holds if met on every data set, does not hold if "
        "not met on one; undecided with a single seed.",
    ): _on_figure(converges_in_20_epochs),
    Claim(
        "Faster than rd and nb", "Figure 3", "GraphSC converges faster than the variants rd and nb.",
        "By the same epochs and seeds: met for a variant and data set if GraphSC needs fewer with every "
        "seed, not met if with none. Holds if met in every case, does not hold if not met in one.",
    ): _on_figure(converges_faster_than_variants),
    Claim(
        "GraphCL depends on K", "Figure 1",
        "GraphCL is strongly affected by the number K of negatives, and falls off where K is small.",
        "Best point of GraphCL minus the one at the smallest K, with its 95 % interval, with the batch size "
        f"varied and with K sampled. Holds if the interval is above {MIN_DROP:g} points in every sweep, does "
        "not hold if it is below in one.",
    ): _on_figure(graphcl_depends_on_k),
    Claim(
        "GraphSC does not depend on K", "Figure 1",
        "GraphSC, which has one negative, is not affected by the batch size.",
        "Best minus worst point over the batch sizes, with its 95 % interval. Holds if the interval is below "
        f"{STABLE_RANGE:g} points on every data set, does not hold if it is above on one.",
    ): _on_figure(graphsc_does_not_depend_on_k),
    Claim(
        "Stable over rates", "Figure 4", "GraphSC does well over many pairs of rates.",
        "Two conditions on each data set: the 95 % interval of best minus worst pair is below "
        f"{STABLE_RANGE:g} points, and GraphSC is above GraphCL beyond noise at three quarters of the pairs "
        "or more. Holds if both are met on every data set, does not hold if one is not met beyond noise.",
    ): _on_figure(stable_over_rates),
    Claim(
        "Stable over the weights", "Figure 5",
        "GraphSC is very stable over a wide range of its three weights.",
        "Best minus worst over the six values of a weight, with its 95 % interval. Holds if the interval is "
        f"below {STABLE_RANGE:g} points for each weight and data set, does not hold if it is above for one.",
    ): _on_figure(stable_over_weights),
}  # fmt: skip


def check_claims(results: Path) -> list[tuple[Claim, Finding]]:
    """Every claim with its finding from the stored results in a folder."""
    store = ResultStore(results)
    gathered: dict[str, RecipeResults] = {}
    findings = []
    for claim, check in CLAIMS.items():
        if claim.recipe not in gathered:
            recipe = read_recipe(claim.recipe)
            assert isinstance(recipe, Recipe)  # noqa: S101 - narrows the type
            gathered[claim.recipe] = gather(recipe, Request(search=False), store)
        findings.append((claim, check(gathered[claim.recipe])))
    return [*findings, (TRANSFER_CLAIM, leads_graphcl(store))]


_PLURAL = {"holds": "hold", "does not hold": "do not hold"}


def claims_markdown(results: Path) -> str:
    """A table of the verdicts, then each claim with its evidence and its rule."""
    findings = check_claims(results)
    verdicts = [finding.verdict for _, finding in findings]
    counts = {verdict: verdicts.count(verdict) for verdict in get_args(Verdict) if verdict in verdicts}
    summary = ", ".join(
        f"{count} {verdict if count == 1 else _PLURAL.get(verdict, verdict)}"
        for verdict, count in counts.items()
    )
    rows = [(claim.statement, claim.where, f"**{finding.verdict}**") for claim, finding in findings]
    table = Table(("claim", "where", "verdict"), tuple(rows), align="lll")
    sections = [
        f"### {claim.name}\n\n{claim.statement} ({claim.where})\n\n"
        f"**{finding.verdict.capitalize()}.** {finding.evidence}\n\n*Rule.* {claim.rule}\n"
        for claim, finding in findings
    ]
    return "\n".join([f"Of {len(findings)} claims: {summary}.\n", table.markdown(), *sections])
