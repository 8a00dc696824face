"""Analyses of stored results, on hand-made results."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.published import published
from graphsc.experiments.result import Result
from graphsc.methods import METHODS
from graphsc.paper.analyses import (
    KNOWN,
    correlations,
    deviations_table,
    gains,
    gains_table,
    ideas_table,
    label_free_table,
    rank_correlation,
)

PROTOCOL = Protocol().to_json()


def result(
    method="graphsc",
    right=5,
    *,
    graphs=10,
    folds=1,
    seed=0,
    data="D",
    inner=0.5,
    health=None,
    protocol=None,
    **trial,
):
    """A result with `right` correct predictions; everything else as in the main tables."""
    labels = np.zeros(graphs, np.int64)
    return Result(
        trial={
            "data": data, "graphs": "0" * 64, "features": "auto", "method": method, "preset": "default",
            "selection": "last", "inductive": False, "training": {"seed": seed}, "fold_seed": seed,
            "protocol": PROTOCOL | (protocol or {}),
        } | trial,
        config={}, classes=("0", "1"), labels=labels, fold=np.arange(graphs) % folds,
        predictions=np.where(np.arange(graphs) < right, 0, 1), chosen=(1.0,) * folds, epochs=(1,) * folds,
        inner_accuracy=inner, words="", health=health or {},
    )  # fmt: skip


def rerun(right, data="MUTAG", **changes):
    return result(right=right, graphs=100, data=data, **changes)


def deviations_of(results):
    return deviations_table(results).markdown()


def test_a_cell_beyond_two_published_deviations_is_listed_with_runs_of_possible_causes():
    # 89.19 ± 1.83 is published: 80 lies five deviations below, 90 within one.
    text = deviations_of([rerun(80), rerun(70, features="constant"), rerun(60, preset="published")])
    assert "| graphsc | MUTAG | 80.00 | 89.19 ± 1.83 | 70.00 | 60.00 |" in text


def test_a_cause_that_brings_our_number_near_explains_the_cell():
    # 74.28 ± 0.76 is published: 75 and 73 lie within two deviations, 80 and 60 do not.
    def deviations(feature, settings, data="IMDB-BINARY"):
        ours = [rerun(80, data=data), rerun(feature, data=data, features="constant")]
        return deviations_of([*ours, rerun(settings, data=data, preset="published")])

    assert "| 75.00 | 60.00 |  | the feature |" in deviations(75, 60)
    assert "| 75.00 | 73.00 |  | the feature or the settings |" in deviations(75, 73)
    # On MUTAG (89.19 ± 1.83) the published runs had node labels, so the constant cannot be the cause.
    assert "| 86.00 | 60.00 |  |  |" in deviations(86, 60, "MUTAG")


def test_the_best_epoch_on_test_folds_is_a_cause_of_its_own():
    # 89.19 ± 1.83: with the published settings 84 after the last epoch, 88 after the best one.
    leaky = rerun(88, preset="published", selection="legacy-leaky")
    text = deviations_of([rerun(80), rerun(84, preset="published"), leaky])
    assert "|  | 84.00 | 88.00 | the choice of the epoch |" in text
    other = rerun(10, preset="published", selection="legacy-leaky-common")
    assert deviations_of([rerun(80), rerun(84, preset="published"), leaky, other]) == text


def test_results_with_few_labels_are_left_out_of_deviations():
    few = rerun(10, protocol={"label_share": 0.01})
    assert "| graphsc | MUTAG | 80.00 |" in deviations_of([rerun(80), few])


def test_results_with_inner_folds_in_file_order_are_left_out_of_deviations():
    other = rerun(10, protocol={"inner_order": "file"})
    assert "| graphsc | MUTAG | 80.00 |" in deviations_of([rerun(80), other])


def test_a_cell_within_two_published_deviations_is_not_listed():
    assert "| graphsc |" not in deviations_of([rerun(90)])


def test_every_published_method_is_one_of_ours_and_is_explained():
    for method in published():
        assert method in METHODS
        assert method in KNOWN


def test_gains_are_over_seeds_that_both_have():
    results = [
        result("m", 8), result("untrained", 7), result("m", 9, seed=1), result("untrained", 6, seed=1),
        result("m", 1, seed=2),
    ]  # fmt: skip
    gain = gains(results, "m")["all labels"]["D"]
    assert gain.points == pytest.approx(20)  # of 10 and 30
    assert gain.error == pytest.approx(10)  # their deviation, sqrt(200), over the square root of 2
    assert gain.seeds == 2


def test_gains_are_separate_by_condition_and_in_order():
    results = [
        result(name, right, protocol=protocol, inductive=inductive)
        for name, right in (("m", 6), ("untrained", 5))
        for protocol, inductive in (
            ({}, True), ({"label_share": 0.05}, False), ({"splitting": "size"}, True), ({}, False),
        )
    ]  # fmt: skip
    found = gains(results, "m")
    assert list(found) == ["5 % of labels", "all labels", "unseen graphs", "other sizes"]
    assert "| 5 % of labels | +10.00 |" in gains_table(results, "m").markdown()


def test_gains_leave_out_chosen_epochs():
    chosen = [result(name, 6, selection="label-free") for name in ("m", "untrained")]
    assert gains(chosen, "m") == {}


def test_gains_leave_out_other_features():
    assert (
        gains([result("m", 6, features="constant"), result("untrained", 5, features="constant")], "m") == {}
    )


LOG = [
    {"what": "readout", "data": "nci1", "inner": 50.0},  # not an idea
    {"what": "idea: plus", "data": "mutag", "seed": 1000, "inner": 80.0, "few": 60.0},
    {"what": "idea: plus", "data": "mutag", "seed": 1001, "inner": 90.0, "few": 70.0},
    {"what": "idea: wide", "data": "mutag", "seed": 1000, "inner": 81.0, "few": 61.0},
    {"what": "idea: plus", "data": "nci1", "seed": 1000, "inner": 77.0, "few": 66.0},
]


def test_ideas_are_means_over_seeds_by_data_set_and_labels():
    lines = ideas_table(LOG).markdown().splitlines()
    assert lines[0] == "| idea | MUTAG, all labels | MUTAG, 5 % | NCI1, all labels | NCI1, 5 % |"
    assert lines[2:4] == ["| plus | 85.00 | 65.00 | 77.00 | 66.00 |", "| wide | 81.00 | 61.00 |  |  |"]
    assert lines[5].startswith("4 evaluations")
    assert "(at most MUTAG 2, NCI1 1)" in lines[5]


def ranked(method, right, rank, seed=0, **trial):
    return result(method, right, folds=2, seed=seed, health={"effective_rank": rank}, **trial)


def test_rank_correlation_is_spearmans():
    one, other = [3.0, 1.0, 4.0, 1.0, 5.0], [2.0, 7.0, 1.0, 8.0, 2.0]
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0


def test_correlations_compare_methods_within_a_seed():
    # Within each seed rank and accuracy agree; between the seeds they do not.
    some = [ranked(f"m{k}", right=2 * k, rank=k) for k in range(1, 5)]
    more = [ranked(f"m{k}", right=2 * k - 1, rank=10 + k, seed=1) for k in range(1, 5)]
    assert correlations(some + more, "effective_rank") == {"D": [pytest.approx(1), pytest.approx(1)]}
    assert "| effective rank | +1.00 | +1.00 |" in label_free_table(some + more).markdown()


def test_correlations_leave_out_other_features_and_small_groups():
    some = [ranked(f"m{k}", right=k, rank=k, features="constant") for k in range(1, 6)]
    assert correlations(some, "effective_rank") == {}
    assert correlations([ranked(f"m{k}", k, k) for k in range(3)], "effective_rank") == {}
