"""The rule of each verdict, on hand-made results."""

from pathlib import Path

import numpy as np
import pytest

from graphsc.paper.claims import (
    CLAIMS,
    Estimate,
    check_claims,
    claims_markdown,
    estimate,
    on_a_share,
    on_every_case,
)
from graphsc.paper.gather import CompletedTrial, RecipeResults
from graphsc.paper.pages import write_part
from graphsc.paper.recipe import Request, expand, read_recipe

BY_NAME = {claim.name: claim for claim in CLAIMS}


@pytest.fixture
def check(make_result):
    """`check(claim, count, accuracy)`: the finding on the first data sets of its recipe, with two seeds.

    Accuracies that are equal in all folds and seeds have no noise, so that every case is decided.
    """

    def finding(name, count, accuracy, curve=None, seeds=2):
        claim = BY_NAME[name]
        recipe = read_recipe(claim.recipe)
        planned = expand(recipe, Request(data=recipe.data[:count], seeds=seeds, search=False))
        completed = [
            CompletedTrial(
                cell, make_result(cell.trial, accuracy(cell), curve=None if curve is None else curve(cell))
            )
            for cell in planned
            if accuracy(cell) is not None
        ]
        return CLAIMS[claim](RecipeResults(recipe, planned, completed))

    return finding


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "not tested"),
        (["met", "met"], "holds"),
        (["met", "undecided"], "undecided"),
        (["met", "undecided", "not met"], "does not hold"),
    ],
)
def test_a_claim_about_every_case_is_refuted_by_one(states, expected):
    assert on_every_case(states) == expected


@pytest.mark.parametrize(
    ("met", "undecided", "expected"),
    [(5, 0, "holds"), (4, 4, "undecided"), (4, 1, "undecided"), (4, 0, "does not hold")],
)
def test_a_claim_about_a_share_of_eight_cases(met, undecided, expected):
    states = ["met"] * met + ["undecided"] * undecided + ["not met"] * (8 - met - undecided)
    assert on_a_share(states, 5 / 8) == expected


def test_a_difference_is_decided_beyond_its_interval_only():
    assert Estimate(1.0, 0.9).above(0) == "met"
    assert Estimate(1.0, 1.1).above(0) == "undecided"
    assert Estimate(-1.0, 0.9).above(0) == "not met"
    assert Estimate(1.0, 0.9).within(2) == "met"
    assert Estimate(1.0, float("inf")).above(0) == "undecided"


def test_the_interval_is_that_of_the_corrected_test():
    """Differences 0 and 2: s^2 = 2, 1/n = 1/2, a test share of 1/2 adds 1; t(0.975, 1) = 12.706."""
    found = estimate(np.array([[0.0, 2.0]]))
    assert found.mean == pytest.approx(1)
    assert found.margin == pytest.approx(12.7062 * np.sqrt((0.5 + 1) * 2), rel=1e-5)


def test_without_results_no_claim_is_tested(tmp_path):
    findings = check_claims(tmp_path)
    assert len(findings) == len(CLAIMS) + 1  # and the claim about transfer
    assert {finding.verdict for _, finding in findings} == {"not tested"}


@pytest.mark.parametrize(
    ("wins", "verdict"), [(4, "holds"), (3, "holds"), (2, "does not hold"), (0, "does not hold")]
)
def test_first_on_five_of_eight(check, wins, verdict):
    """Of four data sets that all methods have, three are more than five eighths and two are fewer."""
    order = read_recipe("table3").data

    def accuracy(cell):
        if cell.trial.method in ("raw", "untrained"):
            return 99  # our baselines do not take places of the paper's methods
        first = order.index(cell.trial.data) < wins
        return (90 if first else 60) if cell.trial.method == "graphsc" else 80

    finding = check("First on 5 of 8", 4, accuracy)
    assert finding.verdict == verdict
    assert f"First on {wins} of 4 data sets" in finding.evidence


def test_a_lead_within_noise_is_no_first_place(check):
    """GraphSC is above by 1 point on average, all of it in one fold."""
    folds = np.where(np.arange(10) == 0, 91, 80)
    finding = check("First on 5 of 8", 4, lambda cell: folds if cell.trial.method == "graphsc" else 80)
    assert finding.verdict == "undecided"
    assert "within noise on 4" in finding.evidence


def test_ranks_need_three_data_sets_that_every_method_has(check):
    for name in ("First on 5 of 8", "Best average rank"):
        finding = check(name, 2, lambda _: 80)
        assert finding.verdict == "not tested"
        assert "on 2 data sets only" in finding.evidence


@pytest.mark.parametrize(("better", "verdict"), [(0, "holds"), (2, "does not hold")])
def test_the_average_rank_is_the_best(check, better, verdict):
    ahead = ["wl", "dgk", "graphcl"][:better]
    scores = {"graphsc": 85, **dict.fromkeys(ahead, 90)}
    finding = check("Best average rank", 3, lambda cell: scores.get(cell.trial.method, 80))
    assert finding.verdict == verdict
    assert f"place {better + 1} of 15" in finding.evidence


def test_a_rank_that_is_best_with_some_seeds_only_is_undecided(check):
    def accuracy(cell):
        return (
            85
            if cell.trial.method == "graphsc"
            else 90
            if cell.trial.seed and cell.trial.method == "wl"
            else 80
        )

    assert check("Best average rank", 3, accuracy).verdict == "undecided"
    assert check("Best average rank", 3, accuracy, seeds=1).verdict == "undecided"


