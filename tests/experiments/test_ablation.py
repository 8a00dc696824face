"""An ablation runs what is missing, for equal processor time, and its table has means over seeds."""

import json

import pytest

from graphsc.core.errors import DamagedFileError
from graphsc.experiments import ablation
from graphsc.experiments.ablation import AblationPlan, Trial, main, read_trials, run_plan, table_of

pytest.importorskip("rdkit")
SMILES = [
    "C" * i + middle + "C" * j for i in range(1, 9) for middle in ("N", "O", "c1ccccc1") for j in range(8)
]
SMALL = {"encoder.depth": 2, "encoder.width": 8, "neck": 8, "environment_bits": 16}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    (tmp_path / "all.smi").write_text("\n".join(SMILES))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ablation, "MEASURED", 3)
    monkeypatch.setattr(ablation, "score_vectors", lambda name, model: (0.25 if model is None else 0.75, 1))
    variants = {"none": {**SMALL, "train": False}, "all": {**SMALL, "lambda_descriptors": 1.0}}
    return AblationPlan(f"{tmp_path}/all.smi:1", 110, 0.3, (0, 1), ("BBBP", "BACE"), variants, batch_size=16)


def test_what_a_file_has_is_not_run_again(plan, tmp_path):
    store = tmp_path / "t.jsonl"
    trials = run_plan(plan, store)
    names = [(trial.variant, trial.seed) for trial in trials]
    assert names == [("ECFP", 0), ("none", 0), ("all", 0), ("none", 1), ("all", 1)]
    assert read_trials(store) == trials
    trained = [trial for trial in trials if trial.variant == "all"]
    assert trained[0].seen == trained[1].seen > 0
    assert trained[0].seen % 16 == 0
    assert all(trial.seen == trial.seconds == 0 for trial in trials if trial.variant == "none")
    kept = store.read_text().splitlines()[:-1]
    store.write_text("\n".join(kept) + "\n")
    assert next(line for line in run_plan(plan, store) if line not in trials[:-1]).variant == "all"
    assert store.read_text().splitlines()[:-1] == kept


def test_the_table_has_means_and_the_deviation_of_the_averages(plan):
    trials = [
        Trial("all", 0, 480, 1.0, {}, {"BBBP": 0.9, "BACE": 0.7}),
        Trial("all", 1, 480, 1.0, {}, {"BBBP": 0.8, "BACE": 0.6}),
        Trial("ECFP", 0, 0, 0.0, {}, {"BBBP": 0.5, "BACE": 0.5}),
    ]
    rows = table_of(plan, trials).rows
    # Averages 80 and 70: mean 75, deviation 10 / sqrt(2).
    assert rows[0] == ("all", "480", "2", "85.0", "65.0", "75.00 ± 7.07")
    assert rows[1] == ("ECFP", "-", "-", "50.0", "50.0", "50.00")


def test_plans_are_files_and_damaged_trials_are_refused(plan, tmp_path, capsys):
    text = {
        "source": plan.source, "pool": 110, "seconds": 0.3, "seeds": [0], "sets": ["BBBP"],
        "variants": {"none": {**SMALL, "train": False}}, "batch_size": 16,
    }  # fmt: skip
    (tmp_path / "plan.yaml").write_text(json.dumps(text))
    main(tmp_path / "plan.yaml", tmp_path / "t.jsonl")
    assert "| none | 0 | 1 | 75.0 | 75.00 |" in capsys.readouterr().out
    (tmp_path / "t.jsonl").write_text("{}\n")
    with pytest.raises(DamagedFileError, match="no trials"):
        read_trials(tmp_path / "t.jsonl")
