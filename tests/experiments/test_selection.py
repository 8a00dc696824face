"""Which epoch is judged, worked out by hand on made-up judgements."""

import numpy as np
import pytest

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.selection import RULES, in_words, select

LABELS = np.array([0, 1, 0, 1])
FOLD = np.array([0, 0, 1, 1])


def judged(predictions, inner):
    return Evaluation(
        predictions=np.array(predictions), fold=FOLD, labels=LABELS, chosen=(1.0, 1.0), inner=np.array(inner)
    )


# Rows stand for epochs; what they hold does not matter to the judge, only their rank to `label-free`.
LINE = np.outer(np.arange(4.0), [1.0, 2.0, 3.0]).astype(np.float32)  # rank 1
ROUND = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)  # rank 3
EPOCHS = {0: LINE, 1: ROUND, 5: LINE + 1}
VERDICTS = {
    # right: 0 of 2 and 2 of 2; inner folds like it on fold 1
    0: judged([1, 0, 0, 1], [[0.1, 0.2], [0.9, 0.3]]),
    # right: 2 of 2 and 0 of 2; inner folds like it on fold 0
    1: judged([0, 1, 1, 0], [[0.8, 0.1], [0.2, 0.2]]),
    # right: 1 of 2 each
    5: judged([0, 0, 0, 0], [[0.5, 0.5], [0.5, 0.5]]),
}


def judge(rows):
    return VERDICTS[next(epoch for epoch, kept in EPOCHS.items() if kept is rows)]


def test_last_takes_the_last_epoch():
    found, epochs = select("last", EPOCHS, judge)
    assert found is VERDICTS[5]
    assert epochs == [5, 5]


def test_validation_takes_for_each_fold_the_epoch_its_inner_folds_like_best():
    found, epochs = select("validation", EPOCHS, judge)
    assert epochs == [1, 0]
    np.testing.assert_array_equal(found.predictions, [0, 1, 0, 1])
    np.testing.assert_allclose(found.inner, [[0.8, 0.1], [0.9, 0.3]])


def test_validation_goes_to_the_later_of_equal_epochs():
    same = judged([0, 1, 0, 1], [[0.5], [0.5]])
    _, epochs = select("validation", {0: LINE, 7: ROUND}, lambda rows: same)
    assert epochs == [7, 7]


def test_label_free_takes_the_epoch_of_largest_effective_rank():
    found, epochs = select("label-free", EPOCHS, judge)
    assert found is VERDICTS[1]
    assert epochs == [1, 1]


def test_leaky_takes_the_best_test_accuracy_and_says_so():
    best = judged([0, 1, 0, 1], [[0.1], [0.1]])
    verdicts = {**VERDICTS, 1: best}
    found, epochs = select(
        "legacy-leaky", EPOCHS, lambda rows: verdicts[next(e for e, kept in EPOCHS.items() if kept is rows)]
    )
    assert found is best
    assert epochs == [1, 1]
    assert "LEAKY" in in_words("legacy-leaky", Protocol(), inductive=False)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_words_of_its_own(rule):
    words = in_words(rule, Protocol(), inductive=False)
    assert all(words != in_words(other, Protocol(), inductive=False) for other in RULES if other != rule)
    assert ("LEAKY" in words) == (rule == "legacy-leaky")


def test_words_say_who_saw_the_test_graphs():
    assert "Transductive" in in_words("last", Protocol(), inductive=False)
    assert "without that fold's graphs" in in_words("last", Protocol(), inductive=True)
