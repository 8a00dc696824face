"""With a share of the labels: the same test folds, fewer graphs to learn from."""

from dataclasses import replace

import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.evaluation.cross_validation import evaluate, evaluate_split, few_labels, stratified_folds
from graphsc.evaluation.protocol import Protocol

SHORT = Protocol(folds=4)


def test_all_labels_give_the_evaluation(clouds):
    values, labels = clouds((60, 40), apart=0.5)
    found = few_labels(values, labels, SHORT, shares=(1.0,), seed=5)[1.0]
    whole = evaluate(values, labels, SHORT, seed=5)
    assert found.predictions.tolist() == whole.predictions.tolist()
    assert found.inner.tolist() == whole.inner.tolist()


def test_test_folds_are_the_same_for_every_share(clouds):
    values, labels = clouds((60, 40))
    found = few_labels(values, labels, SHORT, seed=2)
    assert list(found) == [0.01, 0.05, 0.1, 0.5, 1.0]
    for evaluation in found.values():
        assert evaluation.fold.tolist() == found[1.0].fold.tolist()


def test_more_labels_help(clouds):
    values, labels = clouds((300, 300), apart=0.6, width=10)
    found = few_labels(values, labels, SHORT, shares=(0.01, 1.0))
    assert found[1.0].accuracy > found[0.01].accuracy + 0.05


@pytest.mark.parametrize("classifier", ["svm", "linear-svm", "logistic", "knn"])
def test_two_graphs_of_each_class_are_enough(clouds, classifier):
    values, labels = clouds((40, 40, 40), apart=20.0)
    found = few_labels(values, labels, Protocol(classifier, folds=4), shares=(0.001,))[0.001]
    # Two inner folds of one graph a class each: clouds so far apart are told apart by that.
    assert found.accuracy == 1.0


def test_only_the_kept_labels_are_read(clouds):
    """With two labels a class in the training part, most labels can be wrong without a trace."""
    values, labels = clouds((50, 50), apart=0.7)
    fold = np.arange(100) % 2
    found = few_labels(values, labels, SHORT, shares=(0.01,), fold=fold)[0.01]
    unread = 0
    for row in np.flatnonzero(fold == 0)[:20]:
        turned = labels.copy()
        # Trade the labels of two graphs, so that classes keep their sizes.
        other = np.flatnonzero((fold == 0) & (labels != labels[row]))[0]
        turned[[row, other]] = turned[[other, row]]
        after = few_labels(values, turned, SHORT, shares=(0.01,), fold=fold)[0.01]
        unread += after.predictions[fold == 1].tolist() == found.predictions[fold == 1].tolist()
    assert unread >= 10


def test_a_class_of_one_graph_in_training_is_no_crash(clouds):
    values, labels = clouds((30, 2))
    found = few_labels(values, labels, Protocol(folds=2), shares=(0.1,))[0.1]
    assert 0 <= found.accuracy <= 1


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_a_share_is_above_zero_and_up_to_one(clouds, share):
    values, labels = clouds((30, 30))
    with pytest.raises(ConfigError, match=f"share of {share}"):
        few_labels(values, labels, SHORT, shares=(share,))


def test_a_protocol_with_a_share_of_labels_gives_the_same(clouds):
    values, labels = clouds((60, 40), apart=0.5)
    few = replace(SHORT, label_share=0.2)
    found = evaluate(values, labels, few, seed=3)
    assert_equal = np.testing.assert_array_equal
    assert_equal(found.predictions, few_labels(values, labels, SHORT, shares=(0.2,), seed=3)[0.2].predictions)
    fold = stratified_folds(labels, 4, 3)
    for number in range(4):
        split = evaluate_split(
            values, labels, np.flatnonzero(fold != number), np.flatnonzero(fold == number), few,
            seed=3, number=number,
        )  # fmt: skip
        assert_equal(split.predictions, found.predictions[fold == number])
