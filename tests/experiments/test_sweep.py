"""Sweeps: spaces read strictly, drawn the same by whoever draws, and decided by inner folds alone."""

import csv
import json

import numpy as np
import pytest
from graphsc.experiments.storage import open_storage
from graphsc.experiments.study import Study
from graphsc.experiments.sweep_files import best_of, command_of, settings_of, write_sweep
from graphsc.experiments.worker import Worker

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import evaluate, inner_accuracies
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.plan import read_plan
from graphsc.experiments.probe import labels_of
from graphsc.experiments.runner import run_trial
from graphsc.experiments.search_space import make_space, read_space
from graphsc.experiments.sweep import Sweep, open_sweep, sweep_of
from graphsc.experiments.trial import ProbeTrial

pytest.importorskip("optuna")
SPACE = {"encoder.width": [4, 8], "encoder.depth": {"low": 1, "high": 3}}


def sweep(**changes):
    return Sweep(
        **(
            {"data": "motifs:40", "method": "untrained", "space": SPACE, "folds": 3, "sampler": "random"}
            | changes
        )
    )


@pytest.fixture
def run(tmp_path):
    """`run(sweep, trials)` gives its study with everything run."""

    def go(asked, trials=None, name="s", where=tmp_path):
        study = open_sweep(open_storage(str(where / "s.journal"), create=True), name, asked, trials)
        Worker(study, where / "runs", where / "results").work()
        return study

    return go


def test_the_paper_s_grid_has_the_points_it_prints():
    space = make_space(read_space("paper"))
    # 3 learning rates, 4 operations and 3 combinations, 21 pairs of rates, 6 values of each lambda.
    assert space.size() == 3 * 7 * 21 * 6**3 == 95_256
    (rates,) = [one for one in space.dimensions if one.key == "weak_rate, strong_rate"]
    pairs = {(a, b) for a in (5, 10, 15, 20) for b in range(15, 45, 5) if a < b}
    assert {(round(100 * a), round(100 * b)) for a, b in rates.values} == pairs
    sweep(method="graphsc", space=read_space("paper")).check()


def test_a_file_may_ask_for_the_paper_s_space(tmp_path):
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
    ("space", "said"),
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
def test_a_wrong_space_is_refused_in_words(space, said):
    with pytest.raises(ConfigError, match=said):
        sweep(method="graphsc", space=space).check()


def test_a_range_that_is_no_grid_is_refused_by_a_grid(tmp_path):
    asked = sweep(method="graphsc", space={"margin": {"low": 0.1, "high": 1.0}}, sampler="grid")
    with pytest.raises(ConfigError, match="is no grid"):
        open_sweep(open_storage(str(tmp_path / "s.journal"), create=True), "s", asked)


def test_a_grid_of_thousands_wants_a_number_of_trials(tmp_path):
    asked = sweep(method="graphsc", space=read_space("paper"), sampler="grid")
    storage = open_storage(str(tmp_path / "s.journal"), create=True)
    with pytest.raises(ConfigError, match="95,256 points"):
        open_sweep(storage, "s", asked)
    assert len(open_sweep(storage, "s", asked, 7).cells()) == 7
    # More trials extend it: the first seven are among them.
    assert len(open_sweep(storage, "s", asked, 9).cells()) == 9


def test_a_grid_tries_every_point_once(run):
    found = [settings_of(cell) for cell in run(sweep(sampler="grid")).cells()]
    tried = {(one["encoder.width"], one["encoder.depth"]) for one in found}
    assert tried == {(width, depth) for width in (4, 8) for depth in (1, 2, 3)}
    assert len(found) == 6


def test_inner_accuracies_are_those_of_the_whole_evaluation():
    graphs = open_collection("motifs:40")
    codes, _ = labels_of(graphs)
    rows = np.random.default_rng(0).normal(size=(len(codes), 3)) + codes[:, None]
    few = Protocol(folds=4, inner_folds=2, grid=(0.1, 1.0))
    np.testing.assert_array_equal(
        inner_accuracies(rows, codes, few, seed=5), evaluate(rows, codes, few, seed=5).inner
    )


def test_what_decides_is_the_inner_accuracy_of_development_seeds(run, tmp_path):
    study = run(sweep(seeds=2, space={"encoder.width": [4]}), 1)
    (cell,) = study.cells()
    alone = [
        run_trial(
            ProbeTrial(
                "motifs:40", "untrained", seed=seed, settings={"encoder.width": 4}, protocol=Protocol(folds=3)
            ),
            runs=tmp_path / "elsewhere",
        )
        for seed in (1000, 1001)
    ]
    assert cell.attributes["inner"] == [one.inner_accuracy for one in alone]
    assert cell.value == pytest.approx(np.mean([one.inner_accuracy for one in alone]))


