import numpy as np
import pytest

from graphsc.paper.analyses import gains
from graphsc.experiments.gains import gains_markdown
from graphsc.experiments.result import Result


def result(method, right, seed=0, protocol=None, **trial):
    """Ten graphs in one fold, `right` of them predicted right."""
    return Result(
        trial={
            "data": "D", "features": "auto", "method": method, "preset": "default", "selection": "last",
            "inductive": False, "training": {"seed": seed}, "fold_seed": seed, "protocol": protocol or {},
        } | trial,
        config={}, classes=("0", "1"), labels=np.zeros(10, np.int64), fold=np.zeros(10, np.int64),
        predictions=np.where(np.arange(10) < right, 0, 1), chosen=(1.0,), epochs=(1,), inner_accuracy=0.5,
        words="",
    )  # fmt: skip


def test_differences_are_of_seeds_that_both_have():
    results = [
        result("m", 8), result("untrained", 7), result("m", 9, seed=1), result("untrained", 6, seed=1),
        result("m", 1, seed=2),
    ]  # fmt: skip
    gain = gains(results, "m")["all labels"]["D"]
    assert gain.points == pytest.approx(20)  # of 10 and 30
    assert gain.error == pytest.approx(10)  # their deviation, sqrt(200), over the square root of 2
    assert gain.seeds == 2


def test_conditions_stand_apart_and_in_order():
    results = [
        result(name, right, protocol=protocol, inductive=inductive)
        for name, right in (("m", 6), ("untrained", 5))
        for protocol, inductive in (
            ({}, True), ({"label_share": 0.05}, False), ({"splitting": "size"}, True), ({}, False),
        )
    ]  # fmt: skip
    found = gains(results, "m")
    assert list(found) == ["5 % of labels", "all labels", "unseen graphs", "other sizes"]
    assert "| 5 % of labels | +10.00 |" in gains_markdown(results, "m")


def test_orders_of_inner_folds_are_not_mixed():
    shuffled = {"inner_order": "shuffled"}
    results = [
        result("m", 8), result("untrained", 7), result("m", 9, seed=1), result("untrained", 7, seed=1),
        result("m", 5, protocol=shuffled), result("untrained", 1, seed=1, protocol=shuffled),
    ]  # fmt: skip
    assert gains(results, "m")["all labels"]["D"].points == pytest.approx(15)  # not of a 5 or a 1
    results += [result("untrained", 5, protocol=shuffled), result("m", 2, seed=1, protocol=shuffled)]
    assert gains(results, "m")["all labels"]["D"].points == pytest.approx(5)  # of equally many, shuffled


def test_chosen_epochs_are_left_out():
    chosen = [result(name, 6, selection="label-free") for name in ("m", "untrained")]
    assert gains(chosen, "m") == {}


def test_other_features_are_left_out():
    assert (
        gains([result("m", 6, features="constant"), result("untrained", 5, features="constant")], "m") == {}
    )
