"""A trial's key stands for all that decides its outcome."""

from dataclasses import replace

import pytest

from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.trial import ProbeTrial

BASE = ProbeTrial("mutag", "graphsc")


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "proteins"},
        {"method": "graphsc-mse"},
        {"seed": 1},
        {"fold_seed": 7},
        {"features": "degree"},
        {"preset": "paper_literal"},
        {"settings": {"margin": 0.3}},
        {"settings": {"encoder.depth": 5}},
        {"training": {"epochs": 40}},
        {"protocol": Protocol(folds=5)},
        {"selection": "validation"},
        {"inductive": True},
        {"curve": (0, 5)},
        {"inner": True},
    ],
)
def test_another_trial_has_another_key(changes):
    assert replace(BASE, **changes).key() != BASE.key()


@pytest.mark.parametrize(
    "changes", [{"settings": {"margin": 0.2}}, {"training": {"epochs": 20}}, {"fold_seed": 0}]
)
def test_a_default_written_out_is_the_same_trial(changes):
    assert replace(BASE, **changes).key() == BASE.key()


def test_trials_that_differ_only_in_how_they_are_judged_share_a_training_run():
    other = replace(BASE, protocol=Protocol(folds=5), selection="validation", fold_seed=9)
    assert other.run_name() == BASE.run_name()


def test_what_only_some_trials_have_is_not_in_the_identity_of_the_others():
    assert {"curve", "inner"}.isdisjoint(BASE.identity())
    assert replace(BASE, curve=()).key() == replace(BASE, inner=False).key() == BASE.key()


def test_a_trial_comes_back_from_json_as_it_was():
    import json

    trial = replace(BASE, curve=(0, 5), inner=True)
    assert ProbeTrial.from_json(json.loads(json.dumps(trial.to_json()))) == trial


def test_stored_results_keep_their_names():
    """The key of a stored file is still the key of the trial it came from."""
    from pathlib import Path

    from graphsc.experiments.result import ResultStore

    store = ResultStore(Path(__file__).parents[2] / "results")
    in_order = Protocol(inner_order="file")
    assert store.get(ProbeTrial("mutag", "untrained", protocol=in_order)) is not None
    assert store.get(ProbeTrial("proteins", "raw", seed=1, protocol=in_order)) is not None


def test_a_setting_that_came_later_is_named_only_where_it_says_something_new():
    joao = ProbeTrial("mutag", "joao")
    assert "pairs" not in joao.identity()["settings"]
    assert replace(joao, settings={"pairs": False}).key() == joao.key()
    assert replace(joao, settings={"pairs": True}).key() != joao.key()


def test_inner_accuracies_ask_for_no_training_of_their_own_and_curves_do():
    assert replace(BASE, inner=True).run_name() == BASE.run_name()
    curve = replace(BASE, curve=(0, 5))
    assert curve.run_name() != BASE.run_name()
    assert curve.run_name() != replace(curve, protocol=Protocol(folds=5)).run_name()


def test_inductive_trials_of_other_folds_do_not():
    one, two = replace(BASE, inductive=True), replace(BASE, inductive=True, fold_seed=9)
    assert one.run_name() != two.run_name()


def test_epochs_mean_nothing_to_what_does_not_train():
    assert ProbeTrial("mutag", "raw", training={"epochs": 3}).key() == ProbeTrial("mutag", "raw").key()


def test_resplitting_keeps_the_seed_and_its_own_folds_first():
    seeds = [(trial.seed, trial.folds_from) for trial in replace(BASE, seed=2).resplit(3)]
    assert seeds == [(2, 2), (2, 1002), (2, 2002)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"selection": "best"}, "unknown selection rule"),
        ({"inductive": True, "selection": "validation"}, "last epoch"),
        ({"inductive": True, "curve": (0, 1)}, "not inductive"),
        ({"curve": (-1,)}, "from 0 on"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        replace(BASE, **changes)


def test_a_wrong_setting_is_named_before_anything_runs():
    with pytest.raises(ConfigError, match="marign"):
        ProbeTrial("mutag", "graphsc", settings={"marign": 1}).identity()