def test_no_outcome_on_a_test_fold_is_kept_anywhere(run, tmp_path):
    run(sweep(), 2)
    assert not list(tmp_path.rglob("result.json"))
    assert not (tmp_path / "results").exists()
    assert "predictions" not in (tmp_path / "s.journal").read_text()


def test_labels_of_a_test_fold_have_no_say_in_its_inner_accuracies():
    few = Protocol(folds=3, inner_folds=2, grid=(0.1, 1.0))
    draw = np.random.default_rng(0)
    codes = np.tile([0, 1], 15)
    rows = draw.normal(size=(30, 3)) + codes[:, None]
    fold = np.arange(30) % 3
    before = inner_accuracies(rows, codes, few, fold=fold)
    for k in range(3):
        poisoned = np.where(fold == k, 1 - codes, codes)
        np.testing.assert_array_equal(inner_accuracies(rows, poisoned, few, fold=fold)[k], before[k])


def test_who_runs_a_trial_changes_nothing_of_what_it_draws(run, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    one = run(sweep(), 4, where=tmp_path / "a")
    other = open_sweep(open_storage(str(tmp_path / "b" / "s.journal"), create=True), "s", sweep(), 4)
    for _ in range(4):  # four workers, one after the other
        joined = Study(open_storage(str(tmp_path / "b" / "s.journal")), "s")
        Worker(joined, tmp_path / "b" / "runs", tmp_path / "b" / "results").work(1)
    assert [settings_of(cell) for cell in one.cells()] == [settings_of(cell) for cell in other.cells()]


def test_a_trial_taken_over_keeps_its_settings(run, tmp_path):
    study = open_sweep(open_storage(str(tmp_path / "s.journal"), create=True), "s", sweep(sampler="tpe"), 1)
    held = study.take()
    import optuna

    study.optuna.sampler = optuna.samplers.RandomSampler(seed=99)
    drawn = optuna.trial.Trial(study.optuna, held.trial_id)
    width = drawn.suggest_categorical("encoder.width", [4, 8])  # and then it dies
    held._claim.let_go()
    (cell,) = run(sweep(sampler="tpe"), 1).cells()
    assert cell.state == "done"
    assert settings_of(cell)["encoder.width"] == width


def test_a_trial_that_is_poorer_than_most_at_a_kept_epoch_is_pruned(run):
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
    for _ in range(5):  # which no trial can be as good as
        better = optuna.trial.create_trial(value=2.0, intermediate_values={1: 2.0, 2: 2.0})
        study.optuna.add_trial(better)
    assert [cell.state for cell in run(asked, 2).cells()] == ["done", "pruned"]


def test_a_point_that_cannot_be_is_failed_and_the_others_go_on(run):
    rates = [[0.1, 0.2], [0.3, 0.2]]
    study = run(
        sweep(
            method="graphsc", space={"weak_rate, strong_rate": rates}, training={"epochs": 1}, sampler="grid"
        )
    )
    assert sorted(cell.state for cell in study.cells()) == ["done", "failed"]
    (failed,) = [cell for cell in study.cells() if cell.state == "failed"]
    assert "must be below the strong rate" in failed.reason
    assert settings_of(failed) == {"weak_rate": 0.3, "strong_rate": 0.2}


def test_another_sweep_under_the_same_name_is_refused_by_key(run):
    study = run(sweep(), 1)
    with pytest.raises(ConfigError, match="folds: 3 against 4"):
        open_sweep(study.storage, "s", sweep(folds=4))
    assert sweep_of(study) == sweep()


def test_the_best_is_written_as_a_plan_and_a_line_that_mean_the_same(run, tmp_path):
    study = run(sweep(sampler="grid"))
    out = tmp_path / "out"
    assert write_sweep(study, out) == []
    best = best_of(study)
    assert best.value == max(cell.value for cell in study.cells())
    with (out / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["inner_accuracy"]) for row in rows] == [
        pytest.approx(100 * cell.value, abs=1e-3) for cell in study.cells()
    ]
    (table,) = read_plan(out / "best.yaml")
    plain, swept = table.trials()[0], table.trials()[5]
    assert (plain.settings, swept.settings) == ({}, settings_of(best))
    assert swept.seed == 0  # none of the development seeds
    assert f"--set encoder.width={settings_of(best)['encoder.width']}" in command_of(
        sweep(), settings_of(best)
    )
    for name in ("parallel", "importance"):
        assert (out / f"{name}.png").stat().st_size > 1000
        assert "encoder" in (out / f"{name}.svg").read_text()


def test_few_trials_have_no_importance_and_it_is_said(run, tmp_path):
    (sentence,) = write_sweep(run(sweep(), 1), tmp_path / "out")
    assert "too few trials" in sentence
    assert not (tmp_path / "out" / "importance.png").exists()
