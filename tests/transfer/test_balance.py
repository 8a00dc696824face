"""Counts of labels, and what is said of them."""

import numpy as np

from graphsc.finetuning.dataset import balance_of, warnings_of, write_balance

LABELS = np.array([[1, 1], [0, np.nan], [np.nan, 1], [1, 1], [0, 0], [1, 1]])
PARTS = np.array([0, 0, 0, 1, 2, 2])


def test_positives_negatives_and_missing_of_every_side():
    found = {(one.task, one.part): one for one in balance_of(LABELS, ("a", "b"), PARTS, "classification")}
    counts = {key: (one.positives, one.negatives, one.missing) for key, one in found.items()}
    assert counts == {
        ("a", "train"): (1, 1, 1), ("a", "valid"): (1, 0, 0), ("a", "test"): (1, 1, 0),
        ("b", "train"): (2, 0, 1), ("b", "valid"): (1, 0, 0), ("b", "test"): (1, 1, 0),
    }  # fmt: skip


def test_counts_are_written_as_a_table(tmp_path):
    write_balance(tmp_path / "b.csv", balance_of(LABELS[:, :1], ("=a",), PARTS, "classification"))
    assert (tmp_path / "b.csv").read_text().splitlines() == [
        "task,part,missing,positives,negatives", "'=a,train,1,1,1", "'=a,valid,0,1,0", "'=a,test,0,1,1",
    ]  # fmt: skip


def test_one_class_and_few_molecules_are_said_in_words():
    said = warnings_of(balance_of(LABELS, ("a", "b"), PARTS, "classification"))
    assert said == [
        "b: only one class to learn from",
        "a, b: fewer than 10 test molecules of one class, scores are noise",
    ]


def test_a_regression_counts_values():
    found = balance_of(LABELS[:, :1], ("a",), PARTS, "regression")
    assert [(one.part, one.values, one.missing) for one in found] == [
        ("train", 2, 1), ("valid", 1, 0), ("test", 2, 0),
    ]  # fmt: skip
    assert warnings_of(found) == []
