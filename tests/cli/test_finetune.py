"""`graphsc finetune`, `predict` and `yardstick`, from a table with labels to predictions and a report."""

import csv
import json
import re

import pytest

pytest.importorskip("rdkit")

from graphsc.core.run_folder import RunFolder

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "C1CCNCC1"]
CHAINS = ["", "C", "CC", "CCC", "CCO", "CCN"]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    from graphsc.finetuning import baselines, classical

    monkeypatch.setattr(baselines, "TREES", 5)
    monkeypatch.setattr(classical, "MOST_TREES", 5)
    monkeypatch.setattr(classical, "FEWEST_TREES", 5)


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
    assert [row[1] for row in lines if row[0] == "1" and len(row) == 4] == [
        "this model", "a forest on fingerprints", "a linear model on fingerprints",
        "boosting on fingerprints",
        "a forest on descriptors", "a linear model on descriptors", "boosting on descriptors", "a constant",
    ]  # fmt: skip
    parts = {row[1]: float(row[2]) for row in lines if row[0] == "1" and len(row) == 5}
    assert set(parts) == {
        "fine-tuned encoder", "linear model on fingerprints and descriptors", "random forest on all features",
        "gradient boosting on all features",
    }  # fmt: skip
    assert sum(parts.values()) == pytest.approx(1, abs=0.03)
    facts = {row[0]: row[1] for row in lines if len(row) == 2}
    assert (facts["read"], facts["used"], facts["rejected"]) == ("31", "30", "1")
    assert facts["reasons"] == "not a SMILES string (1)"
    assert facts["rejected rows"] == str(folder / "rejected.csv")
    assert "2 seeds of at most 2 epochs, about" in err
    assert "seed 1 of 2, epoch 1/2  loss" in err
    assert "seed 2 of 2, epoch 2/2  loss" in err
    assert re.search(r"seed 1 of 2, epoch 1/2 .* at most \d+ seconds left", err)
    assert (folder / "rejected.csv").read_text().splitlines()[1].startswith("30,32,not a molecule,")
    code, out, _ = run("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "answers.csv")
    assert code == 0
    assert "read\t4\nused\t2\nrejected\t2\nreasons\tnot a SMILES string (2)" in out
    assert "it cannot be said whether a larger spread over parts goes with a larger error" in out
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
    for heading in (
        "Single models by seed", "Scores during training", "Largest errors", "Rejected rows",
        "Parts of the model",
        "Reliability", "Applicability domain", "Test molecules with the least spread",
        "Test molecules with the most spread",
    ):  # fmt: skip
        assert heading in page
    (tmp_path / "named.csv").write_text("id,name,structure\n1,Q-1,CCc1ccncc1\n")
    for options, identity in (((), "1"), (("--id-column", "name"), "Q-1")):
        code, _, err = run(
            "predict", folder, tmp_path / "named.csv", "--out", tmp_path / "a.csv", "--page",
            tmp_path / "p.html", *options,
        )  # fmt: skip
        assert code == 0, err
        page = (tmp_path / "p.html").read_text()
        assert "Rows with the least spread" in page
        assert f"<dd>{identity}</dd>" in page
    code, _, err = run(
        "predict", folder, tmp_path / "new.csv", "--out", tmp_path / "a.csv", "--page", tmp_path / "p.pdf"
    )
    assert code == 2
    assert "end the name in .html" in err
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
    assert printed["delivered"]["1"]["scores"].keys() == {
        "model", "constant", "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest", "rdkit-linear",
        "rdkit-boosting",
    }  # fmt: skip
    assert printed["delivered"]["1"]["parts"].keys() == {"encoder", "linear", "forest", "boosting"}
    # The folder of all fractions is one that report and predict read.
    code, out, err = run("predict", tmp_path / "run", tmp_path / "new.csv", "--out", tmp_path / "a.csv")
    assert code == 0, err
    run("predict", tmp_path / "run" / "labels-1", tmp_path / "new.csv", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    code, _, err = run("report", tmp_path / "run", "--out", tmp_path / "curve.html")
    assert code == 0, err
    assert "Learning curve" in (tmp_path / "curve.html").read_text()


def test_ids_are_in_predictions_and_report_and_classes_in_what_is_predicted(run, tmp_path):
    smiles = [chain + ring for chain in CHAINS for ring in RINGS]
    lines = [f"K-{n},{text},{('low', 'medium', 'high')[n % 3]}" for n, text in enumerate(smiles)]
    (tmp_path / "l.csv").write_text("\n".join(["compound,smiles,level", *lines]) + "\n")
    (tmp_path / "new.csv").write_text("smiles\nCCc1ccncc1\nbroken\n")
    folder = tmp_path / "run"
    code, _, err = run(
        "finetune", "none", tmp_path / "l.csv", "--labels", "level", "--id-column", "compound",
        "--out", folder, "--no-baselines", *SMALL,
    )  # fmt: skip
    assert code == 0, err
    with open(folder / "predictions.csv") as file:
        assert all(row["id"] == f"K-{row['row']}" for row in csv.DictReader(file))
    for suffix in ("csv", "parquet"):
        code, _, err = run("predict", folder, tmp_path / "new.csv", "--out", tmp_path / f"p.{suffix}")
        assert code == 0, err
    with open(tmp_path / "p.csv") as file:
        good, bad = csv.DictReader(file)
    probability = {name: float(good[f"level={name}_probability"]) for name in ("low", "medium", "high")}
    assert good["level_class"] == max(probability, key=probability.get)
    assert (bad["level_class"], bad["reason"]) == ("", "not a SMILES string")
    parquet = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "p.parquet").to_pydict()
    assert parquet["level_class"] == [good["level_class"], None]
    code, _, _ = run("report", folder, "--out", tmp_path / "report.html")
    assert re.search(r"<dt>id</dt><dd>K-\d+</dd>", (tmp_path / "report.html").read_text())


def test_the_verb_stops_early_by_default_and_the_literature_s_settings_do_not(run, tested, tmp_path):
    from graphsc.finetuning.finetune import FineTuneSettings

    assert FineTuneSettings().patience is None
    small = [*SMALL[:-7], "1", "--seeds", "1", "--split", "random", "--device", "cpu", "--no-baselines"]
    small += ["--model", "encoder", "--with", "none"]
    for options, expected in (([], 10), (["--patience", "0"], None), (["--grid"], None)):
        folder = tmp_path / f"run{len(options)}{options}"
        code, _, err = run(
            "finetune", "none", tested, "--labels", "active", "--out", folder, *small, *options
        )
        assert code == 0, err
        assert RunFolder(folder).load_config()["training"]["patience"] == expected


def test_censored_labels_are_noted_and_kept_on_request(run, tmp_path):
    smiles = [chain + ring for chain in CHAINS for ring in RINGS]
    lines = [f"{text},{'>' if n < 4 else ''}{n}.5" for n, text in enumerate(smiles)]
    (tmp_path / "c.csv").write_text("\n".join(["smiles,pic50", *lines]) + "\n")
    for options, values in ((["--censored", "drop"], 26), (["--censored", "keep"], 30)):
        folder = tmp_path / options[1]
        code, out, err = run(
            "finetune", "none", tmp_path / "c.csv", "--out", folder, "--no-baselines", *SMALL, *options
        )
        assert code == 0, err
        assert "note: 4 labels of 'pic50' are censored, such as '>0.5'" in err
        rows = [line.split("\t") for line in out.splitlines() if line.startswith("pic50\t")]
        assert sum(int(row[2]) for row in rows) == values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--labels", "activ"], "no column 'activ'"),
        ([], "which columns are to be predicted?"),
        (["--labels", "active", "--smiles-column", "smiles"], "columns: compound, structure, active"),
        (["--labels", "active", "--lr", "fast"], "--lr takes numbers"),
        (["--labels", "active", "--set", "width=8"], "encoder.KEY=VALUE"),
        (["--labels", "active", "--epochs", "0"], "at least 1 epoch"),
        (["--labels", "active", "--with", "ecpf"], "--with takes ecfp"),
        (["--labels", "active", "--model", "vectors"], "no pre-trained vectors"),
        (["--labels", "active", "--jobs", "0"], "--jobs is 0"),
        (["--labels", "active", "--label-fraction", "2"], "label fraction"),
    ],
)
def test_wrong_options_are_one_line_and_exit_2(run, tested, tmp_path, arguments, message):
    code, _, err = run("finetune", "none", tested, "--out", tmp_path / "run", *arguments, "--device", "cpu")
    assert code == 2
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("verb", ["yardstick", "baseline"])
def test_baselines_print_one_line_per_model_and_metric(run, tested, verb):
    code, out, _ = run(verb, tested, "--labels", "active", "--split", "random")
    assert code == 0
    ways = [line.split("\t")[0] for line in out.splitlines()]
    fitted = [
        "constant", "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest", "rdkit-linear",
        "rdkit-boosting",
    ]  # fmt: skip
    assert ways == ["way", *(way for way in fitted for _ in range(2))]  # two metrics each


