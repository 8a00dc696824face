"""The rule of each verdict, on hand-made results."""

from pathlib import Path

import pytest

from graphsc.paper.claims import CLAIMS, by_share, check_claims, claims_markdown
from graphsc.paper.gather import CompletedTrial, RecipeResults
from graphsc.paper.pages import write_part
from graphsc.paper.recipe import Request, expand, read_recipe

BY_NAME = {claim.name: claim for claim in CLAIMS}


@pytest.fixture
def check(make_result):
    """`check(claim, count, accuracy)`: the finding on the first data sets of its recipe, with one seed."""

    def finding(name, count, accuracy, curve=None):
        claim = BY_NAME[name]
        recipe = read_recipe(claim.recipe)
        planned = expand(recipe, Request(data=recipe.data[:count], seeds=1, search=False))
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
    ("count", "total", "expected"),
    [
        (0, 0, "not tested"),
        (3, 3, "holds"),
        (2, 3, "holds partly"),
        (1, 2, "does not hold"),
        (0, 1, "does not hold"),
    ],
)
def test_a_verdict_by_share(count, total, expected):
    assert by_share(count, total) == expected


def test_without_results_no_claim_is_tested(tmp_path):
    findings = check_claims(tmp_path)
    assert len(findings) == len(CLAIMS) + 1  # and the claim about transfer
    assert {finding.verdict for _, finding in findings} == {"not tested"}


@pytest.mark.parametrize(
    ("wins", "verdict"), [(4, "holds"), (3, "holds"), (2, "holds partly"), (0, "does not hold")]
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
    assert f"First on {wins} of the 4 data sets" in finding.evidence


def test_ranks_need_three_data_sets_that_every_method_has(check):
    for name in ("First on 5 of 8", "Best average rank"):
        finding = check(name, 2, lambda _: 80)
        assert finding.verdict == "not tested"
        assert "on 2 data sets only" in finding.evidence


@pytest.mark.parametrize(("better", "verdict"), [(0, "holds"), (2, "holds partly"), (3, "does not hold")])
def test_the_average_rank_is_the_best_or_among_the_best_three(check, better, verdict):
    ahead = ["wl", "dgk", "graphcl"][:better]
    scores = {"graphsc": 85, **dict.fromkeys(ahead, 90)}
    finding = check("Best average rank", 3, lambda cell: scores.get(cell.trial.method, 80))
    assert finding.verdict == verdict
    assert f"place {better + 1} of 15" in finding.evidence


@pytest.mark.parametrize(
    ("lower", "verdict"), [(3, "holds"), (2, "holds partly"), (1, "does not hold"), (0, "does not hold")]
)
def test_an_ablation_is_below_the_full_model_on_every_data_set(check, lower, verdict):
    order = read_recipe("table5").data

    def accuracy(cell):
        if cell.trial.method == "graphsc-nm":
            return 70 if order.index(cell.trial.data) < lower else 90
        return 80

    finding = check("The full model is above graphsc-nm", 3, accuracy)
    assert finding.verdict == verdict
    assert f"Above on {lower} of 3, significantly on {lower}." in finding.evidence


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
    [(20, 65, "holds"), (20, 60, "holds partly"), (22, 65, "holds partly"), (50, 20, "does not hold")],
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
    [(80, 75, "holds"), (70, 60, "holds partly"), (80, 90, "holds partly"), (70, 90, "does not hold")],
)
def test_stable_over_rates_is_a_narrow_range_above_graphcl(check, low, reference, verdict):
    def accuracy(cell):
        if cell.part == "reference":
            return reference
        return low if cell.point["strong_rate"] == 0.4 else 81

    finding = check("Stable over rates", 2, accuracy)
    assert finding.verdict == verdict
    assert f"NCI1: within {81 - low:.2f} points" in finding.evidence


def test_stable_over_weights_counts_each_weight_and_data_set(check):
    def accuracy(cell):
        return 60 if cell.point == {"lambda_absolute": 100.0} else 80

    finding = check("Stable over the weights", 1, accuracy)
    assert finding.verdict == "holds partly"  # two of three
    assert "NCI1 λ₃ absolute 20.00" in finding.evidence


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
    assert "above GraphCL at 100% of the pairs. Each point has one seed" in finding.evidence


def test_the_claims_page_equals_the_stored_results(tmp_path):
    """`graphsc reproduce claims --page docs/claims.md` changes nothing."""
    root = Path(__file__).parents[2]
    page = tmp_path / "claims.md"
    page.write_text((root / "docs" / "claims.md").read_text())
    assert not write_part(page, "claims", claims_markdown(root / "results"))
