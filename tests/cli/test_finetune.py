"""`graphsc finetune`, `predict` and `yardstick`, from a table with labels to predictions and a report."""

import csv
import json

import pytest

pytest.importorskip("rdkit")

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "C1CCNCC1"]
CHAINS = ["", "C", "CC", "CCC", "CCO", "CCN"]


@pytest.fixture
def tested(tmp_path):
    lines = ["compound,structure,active"]
    for number, smiles in enumerate(chain + ring for chain in CHAINS for ring in RINGS):
        lines.append(f"K-{number},{smiles},{'yes' if 'n' in smiles.lower() else 'no'}")
    lines.append("K-99,not a molecule,yes")
    (tmp_path / "tested.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.csv").write_text("id,structure\n1,CCc1ccncc1\n2,broken\n3,=1+1\n4,CCCO\n")
    return tmp_path / "tested.csv"


SMALL = ["--set", "encoder.width=8", "--set", "encoder.depth=2", "--epochs", "2", "--seeds", "2", "--split",
         "random", "--device", "cpu"]  # fmt: skip


def test_from_a_table_to_predictions_and_a_report(run, tested, tmp_path):
    folder = tmp_path / "run"
    code, out, err = run("finetune", "none", tested, "--labels", "active", "--out", folder, *SMALL)
    assert code == 0, err
    lines = [line.split("\t") for line in out.splitlines()]
    counts = {row[1]: [int(cell) for cell in row[2:]] for row in lines if row[0] == "active"}
    assert {part: sum(cells) for part, cells in counts.items()} == {"train": 24, "valid": 3, "test": 3}
    assert {row[1] for row in lines if len(row) > 6} == {"rule", "last", "best"}
    assert (folder / "rejected.csv").read_text().splitlines()[1].startswith("30,32,not a molecule,")
    code, out, _ = run("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "answers.csv")
    assert code == 0
    assert "without a molecule\t2" in out
    with open(tmp_path / "answers.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert [row["structure"] for row in rows] == ["CCc1ccncc1", "broken", "'=1+1", "CCCO"]
    assert 0 < float(rows[0]["active_probability"]) < 1
    assert rows[1]["reason"]
    code, out, err = run("predict", folder, f"{tmp_path}/n*.csv", "--out", tmp_path / "out", "--jobs", "2")
    assert code == 0, err
    assert "files written\t1" in out
    assert (tmp_path / "out" / "new.csv").read_bytes() == (tmp_path / "answers.csv").read_bytes()
    code, out, _ = run("report", folder, "--out", tmp_path / "report.html")
    assert code == 0
    page = (tmp_path / "report.html").read_text()
    for heading in ("Scores on test molecules", "Scores during training", "Most uncertain molecules"):
        assert heading in page
    code, _, err = run("finetune", "none", tested, "--labels", "active", "--out", folder, *SMALL)
    assert code == 0
    assert "seed 0 is finished" in err
    code, _, err = run("evaluate", folder)
    assert code == 2
    assert "see graphsc report" in err


def test_finetune_prints_json_for_several_label_fractions(run, tested, tmp_path):
    code, out, err = run(
        "finetune", "none", tested, "--labels", "active", "--out", tmp_path / "run", *SMALL,
        "--label-fraction", "0.25,1", "--json",
    )  # fmt: skip
    assert code == 0, err
    printed = json.loads(out)
    assert set(printed["results"]) == {"0.25", "1"}
    assert printed["kind"] == "classification"
    assert {one["part"]: one["positives"] + one["negatives"] for one in printed["balance"]} == {
        "train": 24, "valid": 3, "test": 3,
    }  # fmt: skip
    assert "6 training molecules" in err
    assert (tmp_path / "run" / "labels-0.25" / "seed-0" / "result.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "activ"], "no column 'activ'"),
        ([], "which columns are to be predicted?"),
        (["--labels", "active", "--smiles-column", "smiles"], "columns: compound, structure, active"),
        (["--labels", "active", "--lr", "fast"], "--lr takes numbers"),
        (["--labels", "active", "--set", "width=8"], "encoder.KEY=VALUE"),
        (["--labels", "active", "--epochs", "0"], "at least 1 epoch"),
        (["--labels", "active", "--label-fraction", "2"], "label fraction"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(run, tested, tmp_path, arguments, message):
    code, _, err = run("finetune", "none", tested, "--out", tmp_path / "run", *arguments, "--device", "cpu")
    assert code == 2
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("verb", ["yardstick", "baseline"])
def test_baselines_print_one_line_per_model_and_metric(run, tested, monkeypatch, verb):
    from graphsc.finetuning import baselines

    monkeypatch.setattr(baselines, "TREES", 5)
    code, out, _ = run(verb, tested, "--labels", "active", "--split", "random")
    assert code == 0
    assert [line.split("\t")[0] for line in out.splitlines()] == [
        "way", "ecfp-forest", "ecfp-forest", "ecfp-linear", "ecfp-linear",
    ]  # fmt: skip


def test_fine_tuned_and_unsupervised_runs_do_not_share_a_report(run, tested, tmp_path):
    run("finetune", "none", tested, "--labels", "active", "--out", tmp_path / "a", *SMALL)
    run("train", "motifs:20", "--epochs", "1", "--out", tmp_path / "b", "--device", "cpu")
    code, _, err = run("report", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "r.html")
    assert code == 2
    assert "evaluated by different rules" in err