def test_fine_tuned_and_unsupervised_runs_do_not_share_a_report(run, tested, tmp_path):
    run("finetune", "none", tested, "--labels", "active", "--out", tmp_path / "a", *SMALL)
    run("train", "motifs:20", "--epochs", "1", "--out", tmp_path / "b", "--device", "cpu")
    code, _, err = run("report", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "r.html")
    assert code == 2
    assert "evaluated by different rules" in err


def test_semicolons_decimal_commas_and_unusual_columns_are_read(run, tmp_path):
    smiles = [chain + ring for chain in CHAINS for ring in RINGS]
    lines = [f"K-{n};{text};{n},25" for n, text in enumerate(smiles)]
    (tmp_path / "s.csv").write_text("\n".join(["name;structure;pic50", *lines]) + "\n")
    (tmp_path / "new.csv").write_text("name;structure\nA;CCO\nB;broken\n")
    code, _, err = run(
        "finetune", "none", tmp_path / "s.csv", "--labels", "pic50", "--separator", ";", "--decimal", ",",
        "--out", tmp_path / "run", "--no-baselines", *SMALL,
    )  # fmt: skip
    assert code == 0, err
    with open(tmp_path / "run" / "predictions.csv") as file:
        assert all(float(row["pic50"]) == int(row["row"]) + 0.25 for row in csv.DictReader(file))
    code, _, err = run("predict", tmp_path / "run", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert code == 0, err
    with open(tmp_path / "p.csv") as file:
        assert [(row["name"], bool(row["pic50_predicted"])) for row in csv.DictReader(file)] == [
            ("A", True), ("B", False),
        ]  # fmt: skip


def test_an_sdf_file_is_fine_tuned_on_and_predicted(run, tmp_path):
    from rdkit import Chem

    with Chem.SDWriter(str(tmp_path / "m.sdf")) as writer:
        for n, text in enumerate(chain + ring for chain in CHAINS for ring in RINGS):
            molecule = Chem.MolFromSmiles(text)
            molecule.SetProp("_Name", f"K-{n}")
            molecule.SetProp("pic50", f"{n}.5")
            writer.write(molecule)
    code, _, err = run(
        "finetune", "none", tmp_path / "m.sdf", "--out", tmp_path / "run", "--no-baselines", *SMALL
    )
    assert code == 0, err
    with open(tmp_path / "run" / "predictions.csv") as file:
        rows = list(csv.DictReader(file))
    assert all((row["id"], float(row["pic50"])) == (f"K-{row['row']}", int(row["row"]) + 0.5) for row in rows)
    code, _, err = run("predict", tmp_path / "run", tmp_path / "m.sdf", "--out", tmp_path / "p.csv")
    assert code == 0, err
    with open(tmp_path / "p.csv") as file:
        assert sum(bool(row["pic50_predicted"]) for row in csv.DictReader(file)) == 30


def test_a_forest_alone_is_fitted_predicted_and_reported_without_an_encoder(run, tested, tmp_path):
    folder = tmp_path / "run"
    code, out, err = run(
        "finetune", "none", tested, "--labels", "active", "--out", folder, "--model", "forest", "--split",
        "random", "--class-weight", "balanced", "--jobs", "1",
    )  # fmt: skip
    assert code == 0, err
    assert "this model" in out
    code, _, err = run("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "a.csv")
    assert code == 0, err
    code, _, err = run("report", folder, "--out", tmp_path / "report.html")
    assert code == 0, err
    assert "random forest on all features" in (tmp_path / "report.html").read_text()
    code, _, err = run("explore", folder, "--out", tmp_path / "map.html")
    assert code == 2
    assert err.startswith("error: ")
