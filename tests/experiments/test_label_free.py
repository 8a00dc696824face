import numpy as np
import pytest
from scipy.stats import spearmanr

from graphsc.paper.analyses import correlations, label_free_table, rank_correlation
from graphsc.experiments.result import Result


def result(method, right, rank, seed=0, **trial):
    """Ten graphs in two folds, `right` of them predicted right."""
    labels = np.zeros(10, np.int64)
    predictions = np.where(np.arange(10) < right, 0, 1)
    return Result(
        trial={
            "data": "D", "features": "auto", "method": method, "preset": "default", "selection": "last",
            "inductive": False, "training": {"seed": seed}, "fold_seed": seed,
        } | trial,
        config={}, classes=("0", "1"), labels=labels, fold=np.arange(10) % 2, predictions=predictions,
        chosen=(1.0, 1.0), epochs=(1, 1), inner_accuracy=0.5, words="", health={"effective_rank": rank},
    )  # fmt: skip


def test_it_is_spearmans():
    one, other = [3.0, 1.0, 4.0, 1.0, 5.0], [2.0, 7.0, 1.0, 8.0, 2.0]
    assert rank_correlation(one, other) == pytest.approx(spearmanr(one, other).statistic)
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0


def test_methods_are_compared_within_a_seed_only():
    # Within each seed rank and accuracy agree; between the seeds they do not.
    some = [result(f"m{k}", right=2 * k, rank=k) for k in range(1, 5)]
    more = [result(f"m{k}", right=2 * k - 1, rank=10 + k, seed=1) for k in range(1, 5)]
    assert correlations(some + more, "effective_rank") == {"D": [pytest.approx(1), pytest.approx(1)]}
    assert "| effective rank | +1.00 | +1.00 |" in label_free_table(some + more)


def test_other_features_and_small_groups_are_left_out():
    some = [result(f"m{k}", right=k, rank=k, features="constant") for k in range(1, 6)]
    assert correlations(some, "effective_rank") == {}
    assert correlations([result(f"m{k}", k, k) for k in range(3)], "effective_rank") == {}
