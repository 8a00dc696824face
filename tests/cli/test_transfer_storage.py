"""Transfer on a storage, through the command line."""

import pytest

pytest.importorskip("rdkit")
pytest.importorskip("optuna")

PLAN = """
transfer:
  pretraining: {data: moses, molecules: 200000}
  tables:
    frozen:
      title: Frozen
      trials:
        - {data: [made.csv], way: ecfp-linear, label: ECFP}
        - {data: [made.csv], way: frozen, methods: [none]}
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    smiles = ["C" * n + ring for ring in ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1") for n in range(8)]
    lines = [f"{text},{int('n' in text.lower())}" for text in smiles]
    (tmp_path / "made.csv").write_text("\n".join(["smiles,y", *lines]) + "\n")
    (tmp_path / "plan.yaml").write_text(PLAN)


def test_a_transfer_plan_is_queued_worked_on_and_fetched(run, plan):
    words = ("results", "run", "plan.yaml", "--storage", "s.journal")
    code, _, err = run(*words, "--results", "a", "--runs", "r")
    assert code == 0
    assert "others can join: graphsc worker --storage s.journal --study plan --runs r --results a" in err
    assert "[2/2] none, frozen, on made, seed 0" in err
    code, out, _ = run("results", "fetch", "--storage", "s.journal", "--results", "b")
    assert code == 0
    assert "plan: 2 new results in b" in out
    _, table, _ = run("results", "table", "plan.yaml", "--results", "b")
    assert "have not run" not in table
    code, _, err = run("worker", "--storage", "s.journal", "--results", "b")
    assert code == 0
    assert "2 cells, 0 to run" in err


def test_weights_elsewhere_are_refused(run, plan):
    code, _, err = run("results", "run", "plan.yaml", "--storage", "s.journal", "--weights", "w")
    assert code == 2
    assert "RUNS/pretrain" in err
