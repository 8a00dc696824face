"""Claims of the paper, and verdicts on them that follow from written rules and stored results.

`CLAIMS` maps each claim to the function that applies its rule. The claim about transfer is apart, because
transfer results have another form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphsc.core.tables import Table
from graphsc.evaluation.significance import average_ranks
from graphsc.experiments.comparison import Comparison
from graphsc.experiments.result import ResultStore
from graphsc.experiments.tables import LEVEL
from graphsc.paper.figures import (
    BATCH,
    OURS,
    SAMPLED,
    TOLERANCE,
    WEIGHT_TITLES,
    convergence_curve,
    negatives_of,
    rate_axes,
    rate_grids,
    weight_of,
)
from graphsc.paper.gather import RecipeResults, Series, gather
from graphsc.paper.recipe import TRANSFER, Recipe, Request, TransferRecipe, read_recipe
from graphsc.paper.tables import compare_fixed_settings

Verdict = Literal["holds", "holds partly", "does not hold", "not tested"]


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


def by_share(count: int, total: int) -> Verdict:
    """Holds if it is true in all cases, partly if in more than half; not tested without any case."""
    if not total:
        return "not tested"
    if count == total:
        return "holds"
    return "holds partly" if 2 * count > total else "does not hold"


# Tables 3 and 5.

BASELINES = ("raw", "untrained")  # rows that the paper does not have
MIN_DATA_SETS = 3  # data sets that all methods need before ranks are compared
FIRST_SHARE = 5 / 8  # of the data sets, as in the paper
TOP = 3  # ranks that count as near the best


def first_places(comparison: Comparison) -> Finding:
    """On how many data sets GraphSC is first among the methods of the paper."""
    methods, columns = _paper_methods(comparison)
    if len(columns) < MIN_DATA_SETS:
        return _too_few(methods, columns)
    means = _means(comparison, methods, columns)
    best = {column: methods[k] for column, k in zip(columns, means.argmax(axis=0).tolist(), strict=True)}
    first = sum(method == OURS for method in best.values())
    listed = ", ".join(f"{column}: {method}" for column, method in best.items())
    text = f"First on {first} of the {len(columns)} data sets that every method has ({listed})."
    if first >= FIRST_SHARE * len(columns):
        return Finding("holds", text)
    return Finding("holds partly" if first else "does not hold", text)


def average_rank(comparison: Comparison) -> Finding:
    """Whether GraphSC has the best average rank."""
    methods, columns = _paper_methods(comparison)
    if len(columns) < MIN_DATA_SETS:
        return _too_few(methods, columns)
    ranks = dict(zip(methods, average_ranks(_means(comparison, methods, columns)).tolist(), strict=True))
    order = sorted(methods, key=lambda method: (ranks[method], method))
    place = order.index(OURS) + 1
    listed = ", ".join(f"{method} {ranks[method]:.2f}" for method in order[:TOP])
    text = (
        f"Average ranks over {len(columns)} data sets: {listed}; {OURS} has {ranks[OURS]:.2f}, place {place} "
        f"of {len(methods)}."
    )
    if place == 1:
        return Finding("holds", text)
    return Finding("holds partly" if place <= TOP else "does not hold", text)


def below_full_model(comparison: Comparison, ablation: str) -> Finding:
    """Whether an ablation is below the full model on every data set."""
    columns = _complete_columns(comparison, [OURS, ablation])
    if not columns:
        return NOT_TESTED
    ours, theirs = _means(comparison, [OURS, ablation], columns)
    gaps = dict(zip(columns, (ours - theirs).tolist(), strict=True))
    above = [column for column in columns if gaps[column] > 0]
    p_values = [comparison.cells[ablation, column].p_value for column in above]
    significant = sum(p_value is not None and p_value < LEVEL for p_value in p_values)
    listed = ", ".join(f"{column} {gap:+.2f}" for column, gap in gaps.items())
    return Finding(
        by_share(len(above), len(columns)),
        f"The full model minus {ablation}, in points: {listed}. Above on {len(above)} of {len(columns)}, "
        f"significantly on {significant}.",
    )


def _paper_methods(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The methods of the paper, and the columns in which all of them have a number."""
    methods = [method for method in comparison.methods if method not in BASELINES]
    return methods, _complete_columns(comparison, methods)


