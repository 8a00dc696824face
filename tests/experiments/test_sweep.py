"""Sweeps: spaces are read strictly, draws are reproducible, and inner folds alone decide."""

import csv
import hashlib
import json
import re
import sqlite3
import traceback

import numpy as np
import pytest

from graphsc import __version__
from graphsc.core import progress
from graphsc.core.errors import ConfigError, DamagedFileError, DataError, GraphscError
from graphsc.core.files import InUseError, file_lock
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import evaluate, inner_accuracies
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import read_plan
from graphsc.experiments.probe import labels_of
from graphsc.experiments.runner import run_trial
from graphsc.experiments.search_space import make_space, read_space
from graphsc.experiments.sweep import StorageError, Sweep, SweepStudy, command_of, write_sweep
from graphsc.experiments.trial import ProbeTrial
from graphsc.training.callbacks import PlainReporter

pytest.importorskip("optuna")
SPACE = {"encoder.width": [4, 8], "encoder.depth": {"low": 1, "high": 3}}


def sweep(**changes):
    return Sweep(
        **(
            {"data": "motifs:40", "method": "untrained", "space": SPACE, "folds": 3, "sampler": "random"}
            | changes
        )
    )


@pytest.fixture(params=["sqlite:///{}/s.db", "{}/s.journal"], ids=["sqlite", "journal"])
def storage(request, tmp_path):
    return request.param.format(tmp_path)


@pytest.fixture
def run(tmp_path):
    """`run(sweep, trials)` gives its study with everything run."""

    def go(asked, trials=None, where=tmp_path, storage=None, jobs=1):
        study = SweepStudy(asked, storage or f"sqlite:///{where}/s.db", "s")
        study.run(trials, runs=where / "runs", jobs=jobs, lock=where / ".lock")
        return study

    return go


def test_a_sweep_shows_how_many_trials_are_done_and_the_time_left(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PROGRESS_INTERVAL", 0.0)
    study = SweepStudy(sweep(), f"sqlite:///{tmp_path}/s.db", "s")
    study.run(2, runs=tmp_path / "runs", lock=tmp_path / ".lock", reporter=PlainReporter())
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("s: ")]
    assert lines[0] == "s: 0 of 2 trials"
    assert re.fullmatch(r"s: 1 of 2 trials, 0:\d\d:\d\d left", lines[1])
    assert lines[2] == "s: 2 of 2 trials, 0:00:00 left"


def test_the_paper_s_space_has_as_many_points_as_printed():
    space = make_space(read_space("paper"))
    # 3 learning rates, 4 operations and 3 combinations, 21 pairs of rates, 6 values of each lambda.
    assert space.size() == 3 * 7 * 21 * 6**3 == 95_256
    (rates,) = [one for one in space.dimensions if one.key == "weak_rate, strong_rate"]
    pairs = {(a, b) for a in (5, 10, 15, 20) for b in range(15, 45, 5) if a < b}
    assert {(round(100 * a), round(100 * b)) for a, b in rates.values} == pairs
    sweep(method="graphsc", space=read_space("paper")).check()


def test_a_file_may_refer_to_the_paper_s_space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("space: paper\n")
    assert read_space(str(path)) == read_space("paper")


def test_every_point_of_a_grid_is_counted_once():
    space = make_space(
        {"a, b": [[1, "x"], [2, "y"]], "c": {"low": 0.1, "high": 0.3, "step": 0.1}, "d": [None]}
    )
    points = [space.point(index) for index in range(space.size())]
    assert len({json.dumps(point) for point in points}) == 2 * 3 * 1
    assert points[0] == {"a, b": '[1, "x"]', "c": 0.1, "d": None}
    assert points[-1] == {"a, b": '[2, "y"]', "c": pytest.approx(0.3), "d": None}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"marign": [0.1]}, "did you mean 'margin'"),
        ({"training.learning_rat": [0.1]}, "did you mean 'training.learning_rate'"),
        ({"training.seed": [1]}, "no setting 'training.seed'"),
        ({"margin": ["wide"]}, "'margin'"),
        ({"training.epochs": {"low": 0.5, "high": 2.5}}, "'epochs'"),
        ({"training.learning_rate": {"low": -1.0, "high": 1.0}}, "must be positive"),
        ({"margin": 0.1}, "a list of values"),
        ({"margin": []}, "no values"),
        ({"margin": [0.1, 0.1]}, "twice"),
        ({"margin": {"low": 2.0, "high": 1.0}}, "goes from 2.0 to 1.0"),
        ({"margin": {"low": 0.0, "high": 1.0, "log": True}}, "low above 0"),
        ({"margin": {"low": 0.0, "high": 1.0, "step": 3.0}}, "step of 3.0"),
        ({"margin": {"low": 0.0, "hihg": 1.0}}, "did you mean 'high'"),
        ({"margin": {"low": 0.0}}, "'high' is required"),
        ({"weak_rate, strong_rate": [[0.1, 0.2], [0.1]]}, "not a list of 2"),
        ({"weak_rate, strong_rate": {"low": 0.0, "high": 1.0}}, "list of values"),
        ({"margin": [0.1], "beta, margin": [[1.0, 2.0]]}, "'margin' is set twice"),
    ],
)
def test_a_wrong_space_is_refused(space, message):
    with pytest.raises(ConfigError, match=message):
        sweep(method="graphsc", space=space).check()