@pytest.mark.parametrize(("lower", "verdict"), [(3, "holds"), (2, "does not hold"), (0, "does not hold")])
def test_an_ablation_is_below_the_full_model_on_every_data_set(check, lower, verdict):
    order = read_recipe("table5").data

    def accuracy(cell):
        if cell.trial.method == "graphsc-nm":
            return 70 if order.index(cell.trial.data) < lower else 90
        return 80

    finding = check("The full model is above graphsc-nm", 3, accuracy)
    assert finding.verdict == verdict
    assert f"Met in {lower} of 3 cases, not met in {3 - lower}, within noise in 0." in finding.evidence


def test_an_ablation_within_noise_leaves_the_claim_undecided(check):
    folds = 80 + np.array([3, -3] * 5)
    finding = check(
        "The full model is above graphsc-nm", 2, lambda cell: folds if cell.trial.method == "graphsc" else 80
    )
    assert finding.verdict == "undecided"
    assert "within noise in 2" in finding.evidence


@pytest.fixture
def check_curves(check):
    """Curves that rise from 60 to 80 at epoch `reach[method]`; those with None stay at 60."""

    def finding(name, reach):
        def curve(cell):
            epoch = reach.get(cell.trial.method)
            return {e: 80 if epoch is not None and e >= epoch else 60 for e in cell.trial.curve}

        return check(name, 2, lambda _: 80, curve)

    return finding


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [(20, 65, "holds"), (20, 60, "does not hold"), (22, 65, "does not hold")],
)
def test_20_epochs_where_the_variant_needs_60(check_curves, ours, theirs, verdict):
    finding = check_curves("20 epochs, not 60", {"graphsc": ours, "graphsc-nm": theirs})
    assert finding.verdict == verdict
    assert f"NCI1 {ours} and {theirs}" in finding.evidence


@pytest.mark.parametrize(("other", "verdict"), [(20, "holds"), (5, "does not hold")])
def test_faster_than_both_variants(check_curves, other, verdict):
    """Faster than one of two variants is half of the pairs, which is not enough."""
    finding = check_curves("Faster than rd and nb", {"graphsc": 10, "graphsc-rd": 15, "graphsc-nb": other})
    assert finding.verdict == verdict


@pytest.mark.parametrize(("reach", "verdict"), [(None, "holds"), (10, "does not hold")])
def test_rdt_does_not_learn(check_curves, reach, verdict):
    assert check_curves("rdt does not learn", {"graphsc-rdt": reach}).verdict == verdict


@pytest.mark.parametrize(("few", "verdict"), [(70, "holds"), (79, "does not hold")])
def test_few_negatives_are_the_smallest_batch_and_the_fewest_sampled(check, few, verdict):
    def accuracy(cell):
        return few if cell.point in ({"training.batch_size": 8}, {"negatives": 1}) else 80

    assert check("GraphCL depends on K", 1, accuracy).verdict == verdict
    opposite = "does not hold" if verdict == "holds" else "holds"
    assert check("GraphSC does not depend on K", 1, accuracy).verdict == opposite


def test_a_sweep_with_a_missing_point_is_not_tested(check):
    def accuracy(cell):
        return None if cell.point == {"training.batch_size": 64} else 80

    assert check("GraphSC does not depend on K", 1, accuracy).verdict == "not tested"
    evidence = check("GraphCL depends on K", 1, accuracy).evidence
    assert "K sampled" in evidence
    assert "batch size varied" not in evidence


@pytest.mark.parametrize(
    ("low", "reference", "verdict"),
    [(80, 75, "holds"), (70, 60, "does not hold"), (80, 90, "does not hold")],
)
def test_stable_over_rates_is_a_narrow_range_above_graphcl(check, low, reference, verdict):
    def accuracy(cell):
        if cell.part == "reference":
            return reference
        return low if cell.point["strong_rate"] == 0.4 else 81

    finding = check("Stable over rates", 2, accuracy)
    assert finding.verdict == verdict
    assert f"NCI1: best minus worst {81 - low:+.2f} ± 0.00 points" in finding.evidence


def test_stable_over_weights_counts_each_weight_and_data_set(check):
    def accuracy(cell):
        return 60 if cell.point == {"lambda_absolute": 100.0} else 80

    finding = check("Stable over the weights", 1, accuracy)
    assert finding.verdict == "does not hold"
    assert "NCI1 λ₃ absolute +20.00 ± 0.00" in finding.evidence
    assert "Met in 2 of 3 cases" in finding.evidence


def test_points_of_a_figure_are_compared_on_common_seeds(make_result):
    """GraphCL's second seed, with other folds, must not count for pairs that have only the first."""
    recipe = read_recipe("figure4")
    planned = expand(recipe, Request(data=recipe.data[:1], seeds=2))
    completed = [
        CompletedTrial(
            cell,
            make_result(cell.trial, 99 if cell.trial.seed else 70 if cell.part == "reference" else 71),
        )
        for cell in planned
        if cell.part == "reference" or cell.trial.seed == 0
    ]
    finding = CLAIMS[BY_NAME["Stable over rates"]](RecipeResults(recipe, planned, completed))
    assert finding.verdict == "holds"
    assert "above GraphCL at 21 of 21 pairs" in finding.evidence


def test_the_claims_page_equals_the_stored_results(tmp_path):
    """`graphsc reproduce claims --page docs/claims.md` changes nothing."""
    root = Path(__file__).parents[2]
    page = tmp_path / "claims.md"
    page.write_text((root / "docs" / "claims.md").read_text())
    assert not write_part(page, "claims", claims_markdown(root / "results"))