def _complete_columns(comparison: Comparison, methods: Sequence[str]) -> list[str]:
    return [c for c in comparison.columns if all((method, c) in comparison.cells for method in methods)]


def _means(comparison: Comparison, methods: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[comparison.cells[m, c].summary.mean for c in columns] for m in methods])


def _too_few(methods: Sequence[str], columns: Sequence[str]) -> Finding:
    return Finding("not tested", f"All {len(methods)} methods have run on {len(columns)} data sets only.")


# Figures 1, 3, 4 and 5.

STABLE_RANGE = 2.0  # points between best and worst within which accuracy counts as stable
MIN_GAIN = 0.5  # points above the untrained encoder from which on a method has learned
MIN_DROP = 2.0  # points below the best from which on accuracy has fallen
REFERENCE_SHARE = 0.75  # of the pairs of rates at which GraphSC must be above GraphCL


def rdt_does_not_learn(results: RecipeResults) -> Finding:
    gains = {
        data: curve.gain
        for data in results.columns
        if (curve := convergence_curve(results, data, "graphsc-rdt")) is not None
    }
    if not gains:
        return NOT_TESTED
    listed = ", ".join(f"{data} {gain:+.2f}" for data, gain in gains.items())
    return Finding(
        by_share(sum(gain <= MIN_GAIN for gain in gains.values()), len(gains)),
        f"Final accuracy of graphsc-rdt minus that of the untrained encoder, in points: {listed}.",
    )


def converges_in_20_epochs(results: RecipeResults) -> Finding:
    epochs, text = _epochs_to_convergence(results, ["graphsc-nm"])
    if not epochs:
        return NOT_TESTED
    if all(ours <= 20 and theirs > 60 for ours, theirs in epochs):
        return Finding("holds", text)
    faster = sum(ours < theirs for ours, theirs in epochs)
    return Finding("holds partly" if 2 * faster > len(epochs) else "does not hold", text)


def converges_faster_than_variants(results: RecipeResults) -> Finding:
    epochs, text = _epochs_to_convergence(results, ["graphsc-rd", "graphsc-nb"])
    if not epochs:
        return NOT_TESTED
    return Finding(by_share(sum(ours < theirs for ours, theirs in epochs), len(epochs)), text)


def _epochs_to_convergence(
    results: RecipeResults, variants: Sequence[str]
) -> tuple[list[tuple[int, int]], str]:
    """Epochs of GraphSC and of a variant, for each data set and variant, and a sentence with them."""
    epochs, texts = [], []
    for data in results.columns:
        ours = convergence_curve(results, data, OURS)
        for variant in variants:
            theirs = convergence_curve(results, data, variant)
            if ours is not None and theirs is not None:
                epochs.append((ours.converged_at, theirs.converged_at))
                texts.append(f"{data} {ours.converged_at} and {theirs.converged_at} ({variant})")
    return epochs, f"Epochs to convergence, {OURS} and the variant: {', '.join(texts)}."


def graphcl_depends_on_k(results: RecipeResults) -> Finding:
    drops = {}
    for data in results.columns:
        for part, title in ((BATCH, "batch size varied"), (SAMPLED, "K sampled")):
            means = _complete_means(results.line(data, "graphcl", part).series_by(negatives_of))
            if means:
                drops[f"{data}, {title}"] = max(means) - means[0]
    if not drops:
        return NOT_TESTED
    listed = "; ".join(f"{where} {drop:.2f}" for where, drop in drops.items())
    return Finding(
        by_share(sum(drop >= MIN_DROP for drop in drops.values()), len(drops)),
        f"Best accuracy of GraphCL minus that at the smallest K, in points: {listed}.",
    )


def graphsc_does_not_depend_on_k(results: RecipeResults) -> Finding:
    ranges = {
        data: max(means) - min(means)
        for data in results.columns
        if (means := _complete_means(results.line(data, OURS, BATCH).series_by(negatives_of)))
    }
    return _stable("Best minus worst over the batch sizes", ranges)