def test_a_continuous_range_is_refused_by_a_grid(run):
    asked = sweep(method="graphsc", space={"margin": {"low": 0.1, "high": 1.0}}, sampler="grid")
    with pytest.raises(ConfigError, match="is no grid"):
        run(asked)


def test_a_large_grid_needs_a_number_of_trials(run):
    asked = sweep(method="graphsc", space=read_space("paper"), sampler="grid")
    with pytest.raises(ConfigError, match="95,256 points"):
        run(asked)


def test_a_grid_tries_every_point_once_and_more_trials_extend_it(run, storage):
    first = run(sweep(sampler="grid"), 2, storage=storage).trials()
    found = run(sweep(sampler="grid"), storage=storage)
    tried = {(one.settings["encoder.width"], one.settings["encoder.depth"]) for one in found.trials()}
    assert tried == {(width, depth) for width in (4, 8) for depth in (1, 2, 3)}
    assert len(found.trials()) == 6
    assert found.trials()[:2] == first


def test_inner_accuracies_equal_those_of_a_full_evaluation():
    graphs = open_collection("motifs:40")
    codes, _ = labels_of(graphs)
    rows = np.random.default_rng(0).normal(size=(len(codes), 3)) + codes[:, None]
    few = Protocol(folds=4, inner_folds=2, grid=(0.1, 1.0))
    np.testing.assert_array_equal(
        inner_accuracies(rows, codes, few, seed=5), evaluate(rows, codes, few, seed=5).inner
    )


def test_the_objective_is_the_mean_inner_accuracy_of_development_seeds(run, tmp_path):
    (found,) = run(sweep(seeds=2, space={"encoder.width": [4]}), 1).trials()
    alone = [
        run_trial(
            ProbeTrial(
                "motifs:40", "untrained", seed=seed, settings={"encoder.width": 4}, protocol=Protocol(folds=3)
            ),
            runs=tmp_path / "elsewhere",
        )
        for seed in (1000, 1001)
    ]
    assert found.value == pytest.approx(np.mean([one.inner_accuracy for one in alone]))


def test_no_predictions_on_test_folds_are_stored(run, tmp_path):
    run(sweep(), 2)
    assert not list(tmp_path.rglob("result.json"))
    assert not (tmp_path / "results").exists()
    assert b"predictions" not in (tmp_path / "s.db").read_bytes()


def test_labels_of_a_test_fold_do_not_affect_its_inner_accuracies():
    few = Protocol(folds=3, inner_folds=2, grid=(0.1, 1.0))
    draw = np.random.default_rng(0)
    codes = np.tile([0, 1], 15)
    rows = draw.normal(size=(30, 3)) + codes[:, None]
    fold = np.arange(30) % 3
    before = inner_accuracies(rows, codes, few, fold=fold)
    for k in range(3):
        poisoned = np.where(fold == k, 1 - codes, codes)
        np.testing.assert_array_equal(inner_accuracies(rows, poisoned, few, fold=fold)[k], before[k])


def test_an_interrupted_sweep_draws_the_same_settings(run, tmp_path):
    whole = run(sweep(sampler="tpe"), 4, where=tmp_path / "a")
    for trials in (1, 3, 4):
        parts = run(sweep(sampler="tpe"), trials, where=tmp_path / "b")
    assert [one.settings for one in whole.trials()] == [one.settings for one in parts.trials()]


def test_an_unfinished_trial_is_finished_with_its_settings(run, tmp_path, storage):
    study = SweepStudy(sweep(sampler="tpe"), storage, "s")
    drawn = study.optuna.ask()
    width = drawn.suggest_categorical("encoder.width", [4, 8])  # and then the process dies
    (found,) = run(sweep(sampler="tpe"), 1, storage=storage).trials()
    assert found.state == "done"
    assert found.settings["encoder.width"] == width


