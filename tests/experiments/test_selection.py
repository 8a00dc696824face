"""Selection of the evaluated epoch, on hand-made evaluations."""

import numpy as np
import pytest

from graphsc.evaluation.cross_validation import Evaluation
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.selection import LEAKY, RULES, best_epoch, protocol_words, select

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
    selected = select("last", EPOCHS, evaluate)
    assert selected.evaluation is EVALUATIONS[5]
    assert selected.epochs == [5, 5]
    assert selected.by_epoch == {}


def test_validation_takes_for_each_fold_the_epoch_that_is_best_on_its_inner_folds():
    selected = select("validation", EPOCHS, evaluate)
    assert selected.epochs == [1, 0]
    np.testing.assert_array_equal(selected.evaluation.predictions, [0, 1, 0, 1])
    np.testing.assert_allclose(selected.evaluation.inner, [[0.8, 0.1], [0.9, 0.3]])


def test_validation_takes_the_later_of_equal_epochs():
    same = evaluation([0, 1, 0, 1], [[0.5], [0.5]])
    assert select("validation", {0: LINE, 7: ROUND}, lambda rows: same).epochs == [7, 7]


def test_label_free_takes_the_epoch_of_largest_effective_rank():
    selected = select("label-free", EPOCHS, evaluate)
    assert selected.evaluation is EVALUATIONS[1]
    assert selected.epochs == [1, 1]


@pytest.mark.parametrize("rule", LEAKY)
def test_leaky_rules_take_the_epoch_with_the_best_test_accuracy(rule):
    best = evaluation([0, 1, 0, 1], [[0.1], [0.1]])
    evaluations = {**EVALUATIONS, 1: best}
    selected = select(
        rule, EPOCHS, lambda rows: evaluations[next(e for e, kept in EPOCHS.items() if kept is rows)]
    )
    assert selected.evaluation is best
    assert selected.epochs == [1, 1]


def test_leaky_rules_keep_the_predictions_of_every_epoch_of_training():
    selected = select("legacy-leaky", EPOCHS, evaluate)
    assert {epoch: values.tolist() for epoch, values in selected.by_epoch.items()} == {
        1: [0, 1, 1, 0],
        5: [0, 0, 0, 0],
    }


def test_leaky_rules_do_not_take_the_untrained_encoder_for_a_trained_one():
    right, wrong = evaluation([0, 1, 0, 1], [[0.1], [0.1]]), evaluation([1, 0, 1, 0], [[0.1], [0.1]])
    rows = {0: LINE, 3: ROUND}
    assert select("legacy-leaky", rows, lambda r: right if r is LINE else wrong).epochs == [3, 3]
    assert select("legacy-leaky", {0: LINE}, lambda _: right).epochs == [0, 0]


def test_the_common_epoch_has_the_best_mean_over_seeds():
    """Seed 0 is best at epoch 1, seed 1 at epoch 3; the means are 0.7, 0.75 and 0.65, so it is epoch 2."""
    seeds = [{1: 0.9, 2: 0.8, 3: 0.5}, {1: 0.5, 2: 0.7, 3: 0.8}]
    assert best_epoch(seeds) == 2
    assert best_epoch(seeds[:1]) == 1
    assert best_epoch(seeds[1:]) == 3


def test_the_first_of_equally_good_common_epochs_is_taken():
    assert best_epoch([{1: 0.5, 2: 0.75}, {1: 0.75, 2: 0.5}]) == 1


def test_a_common_epoch_is_one_that_all_seeds_have():
    assert best_epoch([{1: 0.5, 2: 0.9}, {1: 0.6}]) == 1


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_its_own_words(rule):
    words = protocol_words(rule, Protocol(), inductive=False)
    assert all(
        words != protocol_words(other, Protocol(), inductive=False) for other in RULES if other != rule
    )
    assert ("LEAKY" in words) == (rule in ("legacy-leaky", "legacy-leaky-common"))


def test_words_say_whether_the_encoder_saw_the_test_graphs():
    assert "Transductive" in protocol_words("last", Protocol(), inductive=False)
    assert "without that fold's graphs" in protocol_words("last", Protocol(), inductive=True)