def stable_over_weights(results: RecipeResults) -> Finding:
    ranges = {
        f"{data} {title}": max(means) - min(means)
        for data in results.columns
        for part, title in WEIGHT_TITLES.items()
        if (means := _complete_means(results.line(data, OURS, part).series_by(weight_of)))
    }
    return _stable("Best minus worst over the six values", ranges)


def stable_over_rates(results: RecipeResults) -> Finding:
    weak, strong = rate_axes(results)
    valid = np.array([[low < high for high in strong] for low in weak])
    narrow, above, texts = [], [], []
    for grid in rate_grids(results):
        values = grid.accuracy[valid]
        if grid.method != OURS or np.isnan(values).any() or np.isnan(grid.reference):
            continue
        width, share = float(np.ptp(values)), float((values > grid.reference).mean())
        narrow.append(width <= STABLE_RANGE)
        above.append(share >= REFERENCE_SHARE)
        texts.append(f"{grid.data}: within {width:.2f} points, above GraphCL at {share:.0%} of the pairs")
    if not texts:
        return NOT_TESTED
    text = f"{'; '.join(texts)}."
    if all(narrow) and all(above):
        return Finding("holds", text)
    partly = 2 * max(sum(narrow), sum(above)) > len(texts)
    return Finding("holds partly" if partly else "does not hold", text)


def _complete_means(series: Mapping[float, Series]) -> list[float]:
    """Mean accuracies along a sweep; empty where a point of it has not run."""
    means = [values.mean for values in series.values()]
    return [] if np.isnan(means).any() else means


def _stable(what: str, ranges: Mapping[str, float]) -> Finding:
    if not ranges:
        return NOT_TESTED
    listed = ", ".join(f"{where} {width:.2f}" for where, width in ranges.items())
    stable = sum(width <= STABLE_RANGE for width in ranges.values())
    return Finding(by_share(stable, len(ranges)), f"{what}, in points: {listed}.")


# Table 4.

TRANSFER_SETS = ("ClinTox", "MUV")
LEAD = 6.0  # points of AUROC
TRANSFER_CLAIM = Claim(
    "6 points over GraphCL in transfer",
    "Table 4",
    "GraphSC leads GraphCL by more than 6 points of AUROC on ClinTox and on MUV.",
    "Fine-tuned encoders at the epoch with the best validation score; mean test AUROC over the seeds that "
    "both methods have. Holds if GraphSC is 6 points higher or more on both data sets; partly if on one; not "
    "tested until both methods have run on both.",
)


def leads_graphcl(store: ResultStore) -> Finding:
    """Mean lead of GraphSC over GraphCL on each data set that has run; a verdict if both have."""
    leads = {}
    for data in TRANSFER_SETS:
        ours, theirs = _test_scores(store, data, OURS), _test_scores(store, data, "graphcl")
        common = sorted(ours.keys() & theirs.keys())
        if common:
            leads[data] = 100 * sum(ours[seed] - theirs[seed] for seed in common) / len(common), len(common)
    if not leads:
        return NOT_TESTED
    listed = ", ".join(
        f"{data} {lead:+.2f} ({count} seed{'s' if count > 1 else ''})"
        for data, (lead, count) in leads.items()
    )
    text = f"GraphSC minus GraphCL, in points of AUROC: {listed}."
    missing = [data for data in TRANSFER_SETS if data not in leads]
    if missing:
        return Finding("not tested", f"{text} {' and '.join(missing)} has not run with both.")
    met = sum(lead >= LEAD for lead, _ in leads.values())
    return Finding("holds" if met == len(leads) else "holds partly" if met else "does not hold", text)


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


def _on_table(check: Callable[[Comparison], Finding]) -> Check:
    return lambda results: check(compare_fixed_settings(results))


def _on_figure(check: Check) -> Check:
    """Points of a figure are compared on common seeds; a note says where there is only one."""

    def finding(results: RecipeResults) -> Finding:
        common = results.on_common_seeds()
        result = check(common)
        seeds: dict[str, set[int]] = {}
        for planned in (completed.planned for completed in common.completed):
            seeds.setdefault(planned.column, set()).add(planned.trial.seed)
        if result == NOT_TESTED or all(len(of_data) > 1 for of_data in seeds.values()):
            return result
        note = "Each point has one seed, so it includes the noise of a single run."
        return replace(result, evidence=f"{result.evidence} {note}")

    return finding