def test_parallel_trials_are_all_reported_to_the_study(run):
    study = run(sweep(sampler="grid"), jobs=2)
    assert [one.state for one in study.trials()] == ["done"] * 6


def test_a_sweep_that_another_process_runs_is_refused(run, tmp_path):
    with file_lock(tmp_path / ".lock"), pytest.raises(InUseError):
        run(sweep(), 1)


def test_a_trial_below_the_median_at_a_kept_epoch_is_pruned(run):
    import optuna

    asked = sweep(
        method="graphsc",
        space={"margin": [0.1, 0.2]},
        pruner="median",
        training={"epochs": 3},
        sampler="grid",
    )
    study = run(asked, 1)
    assert sorted(study.optuna.get_trials()[0].intermediate_values) == [1, 2]
    for number in range(1, 6):  # better than any real trial
        content = [number, {}, {"reason": None, "settings": None}, "COMPLETE", 2.0]
        check = hashlib.sha256(json.dumps(content).encode()).hexdigest()
        better = optuna.trial.create_trial(
            value=2.0, intermediate_values={1: 2.0, 2: 2.0}, user_attrs={"check": check}
        )
        study.optuna.add_trial(better)
    states = [one.state for one in run(asked).trials()]
    assert states == ["done", *["done"] * 5, "pruned"]


def test_an_invalid_point_fails_and_the_others_continue(run):
    rates = [[0.1, 0.2], [0.3, 0.2]]
    study = run(
        sweep(
            method="graphsc", space={"weak_rate, strong_rate": rates}, training={"epochs": 1}, sampler="grid"
        )
    )
    assert sorted(one.state for one in study.trials()) == ["done", "failed"]
    (failed,) = [one for one in study.trials() if one.state == "failed"]
    assert "must be below the strong rate" in failed.reason
    assert failed.settings == {"weak_rate": 0.3, "strong_rate": 0.2}


def test_another_sweep_under_the_same_name_is_refused(run, tmp_path):
    run(sweep(), 1)
    with pytest.raises(ConfigError, match="folds: 3 against 4"):
        SweepStudy(sweep(folds=4), f"sqlite:///{tmp_path}/s.db", "s")


def test_a_sweep_of_one_seed_is_not_one_of_three(run, tmp_path):
    run(sweep(), 1)
    with pytest.raises(ConfigError, match=r"is another sweep: seeds: 1 against 3; .* or another --study"):
        SweepStudy(sweep(seeds=3), f"sqlite:///{tmp_path}/s.db", "s")


def test_a_sweep_on_changed_graphs_is_refused_and_both_are_named(run, tmp_path):
    path = tmp_path / "mine.safetensors"
    hashes = []
    for graphs in ("motifs:30", "motifs:36"):
        open_collection(graphs).save(path)
        hashes.append(open_collection(path).content_hash[:12])
        if len(hashes) == 1:
            run(sweep(data=str(path)), 1)
    with pytest.raises(ConfigError, match=f"graphs: '{hashes[0]}' against '{hashes[1]}'"):
        run(sweep(data=str(path)), 2)


def test_a_sweep_of_another_version_is_refused_and_both_are_named(run, tmp_path, monkeypatch):
    monkeypatch.setattr("graphsc.experiments.sweep.__version__", "0.0.9")
    run(sweep(), 1)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match=rf"version: '0\.0\.9' against '{__version__}'"):
        run(sweep(), 2)


def test_graphs_that_change_during_a_sweep_end_it_and_fail_no_trial(run, tmp_path):
    path = tmp_path / "mine.safetensors"
    open_collection("motifs:30").save(path)
    study = SweepStudy(sweep(data=str(path)), f"sqlite:///{tmp_path}/s.db", "s")

    class Replace(PlainReporter):
        def log(self, sentence):
            open_collection("motifs:36").save(path)

    with pytest.raises(DataError, match="not those of the trial"):
        study.run(3, runs=tmp_path / "runs", lock=tmp_path / ".lock", reporter=Replace())
    assert [trial.state for trial in study.trials()] == ["done", "running"]


def test_a_changed_value_in_a_journal_is_found(run, tmp_path):
    storage = f"{tmp_path}/s.journal"
    (trial,) = run(sweep(), 1, storage=storage).trials()
    path = tmp_path / "s.journal"
    text = path.read_text()
    assert repr(trial.value) in text
    path.write_text(text.replace(repr(trial.value), "0.9987"))
    with pytest.raises(DamagedFileError, match="trial 0 of study 's' does not match its check"):
        run(sweep(), 1, storage=storage).best()


