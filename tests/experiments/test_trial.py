"""The key of a trial depends on everything that decides its outcome, and on nothing else."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import read_plan
from graphsc.experiments.result import ResultStore
from graphsc.experiments.trial import ProbeTrial, TransferTrial, key_of, trial_from_json

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


def test_trials_that_differ_only_in_their_evaluation_share_a_training_run():
    other = replace(BASE, protocol=Protocol(folds=5), selection="validation", fold_seed=9)
    assert other.run_name() == BASE.run_name()


def test_the_identity_has_every_default():
    identity = BASE.identity()
    assert (identity["curve"], identity["inner"]) == ([], False)
    assert identity["protocol"] == Protocol().to_json()
    assert identity["protocol"]["inner_order"] == "shuffled"


def test_a_trial_is_read_from_json_unchanged():
    trial = replace(BASE, curve=(0, 5), inner=True)
    assert trial_from_json(json.loads(json.dumps(trial.to_json()))) == trial
    other = TransferTrial("bbbp", "graphsc", "frozen", 3, pretraining={"molecules": 7})
    assert trial_from_json(json.loads(json.dumps(other.to_json()))) == other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "other"}, "no kind 'other'"),
        ({"sede": 1}, "did you mean 'seed'"),
        ({"protocol": 3}, "protocol"),
    ],
)
def test_an_invalid_stored_trial_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        trial_from_json(BASE.to_json() | change)


def write_motifs(path, graphs):
    path.parent.mkdir(parents=True, exist_ok=True)
    open_collection(f"motifs:{graphs}").save(path)
    return str(path)


def test_two_files_of_one_name_are_two_trials_and_a_copy_is_the_same_trial(tmp_path):
    old = ProbeTrial(write_motifs(tmp_path / "old" / "mine.safetensors", 20), "raw")
    new = ProbeTrial(write_motifs(tmp_path / "new" / "mine.safetensors", 24), "raw")
    copy = ProbeTrial(write_motifs(tmp_path / "copy.safetensors", 20), "raw")
    assert old.data_name == new.data_name == "mine"
    assert old.key() != new.key()
    assert old.key() == copy.key()


def test_a_file_replaced_in_place_is_another_trial(tmp_path):
    trial = ProbeTrial(write_motifs(tmp_path / "mine.safetensors", 20), "raw")
    before = trial.key()
    write_motifs(tmp_path / "mine.safetensors", 24)
    assert trial.key() != before


def test_a_file_with_the_name_of_a_data_set_is_another_trial(tmp_path, monkeypatch):
    write_motifs(tmp_path / "MUTAG.safetensors", 20)
    mine = ProbeTrial(str(tmp_path / "MUTAG.safetensors"), "raw")
    assert mine.data_name == ProbeTrial("mutag", "raw").data_name == "MUTAG"
    assert mine.key() != ProbeTrial("mutag", "raw").key()


def test_stored_results_are_found_by_their_trials():
    """A change of identities would make stored results unknown to the plans that they were run for."""
    folder = Path(__file__).parents[2] / "results"
    plans = [read_plan(folder / name) for name in ("plan.yaml", "transfer.yaml")]
    planned = {trial.key() for tables in plans for table in tables for trial in table.trials()}
    stored = {key_of(result.trial) for result in ResultStore(folder).all()}
    assert len(stored & planned) > len(stored) / 2


def test_inner_accuracies_share_a_training_run_and_curves_do_not():
    assert replace(BASE, inner=True).run_name() == BASE.run_name()
    curve = replace(BASE, curve=(0, 5))
    assert curve.run_name() != BASE.run_name()
    assert curve.run_name() != replace(curve, protocol=Protocol(folds=5)).run_name()


def test_inductive_trials_with_other_folds_share_no_training_run():
    one, two = replace(BASE, inductive=True), replace(BASE, inductive=True, fold_seed=9)
    assert one.run_name() != two.run_name()


def test_epochs_do_not_matter_to_a_method_that_does_not_train():
    assert ProbeTrial("mutag", "raw", training={"epochs": 3}).key() == ProbeTrial("mutag", "raw").key()


def test_resplitting_keeps_the_seed_and_its_own_folds_first():
    seeds = [(trial.seed, trial.folds_from) for trial in replace(BASE, seed=2).resplit(3)]
    assert seeds == [(2, 2), (2, 1002), (2, 2002)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selection": "best"}, "unknown selection rule"),
        ({"inductive": True, "selection": "validation"}, "last epoch"),
        ({"inductive": True, "curve": (0, 1)}, "not inductive"),
        ({"curve": (-1,)}, "from 0 on"),
        ({"training": {"precision": "auto"}}, "one precision for all machines"),
    ],
)
def test_invalid_trials_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(BASE, **changes)


@pytest.mark.parametrize("part", ["settings", "pretraining"])
def test_transfer_trials_have_one_precision_for_all_machines(part):
    with pytest.raises(ConfigError, match="one precision for all machines"):
        TransferTrial("bbbp", "none", "fine-tuned", **{part: {"precision": "auto"}})
    TransferTrial("bbbp", "none", "fine-tuned", **{part: {"precision": "bf16"}})


def test_a_wrong_setting_is_named_before_anything_runs():
    with pytest.raises(ConfigError, match="marign"):
        ProbeTrial("mutag", "graphsc", settings={"marign": 1}).identity()
