"""Comparisons and their tables: means, deviations and tests computed by hand or by scipy."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from graphsc.core.errors import DataError
from graphsc.data.datasets.catalog import NAMED
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import compare_results
from graphsc.experiments.result import Result
from graphsc.experiments.selection import LEAKY
from graphsc.experiments.tables import (
    cell_text,
    comparison_notes,
    comparison_table,
    missing_notes,
    records_table,
)

GRAPHS, FOLDS = 40, 4


MUTAG_HASH = NAMED["mutag"].content_hash


def result(method, seed, wrong, data="MUTAG", **trial):
    """A result whose fold f has `wrong[f]` wrong predictions of ten."""
    fold = np.arange(GRAPHS) % FOLDS
    labels = (np.arange(GRAPHS) // FOLDS + seed) % 2
    predictions = labels.copy()
    for number, count in enumerate(wrong):
        rows = np.flatnonzero(fold == number)[:count]
        predictions[rows] = 1 - predictions[rows]
    identity = {
        "data": data, "graphs": MUTAG_HASH, "features": "auto", "method": method, "preset": "default",
        "fold_seed": seed, "training": {"seed": seed}, "selection": "last", "inductive": False,
        "protocol": Protocol().to_json(),
    }  # fmt: skip
    return Result(
        trial=identity | trial, config={}, classes=("a", "b"), labels=labels, fold=fold,
        predictions=predictions, chosen=(1.0,) * FOLDS, epochs=(1,) * FOLDS, inner_accuracy=0.5, words="rule",
    )  # fmt: skip


UNTRAINED = [result("untrained", 0, [3, 4, 3, 4]), result("untrained", 1, [4, 4, 3, 3])]
BETTER = [result("graphsc", 0, [1, 2, 0, 1]), result("graphsc", 1, [2, 1, 1, 1])]


def test_mean_and_both_deviations():
    cell = compare_results(UNTRAINED + BETTER).cells["graphsc", "MUTAG"]
    # Run means 90 and 87.5; folds of a run deviate by sqrt(50) and sqrt(18.75).
    assert cell.summary.mean == pytest.approx(88.75)
    assert cell.summary.over_seeds_ddof0 == pytest.approx(1.25)
    assert cell_text(cell).startswith(f"88.75 ± {2.5 / np.sqrt(2):.2f}")  # ddof 1
    assert cell.accuracies == ((90, 80, 100, 90), (80, 90, 90, 90))
    assert cell.summary.over_folds_ddof0 == pytest.approx((np.sqrt(50) + np.sqrt(18.75)) / 2)


def test_difference_and_its_p_value_are_those_of_the_corrected_t_test():
    cell = compare_results(UNTRAINED + BETTER).cells["graphsc", "MUTAG"]
    differences = np.array([2, 2, 3, 3, 2, 3, 2, 2]) * 10.0  # in points, fold by fold
    assert cell.difference == pytest.approx(differences.mean())
    # One test fold of four: n_test / n_train = 1/3.
    t = differences.mean() / np.sqrt((1 / 8 + 1 / 3) * differences.var(ddof=1))
    assert cell.p_value == pytest.approx(2 * stats.t.sf(t, 7))


def test_p_values_of_a_column_are_corrected_by_holm():
    alone = compare_results(UNTRAINED + BETTER).cells["graphsc", "MUTAG"].p_value
    noise = [result("raw", 0, [3, 4, 4, 3]), result("raw", 1, [4, 4, 3, 3])]
    both = compare_results(UNTRAINED + BETTER + noise)
    assert both.cells["graphsc", "MUTAG"].p_value == pytest.approx(2 * alone)


def test_ranks_are_averaged_over_data_sets():
    other = [result("untrained", 0, [0, 0, 0, 0], data="DD"), result("graphsc", 0, [1, 1, 1, 1], data="DD")]
    table = compare_results(UNTRAINED + BETTER + other)
    assert table.ranks == {"untrained": 1.5, "graphsc": 1.5}
    assert table.columns == ("MUTAG", "DD")


def test_ranks_are_over_the_data_sets_that_every_method_has():
    other = [result("untrained", 0, [9, 9, 9, 9], data="DD"), result("graphsc", 0, [1, 1, 1, 1], data="DD")]
    third = [result("raw", 0, [0, 0, 0, 0]), result("raw", 1, [0, 0, 0, 0])]
    table = compare_results(UNTRAINED + BETTER + other + third)
    assert table.ranks == {"untrained": 3.0, "graphsc": 2.0, "raw": 1.0}
    assert "Average ranks are over the data sets that every method has: 1." in comparison_notes(table)


def test_a_missing_result_is_an_empty_cell():
    table = compare_results(UNTRAINED + BETTER[:1], methods=["raw", "untrained", "graphsc"])
    assert ("raw", "MUTAG") not in table.cells
    line = next(line for line in comparison_table(table).markdown().splitlines() if line.startswith("| raw"))
    assert line == "| raw |  |  |"


def test_published_numbers_are_shown_below_ours():
    table = compare_results(UNTRAINED + BETTER)
    assert table.cells["graphsc", "MUTAG"].published == (89.19, 1.83)
    assert "89.19 ± 1.83" in comparison_table(table).markdown()
    other = compare_results([result("graphsc", 0, [1, 2, 0, 1], graphs="0" * 64)])
    assert other.cells["graphsc", "MUTAG"].published is None  # other graphs of the same name


def test_published_numbers_do_not_stand_beside_other_conditions():
    """They are of all labels; and of graphs that the encoder has seen, as in the main tables."""
    whole = result("graphsc", 0, [1, 2, 0, 1])
    few = replace(whole, trial={**whole.trial, "protocol": {**whole.protocol, "label_share": 0.01}})
    unseen = replace(whole, trial={**whole.trial, "inductive": True})
    for other in (few, unseen):
        (cell,) = compare_results([other]).cells.values()
        assert cell.published is None


def test_a_significant_difference_is_starred_and_noise_is_not():
    noise = [result("raw", 0, [3, 4, 4, 3]), result("raw", 1, [4, 4, 3, 3])]
    text = comparison_table(compare_results(UNTRAINED + BETTER + noise)).markdown()
    assert "| **88.75 ± 1.77 \\***<br>" in text
    assert "| raw | 65.00 ± 0.00 |" in text


def test_leaky_results_are_marked_in_every_form():
    leaky = [result("graphsc", 0, [0, 0, 0, 0], selection="legacy-leaky")]
    table = compare_results(UNTRAINED[:1] + leaky)
    assert table.leaky
    assert "LEAKY" in comparison_table(table).markdown()
    assert "graphsc LEAKY" in records_table(table).csv()
    assert "LEAKY" in comparison_notes(table)[0]


def at_epochs(seed, wrong_by_epoch, selection="legacy-leaky-common"):
    """A result that has, after each epoch, this many wrong predictions of ten in every fold."""
    by_epoch = {epoch: result("graphsc", seed, [n] * 4).predictions for epoch, n in wrong_by_epoch.items()}
    own = min(wrong_by_epoch, key=wrong_by_epoch.get)
    return replace(
        result("graphsc", seed, [wrong_by_epoch[own]] * 4, selection=selection),
        epochs=(own,) * FOLDS, by_epoch=by_epoch,
    )  # fmt: skip


def test_a_common_epoch_is_chosen_over_the_seeds_of_a_cell():
    """Accuracies at epochs 1, 2, 3 are 90, 80, 50 and 50, 70, 80: means 70, 75, 65, so epoch 2 gives 75."""
    seeds = [at_epochs(0, {1: 1, 2: 2, 3: 5}), at_epochs(1, {1: 5, 2: 3, 3: 2})]
    cell = compare_results(seeds).cells["graphsc", "MUTAG"]
    assert cell.summary.mean == pytest.approx(75)
    assert cell.leaky
    # With one seed the common epoch is its own best one.
    assert compare_results(seeds[:1]).cells["graphsc", "MUTAG"].summary.mean == pytest.approx(90)


def test_the_best_epoch_of_each_seed_is_a_rule_of_its_own():
    seeds = [
        at_epochs(0, {1: 1, 2: 2, 3: 5}, "legacy-leaky"), at_epochs(1, {1: 5, 2: 3, 3: 2}, "legacy-leaky"),
    ]  # fmt: skip
    assert compare_results(seeds).cells["graphsc", "MUTAG"].summary.mean == pytest.approx(85)  # of 90 and 80


def test_both_leaky_rules_are_marked_in_every_form():
    for rule in LEAKY:
        table = compare_results([at_epochs(0, {1: 1}, rule)])
        assert "LEAKY" in comparison_table(table).markdown()
        assert "graphsc LEAKY" in records_table(table).csv()


def test_records_have_deviations_over_seeds_and_over_folds():
    table = records_table(compare_results(UNTRAINED + BETTER))
    row = dict(zip(table.columns, next(row for row in table.rows if row[1] == "graphsc"), strict=True))
    assert row["over seeds"] == "1.77"
    assert row["over folds"] == "5.70"
    assert row["seeds"] == 2


def test_resplit_results_have_their_own_deviation():
    again = [result("graphsc", 0, [0, 0, 0, 0], fold_seed=1000)]
    table = compare_results(UNTRAINED + BETTER + again)
    cell = table.cells["graphsc", "MUTAG"]
    assert cell.summary.mean == pytest.approx(88.75)  # unchanged
    assert cell.over_fold_seeds == pytest.approx(np.std([90.0, 100.0], ddof=1))
    assert any("not a deviation over runs" in note for note in comparison_notes(table))


def test_results_on_different_folds_are_refused():
    other = result("graphsc", 0, [0, 0, 0, 0])
    shuffled = other.__class__(**{**vars(other), "fold": other.fold[::-1].copy()})
    with pytest.raises(DataError, match="other folds"):
        compare_results([UNTRAINED[0], shuffled])


def test_two_results_for_one_cell_and_seed_are_refused():
    with pytest.raises(DataError, match="two results"):
        compare_results(UNTRAINED + UNTRAINED)


def test_a_name_is_never_a_spreadsheet_formula():
    table = compare_results([result("untrained", 0, [1, 1, 1, 1], data="=HYPERLINK(1)")])
    assert records_table(table).csv().splitlines()[1].startswith("'=HYPERLINK(1),untrained,90.00,")


def test_two_data_sets_of_one_name_have_two_columns():
    other = [result(method, 0, [0, 0, 0, 0], graphs="f" * 64) for method in ("untrained", "graphsc")]
    table = compare_results([UNTRAINED[0], BETTER[0], *other])
    assert table.columns == (f"MUTAG [{MUTAG_HASH[:6]}]", "MUTAG [ffffff]")
    assert table.cells["graphsc", "MUTAG [ffffff]"].summary.mean == 100


def test_exact_records_have_a_row_for_missing_results_with_the_published_number():
    table = records_table(compare_results(UNTRAINED, methods=["untrained", "graphsc"]), exact=True)
    row = dict(zip(table.columns, table.rows[1], strict=True))
    assert (row["method"], row["mean"], row["published"]) == ("graphsc", "", 89.19)


def test_empty_cells_and_missing_seeds_are_named():
    places = [(row, data) for data in ("A", "B", "C") for row in ("x", "y") for _ in range(2)]
    stored = [True] * 4 + [True, False, False, False] + [False] * 4
    assert missing_notes(places, stored) == ["Not run: B (y); C (all rows).", "Seeds so far: B (x 1 of 2)."]
    assert missing_notes(places, [True] * 12) == []


def test_a_notebook_shows_the_table_and_its_notes():
    comparison = compare_results(UNTRAINED + BETTER)
    shown = comparison._repr_html_()
    assert shown == comparison_table(comparison).html()
    assert "<b>88.75 ± 1.77 *</b>" in shown
    assert "corrected resampled t-test" in shown
