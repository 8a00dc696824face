"""Folds against scikit-learn's own, and the sentences for labels that cannot be split."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.cross_validation import class_codes, size_folds, stratified_folds

LABELS = np.array([0] * 23 + [1] * 11 + [2] * 40)


def test_folds_are_those_of_scikit_learn():
    expected = np.empty(len(LABELS), int)
    for number, (_, test) in enumerate(
        StratifiedKFold(5, shuffle=True, random_state=3).split(LABELS, LABELS)
    ):
        expected[test] = number
    assert stratified_folds(LABELS, 5, seed=3).tolist() == expected.tolist()


def test_each_class_is_spread_evenly():
    fold = stratified_folds(LABELS, 10)
    for code in range(3):
        counts = np.bincount(fold[np.equal(LABELS, code)], minlength=10)
        assert counts.max() - counts.min() <= 1


def test_another_seed_gives_other_folds():
    assert (stratified_folds(LABELS, 10, seed=0) != stratified_folds(LABELS, 10, seed=1)).any()


def test_a_class_smaller_than_folds_says_which_number_would_do():
    labels = np.array([0] * 20 + [1] * 20 + [3] * 4)
    with pytest.raises(DataError, match=r"^class 3 has 4 graphs, 10 folds asked; use --folds 4$"):
        stratified_folds(labels, 10)


def test_a_class_is_called_by_its_name_where_names_are_known():
    with pytest.raises(DataError, match="class toxic has 3 graphs, 5 folds asked"):
        stratified_folds(np.array([0] * 20 + [1] * 3), 5, names=["harmless", "toxic"])


def test_a_class_of_one_graph_is_not_told_to_use_one_fold():
    with pytest.raises(DataError, match="class 1 has 1 graph, 2 folds asked; leave this class out"):
        stratified_folds(np.array([0, 0, 0, 1]), 2)


@pytest.mark.parametrize(
    ("labels", "words"), [([], "no labels"), ([2, 2, 2], "all 3 graphs are of one class")]
)
def test_nothing_to_tell_apart_is_refused(labels, words):
    with pytest.raises(DataError, match=words):
        stratified_folds(np.array(labels, dtype=np.int64), 2)


def test_one_fold_is_refused():
    with pytest.raises(ConfigError, match="folds is 1; use 2 or more"):
        stratified_folds(LABELS, 1)


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        (np.array([1.0, -1.0, 1.0], np.float32), [1, 0, 1], ["-1", "1"]),
        (np.array([[2.5], [0.0]]), [1, 0], ["0", "2.5"]),
        (np.array(["b", "a", "b"]), [1, 0, 1], ["a", "b"]),
        (np.array(["b", "a"], dtype=object), [1, 0], ["a", "b"]),
        ([7, 7, 9], [0, 0, 1], ["7", "9"]),
    ],
)
def test_classes_are_numbered_in_sorted_order(labels, codes, names):
    found, spelled = class_codes(labels)
    assert found.tolist() == codes
    assert found.dtype == np.int64
    assert spelled == names


@pytest.mark.parametrize("labels", [[0.0, 1.0, np.nan, 1.0], np.array(["a", "b", None, "a"], dtype=object)])
def test_missing_labels_are_counted_and_located(labels):
    with pytest.raises(DataError, match=r"1 of 4 graphs have no label \(first graph 2\); leave"):
        class_codes(labels)


def test_several_tasks_are_refused():
    with pytest.raises(DataError, match="choose one task"):
        class_codes(np.zeros((4, 2)))


def test_halves_by_size_divide_each_class():
    labels = np.array([0, 1, 0, 1, 0, 1, 0])
    sizes = np.array([5, 9, 1, 2, 7, 3, 6])
    # Class 0 has sizes 1 5 | 6 7, class 1 has 2 3 | 9: the smaller half is tested in fold 1.
    assert size_folds(labels, sizes).tolist() == [1, 0, 1, 1, 0, 1, 0]


def test_a_class_of_one_has_no_halves():
    with pytest.raises(DataError, match="two halves asked"):
        size_folds(np.array([0, 0, 1]), np.array([1, 2, 3]))
