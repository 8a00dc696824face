"""Settings are chosen per outer fold, by inner folds alone."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.experiments.trial import ProbeTrial
from graphsc.paper.gather import gather
from graphsc.paper.nested_search import choose, searched
from graphsc.paper.recipe import SEARCH, PlannedTrial

# Candidate 0 is liked by the inner folds of the even outer folds, candidate 1 by the others.
EVEN = np.arange(10) % 2 == 0
INNER = np.where(EVEN, 0.9, 0.1), np.where(EVEN, 0.2, 0.8)
ACCURACY = np.arange(50, 60), np.arange(80, 90)  # per cent on the test folds, which may not decide


def trials(seed=0):
    return [
        ProbeTrial("motifs:40", "graphsc", seed=seed, settings={"margin": margin}, inner=True)
        for margin in (0.1, 0.3)
    ]


def test_each_outer_fold_has_the_candidate_its_inner_folds_like(by_hand):
    made = [by_hand(t, a, inner=i) for t, a, i in zip(trials(), ACCURACY, INNER, strict=True)]
    found = choose(made)
    expected = [ACCURACY[0][k] if k % 2 == 0 else ACCURACY[1][k] for k in range(10)]
    np.testing.assert_allclose(100 * found.accuracies, expected)
    assert found.inner_accuracy == pytest.approx(0.85)
    assert "from 2 candidates" in found.words


def test_the_first_of_equally_good_candidates_is_taken(by_hand):
    made = [by_hand(t, a, inner=0.5) for t, a in zip(trials(), ACCURACY, strict=True)]
    np.testing.assert_allclose(100 * choose(made).accuracies, ACCURACY[0])


def test_candidates_without_inner_accuracies_are_refused(by_hand):
    made = [by_hand(t, a) for t, a in zip(trials(), ACCURACY, strict=True)]
    with pytest.raises(DataError, match="inner accuracies"):
        choose(made)


def test_a_search_that_is_half_done_gives_nothing(fill):
    cells = [PlannedTrial(SEARCH, trial) for seed in (0, 1) for trial in trials(seed)]
    store = fill(cells[:3], lambda _: 70, inner=lambda _: 0.5)
    (found,) = searched(cells, gather(cells, store))
    assert found.seed == 0