def _ablation_claim(method: str, description: str) -> Claim:
    return Claim(
        f"The full model is above {method}", "Table 5",
        f"GraphSC is better than {description}, on every data set.",
        "Holds if the full model's mean is higher on every data set that both have; partly if on more than "
        "half of them.",
    )  # fmt: skip


CLAIMS: Mapping[Claim, Check] = {
    Claim(
        "First on 5 of 8", "Table 3", "GraphSC ranks first on 5 of 8 data sets.",
        "Among the paper's methods, on the data sets that all of them have. Holds if GraphSC is first on "
        "five eighths of these or more; partly if on any; not tested with fewer than "
        f"{MIN_DATA_SETS} such data sets.",
    ): _on_table(first_places),
    Claim(
        "Best average rank", "Table 3", "GraphSC has the best average rank of all methods.",
        "On the same data sets. Holds if its average rank is the lowest; partly if among the lowest "
        f"{TOP}.",
    ): _on_table(average_rank),
    **{
        _ablation_claim(method, description): _on_table(partial(below_full_model, ablation=method))
        for method, description in (
            ("graphsc-rd", "the variant whose negative is another graph"),
            ("graphsc-nm", "the variant without masked contrast"),
            ("graphsc-nb", "the variant without the absolute term"),
        )
    },
    Claim(
        "rdt does not learn", "Figure 3",
        "With another graph as negative and the triplet loss alone, accuracy does not rise with training.",
        f"Holds if the final accuracy of graphsc-rdt is no more than {MIN_GAIN:g} points above that of the "
        "untrained encoder on every data set; partly if on more than half of them.",
    ): _on_figure(rdt_does_not_learn),
    Claim(
        "20 epochs, not 60", "Figure 3",
        "GraphSC converges in 20 epochs where the variant without masked contrast needs more than 60.",
        "A curve has converged at the first evaluated epoch no more than "
        f"{TOLERANCE:g} points below its final accuracy. Holds if on every data set GraphSC needs 20 epochs "
        "or fewer and graphsc-nm more than 60; partly if GraphSC needs fewer than graphsc-nm on more than "
        "half of them.",
    ): _on_figure(converges_in_20_epochs),
    Claim(
        "Faster than rd and nb", "Figure 3", "GraphSC converges faster than the variants rd and nb.",
        "By the same epochs. Holds if GraphSC needs fewer than both on every data set; partly if fewer in "
        "more than half of the pairs.",
    ): _on_figure(converges_faster_than_variants),
    Claim(
        "GraphCL depends on K", "Figure 1",
        "GraphCL is strongly affected by the number K of negatives, and falls off where K is small.",
        f"Holds if GraphCL at the smallest K is {MIN_DROP:g} points or more below its best, both with the "
        "batch size varied and with K sampled, on every data set; partly if in more than half of these "
        "sweeps.",
    ): _on_figure(graphcl_depends_on_k),
    Claim(
        "GraphSC does not depend on K", "Figure 1",
        "GraphSC, which has one negative, is not affected by the batch size.",
        f"Holds if its accuracy over the batch sizes stays within {STABLE_RANGE:g} points on every data "
        "set; partly if on more than half of them.",
    ): _on_figure(graphsc_does_not_depend_on_k),
    Claim(
        "Stable over rates", "Figure 4", "GraphSC does well over many pairs of rates.",
        f"Two conditions: over all pairs its accuracy stays within {STABLE_RANGE:g} points, and it is "
        "above GraphCL at three quarters of the pairs or more. Holds if both are met on every data set; "
        "partly if one of them is met on more than half.",
    ): _on_figure(stable_over_rates),
    Claim(
        "Stable over the weights", "Figure 5",
        "GraphSC is very stable over a wide range of its three weights.",
        f"Holds if accuracy stays within {STABLE_RANGE:g} points over the six values of a weight, for each "
        "weight and data set; partly if for more than half of them.",
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


_PLURAL = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}


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
