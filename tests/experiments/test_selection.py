"""Selection of the evaluated epoch, on hand-made evaluations."""

import numpy as np
import pytest

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.selection import RULES, protocol_words, select

LABELS = np.array([0, 1, 0, 1])
FOLD = np.array([0, 0, 1, 1])


def evaluation(predictions, inner):
    return Evaluation(
        predictions=np.array(predictions), fold=FOLD, labels=LABELS, chosen=(1.0, 1.0), inner=np.array(inner)
    )


# The embeddings of an epoch only identify it; `label-free` looks at their rank.
LINE = np.outer(np.arange(4.0), [1.0, 2.0, 3.0]).astype(np.float32)  # rank 1
ROUND = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)  # rank 3
EPOCHS = {0: LINE, 1: ROUND, 5: LINE + 1}
EVALUATIONS = {
    # correct: 0 of 2 and 2 of 2; best on the inner folds of fold 1
    0: evaluation([1, 0, 0, 1], [[0.1, 0.2], [0.9, 0.3]]),
    # correct: 2 of 2 and 0 of 2; best on the inner folds of fold 0
    1: evaluation([0, 1, 1, 0], [[0.8, 0.1], [0.2, 0.2]]),
    # correct: 1 of 2 each
    5: evaluation([0, 0, 0, 0], [[0.5, 0.5], [0.5, 0.5]]),
}


def evaluate(rows):
    return EVALUATIONS[next(epoch for epoch, kept in EPOCHS.items() if kept is rows)]


def test_last_takes_the_last_epoch():
    found, epochs = select("last", EPOCHS, evaluate)
    assert found is EVALUATIONS[5]
    assert epochs == [5, 5]


def test_validation_takes_for_each_fold_the_epoch_that_is_best_on_its_inner_folds():
    found, epochs = select("validation", EPOCHS, evaluate)
    assert epochs == [1, 0]
    np.testing.assert_array_equal(found.predictions, [0, 1, 0, 1])
    np.testing.assert_allclose(found.inner, [[0.8, 0.1], [0.9, 0.3]])


def test_validation_takes_the_later_of_equal_epochs():
    same = evaluation([0, 1, 0, 1], [[0.5], [0.5]])
    _, epochs = select("validation", {0: LINE, 7: ROUND}, lambda rows: same)
    assert epochs == [7, 7]


def test_label_free_takes_the_epoch_of_largest_effective_rank():
    found, epochs = select("label-free", EPOCHS, evaluate)
    assert found is EVALUATIONS[1]
    assert epochs == [1, 1]


def test_legacy_leaky_takes_the_best_test_accuracy_and_says_so():
    best = evaluation([0, 1, 0, 1], [[0.1], [0.1]])
    evaluations = {**EVALUATIONS, 1: best}
    found, epochs = select(
        "legacy-leaky",
        EPOCHS,
        lambda rows: evaluations[next(e for e, kept in EPOCHS.items() if kept is rows)],
    )
    assert found is best
    assert epochs == [1, 1]
    assert "LEAKY" in protocol_words("legacy-leaky", Protocol(), inductive=False)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_its_own_words(rule):
    words = protocol_words(rule, Protocol(), inductive=False)
    assert all(
        words != protocol_words(other, Protocol(), inductive=False) for other in RULES if other != rule
    )
    assert ("LEAKY" in words) == (rule == "legacy-leaky")


def test_words_say_whether_the_encoder_saw_the_test_graphs():
    assert "Transductive" in protocol_words("last", Protocol(), inductive=False)
    assert "without that fold's graphs" in protocol_words("last", Protocol(), inductive=True)
