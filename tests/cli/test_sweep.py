"""sweep, worker and results on a storage, through the command line."""

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


def test_sweep_prints_the_best_and_how_to_use_it_and_others_can_join(run, tmp_path):
    code, out, err = run(*SWEEP, "--sampler", "grid")
    assert code == 0
    assert "others can join: graphsc worker --storage out/sweep.journal --study motifs:40-untrained" in err
    assert "[4/4]" in err
    assert "graphsc train motifs:40 --method untrained --set encoder.width=" in out
    assert "graphsc results run out/best.yaml" in out
    assert (tmp_path / "out" / "trials.csv").read_text().count("done") == 4
    code, out, err = run(*SWEEP, "--sampler", "grid", "--json")
    assert "4 cells, 0 to run" in err
    assert set(json.loads(out)["settings"]) == {"encoder.width", "encoder.depth"}
    code, _, err = run("worker", "--storage", "out/sweep.journal")
    assert code == 0
    assert "0 by this worker" in err


def test_sweep_shows_no_accuracy_but_the_inner_one(run):
    _, out, err = run(*SWEEP, "--trials", 1)
    accuracies = [line for line in (out + err).splitlines() if "%" in line]
    assert accuracies
    assert all("inner accuracy" in line for line in accuracies)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--space", "none.yaml"), "cannot read config"),
        (("--method", "untraind"), "did you mean 'untrained'"),
        (("--trials", 0), "1 or more"),
        (("--seeds", 0), "1 or more"),
        (("--storage", "mysql://x"), "unknown kind of storage"),
        (("--set", "encoder.widht=3"), "did you mean 'width'"),
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
def test_results_on_a_storage_are_made_by_any_worker_and_fetched_by_any_machine(
    run, tmp_path, plan, last, request
):
    if plan is TRANSFER:
        pytest.importorskip("rdkit")
        request.getfixturevalue("ring_molecules")
    (tmp_path / "plan.yaml").write_text(plan)
    code, _, err = run(
        "results", "run", "plan.yaml", "--storage", "s.journal", "--results", "a", "--runs", "r"
    )
    assert code == 0
    assert "others can join: graphsc worker --storage s.journal --study plan --runs r --results a" in err
    assert last in err
    code, out, _ = run("results", "fetch", "--storage", "s.journal", "--results", "b")
    assert code == 0
    assert "plan: 2 new results in b" in out
    _, table, _ = run("results", "table", "plan.yaml", "--results", "b")
    assert last.split()[1].rstrip(",") in table
    assert "not run" not in table
    code, _, err = run(
        "results", "run", "plan.yaml", "--storage", "s.journal", "--results", "b", "--runs", "r"
    )
    assert "2 cells, 0 to run" in err


def test_weights_in_a_place_of_their_own_are_refused_on_a_storage(run, ring_molecules, tmp_path):
    (tmp_path / "plan.yaml").write_text(TRANSFER)
    code, _, err = run("results", "run", "plan.yaml", "--storage", "s.journal", "--weights", "w")
    assert code == 2
    assert "RUNS/pretrain" in err


def test_a_failed_cell_ends_with_3_and_can_be_queued_again(run, tmp_path):
    # One class has fewer graphs than folds: whoever runs it, it cannot be judged.
    (tmp_path / "plan.yaml").write_text(PLAN.replace("folds: 3", "folds: 39"))
    code, _, err = run("results", "run", "plan.yaml", "--storage", "s.journal")
    assert code == 3
    assert "2 of 2 trials failed" in err
    assert "--retry-failed" in err
    _, _, err = run("results", "run", "plan.yaml", "--storage", "s.journal")
    assert "0 to run" in err
    _, _, err = run("results", "run", "plan.yaml", "--storage", "s.journal", "--retry-failed")
    assert "2 to run" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("worker",), "--storage"),
        (("worker", "--storage", "x.journal"), "no such storage"),
        (("worker", "--storage", "x.journal", "--max-trials", 0), "1 or more"),
        (("worker", "--storage", "postgresql://me:secret@127.0.0.1:1/x"), "does not answer"),
        (("results", "fetch", "--storage", "x.journal"), "no such storage"),
        (("results", "run", "plan.yaml", "--storage", "s.journal", "--jobs", 2), "one worker"),
        (("results", "run", "plan.yaml", "--retry-failed"), "go with --storage"),
    ],
)
def test_a_worker_that_cannot_work_says_why_in_one_line(run, arguments, said):
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert "secret" not in err


def test_a_storage_without_a_study_is_nothing_to_work_on(run, tmp_path):
    from graphsc.experiments.storage import open_storage

    open_storage("s.journal", create=True)
    code, _, err = run("worker", "--storage", "s.journal")
    assert code == 2
    assert "no study to work on" in err


def test_without_the_extra_it_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    code, _, err = run("worker", "--storage", "s.journal")
    assert code == 2
    assert "pip install 'graphsc[sweep]'" in err
