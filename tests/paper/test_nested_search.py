"""Nested search: settings are chosen per outer fold, by its inner folds alone."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.experiments.trial import ProbeTrial
from graphsc.paper.gather import CompletedTrial, RecipeResults
from graphsc.paper.nested_search import choose_by_inner_folds, search_results
from graphsc.paper.recipe import SEARCH, PlannedTrial, read_recipe

# Candidate 0 is better on the inner folds of even outer folds, candidate 1 on those of odd ones.
EVEN = np.arange(10) % 2 == 0
INNER = np.where(EVEN, 0.9, 0.1), np.where(EVEN, 0.2, 0.8)
ACCURACY = np.arange(50, 60), np.arange(80, 90)  # per cent on test folds, which must not decide


def trials(seed=0):
    return [
        ProbeTrial("motifs:40", "graphsc", seed=seed, settings={"margin": margin}, inner=True)
        for margin in (0.1, 0.3)
    ]


def test_each_outer_fold_has_the_candidate_that_is_best_on_its_inner_folds(make_result):
    candidates = [make_result(t, a, inner=i) for t, a, i in zip(trials(), ACCURACY, INNER, strict=True)]
    result = choose_by_inner_folds(candidates)
    expected = [ACCURACY[0][k] if k % 2 == 0 else ACCURACY[1][k] for k in range(10)]
    np.testing.assert_allclose(100 * result.accuracies, expected)
    assert result.inner_accuracy == pytest.approx(0.85)
    assert "from 2 candidates" in result.words


def test_the_first_of_equally_good_candidates_is_chosen(make_result):
    candidates = [make_result(t, a, inner=0.5) for t, a in zip(trials(), ACCURACY, strict=True)]
    np.testing.assert_allclose(100 * choose_by_inner_folds(candidates).accuracies, ACCURACY[0])


def test_candidates_without_inner_accuracies_are_refused(make_result):
    candidates = [make_result(t, a) for t, a in zip(trials(), ACCURACY, strict=True)]
    with pytest.raises(DataError, match="inner accuracies"):
        choose_by_inner_folds(candidates)


def test_a_half_done_search_has_no_result(make_result):
    planned = [PlannedTrial(SEARCH, trial) for seed in (0, 1) for trial in trials(seed)]
    completed = [CompletedTrial(cell, make_result(cell.trial, 70, inner=0.5)) for cell in planned[:3]]
    (result,) = search_results(RecipeResults(read_recipe("table3"), planned, completed))
    assert result.seed == 0