def test_a_trial_without_its_check_is_found(run, tmp_path):
    """A flipped bit in an index of SQLite can hide the attributes of a trial."""
    storage = f"sqlite:///{tmp_path}/s.db"
    run(sweep(), 1, storage=storage)
    with sqlite3.connect(tmp_path / "s.db") as database:
        assert database.execute("DELETE FROM trial_user_attributes").rowcount == 2
    with pytest.raises(DamagedFileError, match="trial 0 of study 's' does not match its check"):
        run(sweep(), 1, storage=storage)


def test_a_damaged_journal_is_one_sentence_and_a_partial_last_line_is_removed(run, tmp_path):
    storage = f"{tmp_path}/s.journal"
    before = run(sweep(), 1, storage=storage).trials()
    path = tmp_path / "s.journal"
    path.write_text(path.read_text() + '{"op_code":4,"worker')
    assert run(sweep(), 1, storage=storage).trials() == before
    path.write_text(path.read_text().replace('"op_code"', '"op_code', 1))
    with pytest.raises(StorageError, match="the storage cannot be used"):
        run(sweep(), 1, storage=storage)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("nowhere", "'nowhere' is no storage"),
        ("postgresql://me:S3CRET@127.0.0.1:1/x", "cannot be used"),
        ("postgresql://me:S3CR%45T@127.0.0.1:1/x", "cannot be used"),
        ("postgresql://127.0.0.1:1/x?user=me&password=S3CRET", "cannot be used"),
        ("postgresql://127.0.0.1:1/x?passwd=S3CRET", "cannot be used"),
        ("postgresql://me:x@S3CRET@127.0.0.1:1/x", "cannot be used"),
        ("postgresql://me:S3CRET/x", "not a valid URL"),
        ("postgresql:me:S3CRET@127.0.0.1:1/x", "is no storage"),
        ("host=127.0.0.1 password=S3CRET", "is no storage"),
        ("postgresql://me:S3CRET@127.0.0.1:1/x.journal", "cannot be used"),
        ("redis://:S3CRET@127.0.0.1:1/0", "cannot be used"),
        ("sqlite:///nowhere%00/S.db?password=S3CRET", "cannot be used"),
        ("nosuch://x/y", "cannot be used"),
    ],
)
def test_an_unusable_storage_is_reported_without_its_password(storage, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphscError, match=message) as raised:
        SweepStudy(sweep(), storage, "s")
    assert "S3CRET" not in str(raised.value)
    assert "S3CRET" not in "".join(traceback.format_exception(raised.value))
    assert not [path for path in tmp_path.rglob("*") if "S3CRET" in path.name]


def test_a_piece_does_not_show_the_storage_it_reports_to(tmp_path):
    """Workers of a cluster log the arguments of a piece that fails."""
    study = SweepStudy(sweep(pruner="median"), f"sqlite:///{tmp_path}/s.db?timeout=54321", "s")
    asked = {}
    piece = study._piece(study.optuna.ask(), asked, tmp_path)
    assert piece.pruning.storage.endswith("54321")
    assert "54321" not in repr(piece)


def test_the_best_settings_are_written_as_a_plan_and_as_a_command(run, tmp_path):
    study = run(sweep(sampler="grid"))
    out = tmp_path / "out"
    assert write_sweep(study, out) == []
    best = study.best()
    assert best.value == max(one.value for one in study.trials())
    with (out / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["inner_accuracy"]) for row in rows] == [
        pytest.approx(100 * one.value, abs=1e-3) for one in study.trials()
    ]
    (table,) = read_plan(out / "best.yaml")
    plain, swept = table.trials()[0], table.trials()[5]
    assert (plain.settings, swept.settings) == ({}, best.settings)
    assert swept.seed == 0  # none of the development seeds
    assert f"--set encoder.width={best.settings['encoder.width']}" in command_of(sweep(), best.settings)
    for name in ("parallel", "importance"):
        assert (out / f"{name}.png").stat().st_size > 1000
        assert "encoder" in (out / f"{name}.svg").read_text()


def test_with_few_trials_the_importance_is_left_out_with_a_message(run, tmp_path):
    (sentence,) = write_sweep(run(sweep(), 1), tmp_path / "out")
    assert "too few trials" in sentence
    assert not (tmp_path / "out" / "importance.png").exists()
