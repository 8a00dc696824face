"""sweep and results, through the command line."""

import json

import pytest

pytest.importorskip("optuna")

SPACE = "encoder.width: [4, 8]\nencoder.depth: {low: 1, high: 2}\n"
PLAN = "tables: {t: {title: T, trials: [{data: ['motifs:40'], methods: [raw, untrained], folds: 3}]}}\n"
TRANSFER = """
transfer:
  pretraining: {data: moses, molecules: 200000}
  tables:
    frozen:
      title: Frozen
      trials:
        - {data: [made.csv], way: ecfp-linear, label: ECFP}
        - {data: [made.csv], way: frozen, methods: [none]}
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "plan.yaml").write_text(PLAN)


SWEEP = ("sweep", "motifs:40", "--method", "untrained", "--space", "space.yaml", "--folds", 3, "--out", "out")


def test_sweep_prints_the_best_and_how_to_use_it_and_resumes(run, tmp_path):
    code, out, err = run(*SWEEP, "--sampler", "grid")
    assert code == 0
    assert "[4/4]" in err
    assert "graphsc train motifs:40 --method untrained --set encoder.width=" in out
    assert "graphsc results run out/best.yaml" in out
    assert (tmp_path / "out" / "trials.csv").read_text().count("done") == 4
    code, out, err = run(*SWEEP, "--sampler", "grid", "--json")
    assert "[" not in err
    assert set(json.loads(out)["settings"]) == {"encoder.width", "encoder.depth"}


def test_sweep_shows_no_accuracy_but_the_inner_one(run):
    _, out, err = run(*SWEEP, "--trials", 1)
    accuracies = [line for line in (out + err).splitlines() if "%" in line]
    assert accuracies
    assert all("inner accuracy" in line for line in accuracies)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--space", "none.yaml"), "there is no space of settings (none.yaml)"),
        (("--method", "untraind"), "did you mean 'untrained'"),
        (("--trials", 0), "1 or more"),
        (("--seeds", 0), "1 or more"),
        (("--storage", "somewhere"), "is no storage"),
        (("--set", "encoder.widht=3"), "did you mean 'encoder.width'"),
        (("--sampler", "best"), "sampler"),
    ],
)
def test_sweep_says_what_is_wrong_in_one_line_before_anything_runs(run, tmp_path, arguments, said):
    asked = {"--method": "untrained", "--space": "space.yaml", "--out": "out", arguments[0]: arguments[1]}
    code, _, err = run("sweep", "motifs:40", *(word for option in asked.items() for word in option))
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_sweep_of_which_nothing_finishes_ends_with_3(run, tmp_path):
    (tmp_path / "space.yaml").write_text("weak_rate, strong_rate: [[0.3, 0.2]]\n")
    code, _, err = run("sweep", "motifs:40", "--space", "space.yaml", "--trials", 1, "--out", "out")
    assert code == 3
    assert "none of 1 trials has finished" in err
    assert "must be below" in (tmp_path / "out" / "trials.csv").read_text()


@pytest.mark.parametrize(
    ("plan", "last"), [(PLAN, "[2/2] untrained"), (TRANSFER, "[2/2] none, frozen, on made, seed 0")]
)
def test_a_plan_of_either_kind_is_run_shown_and_not_run_twice(run, tmp_path, plan, last, request):
    if plan is TRANSFER:
        pytest.importorskip("rdkit")
        request.getfixturevalue("ring_molecules")
    (tmp_path / "plan.yaml").write_text(plan)
    _, out, _ = run("results", "run", "plan.yaml", "--results", "a", "--dry-run")
    assert len(out.splitlines()) == 3
    code, _, err = run("results", "run", "plan.yaml", "--results", "a", "--runs", "r", "--jobs", 1)
    assert code == 0, err
    assert last in err
    _, table, _ = run("results", "table", "plan.yaml", "--results", "a")
    assert "not run" not in table
    code, _, err = run("results", "run", "plan.yaml", "--results", "a", "--runs", "r")
    assert "2 stored, 0 to run" in err


def test_a_trial_that_cannot_run_ends_with_2_and_is_tried_again(run, tmp_path):
    # One class has fewer graphs than folds: it cannot be evaluated.
    (tmp_path / "plan.yaml").write_text(PLAN.replace("folds: 3", "folds: 39"))
    for _ in range(2):
        code, _, err = run("results", "run", "plan.yaml", "--jobs", 1)
        assert code == 2
        assert "0 stored, 2 to run" in err
        assert "2 of 2 trials failed" in err


def test_without_the_extra_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    code, _, err = run(*SWEEP)
    assert code == 2
    assert "pip install 'graphsc[sweep]'" in err
