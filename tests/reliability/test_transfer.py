"""Pre-training, fine-tuning and predictions as a person meets them: hostile tables, models of other kinds."""

import csv

import pytest
from hurt import error_of, newer

pytest.importorskip("rdkit")

from graphsc.core.run_folder import RunFolder

RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "c1ccsc1", "C1CCNCC1", "C1CCOC1", "C1CC1"]
SMILES = [chain + ring for ring in RINGS for chain in ("", "C", "CC", "CCO")]
SMALL = ("--set", "encoder.width=4", "--set", "encoder.depth=1", "--device", "cpu")
TUNE = ("--labels", "nitrogen", "--split", "random", "--seeds", 1, "--epochs", 1)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A table, a pre-trained encoder and a fine-tuned model, to be read and not to be written to."""
    from graphsc.cli.main import run

    folder = tmp_path_factory.mktemp("molecules")
    lines = [f"{smiles},{int('n' in smiles.lower())}" for smiles in SMILES]
    (folder / "m.csv").write_text("\n".join(["smiles,nitrogen", *lines]) + "\n")
    for command in (
        ("pretrain", folder / "m.csv", "--epochs", 1, "--held-out", 3, *SMALL, "--out", folder / "run"),
        ("finetune", folder / "run", folder / "m.csv", *TUNE, "--device", "cpu", "--out", folder / "tuned"),
    ):
        assert run([str(argument) for argument in command]) == 0
    return folder


HOSTILE = [
    "CCO", "nonsense", "", '"=HYPERLINK(""http://x"")"', "C" * 1_000_000, "C" * 5_000, "C\0C", "CCN", "-1+1",
    "@x",
]  # fmt: skip


def test_every_row_of_a_hostile_table_is_predicted_or_marked(run, home, tmp_path):
    table = tmp_path / "h.csv"
    table.write_text("\ufeffsmiles,note\n" + "".join(f"{one},+1+1\n" for one in HOSTILE), encoding="utf-8")
    code, _, err = run("predict", home / "tuned", table, "--out", tmp_path / "p.csv")
    assert code == 0, err
    with open(tmp_path / "p.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(HOSTILE)
    assert [number for number, row in enumerate(rows) if row["nitrogen_probability"]] == [0, 7]
    assert [number for number, row in enumerate(rows) if not row["reason"]] == [0, 7]
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


def test_hostile_rows_are_left_out_of_fine_tuning_and_listed(run, home, tmp_path):
    table = tmp_path / "h.csv"
    table.write_text((home / "m.csv").read_text() + "".join(f"{one},1\n" for one in HOSTILE))
    arguments = ("finetune", "none", table, *TUNE, *SMALL, "--out", tmp_path / "t")
    code, _, err = run(*arguments)
    assert code == 0, err
    with open(tmp_path / "t" / "rejected.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    assert [int(row["row"]) - len(SMILES) for row in listed] == [1, 2, 3, 4, 5, 6, 8, 9]
    assert all(row["reason"] for row in listed)
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in listed for cell in row.values())


@pytest.mark.parametrize(
    ("header", "said"),
    [("smiles,smiles", "column 'smiles' appears twice"), ("drug,nitrogen", "columns: drug, nitrogen")],
)
@pytest.mark.parametrize("verb", ["predict", "finetune"])
def test_wrong_header_is_named_before_anything_is_made(run, home, tmp_path, verb, header, said):
    (tmp_path / "w.csv").write_text(f"{header}\nCCO,1\nCC,0\n")
    given = {
        "predict": ("predict", home / "tuned", tmp_path / "w.csv", "--out", tmp_path / "p.csv"),
        "finetune": ("finetune", "none", tmp_path / "w.csv", *TUNE, *SMALL, "--out", tmp_path / "t"),
    }
    assert said in error_of(run(*given[verb]))
    assert [path.name for path in tmp_path.iterdir()] == ["w.csv"]


def test_a_newer_model_is_refused_by_predict_and_finetune(run, home, tmp_path):
    tuned = newer(home / "tuned" / "seed-0" / "best.safetensors", tmp_path / "best.safetensors")
    trained = newer(home / "run" / "model.safetensors", tmp_path / "model.safetensors")
    for command in (
        ("predict", tuned, home / "m.csv", "--out", tmp_path / "p.csv"),
        ("finetune", trained, home / "m.csv", *TUNE, "--device", "cpu", "--out", tmp_path / "t"),
    ):
        said = error_of(run(*command))
        assert "has format version 9, this package reads up to 1" in said
        assert said.endswith("; upgrade graphsc")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best.safetensors", "model.safetensors"]


@pytest.mark.parametrize("cut", [0, 100, -3])
def test_a_damaged_model_is_refused_by_predict_and_finetune(run, home, tmp_path, cut):
    for name, path in (
        ("b", home / "tuned" / "seed-0" / "best.safetensors"),
        ("m", home / "run" / "model.safetensors"),
    ):
        (tmp_path / name).write_bytes(path.read_bytes()[:cut])
    for command in (
        ("predict", tmp_path / "b", home / "m.csv", "--out", tmp_path / "p.csv"),
        ("finetune", tmp_path / "m", home / "m.csv", *TUNE, "--device", "cpu", "--out", tmp_path / "t"),
    ):
        assert "file is damaged" in error_of(run(*command))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "m"]


def test_a_model_of_another_verb_is_told_from_the_right_one(run, home, tmp_path):
    trained, tuned = home / "run" / "model.safetensors", home / "tuned" / "seed-0" / "best.safetensors"
    said = error_of(run("predict", trained, home / "m.csv", "--out", tmp_path / "p.csv"))
    assert "not a GraphSC predictor file but a model file" in said
    assert list(tmp_path.iterdir()) == []
    # A fine-tuned encoder can be fine-tuned again, and the run says so.
    assert run("finetune", tuned, home / "m.csv", *TUNE, "--out", tmp_path / "t")[0] == 0
    assert RunFolder(tmp_path / "t").load_config()["method"].endswith(", fine-tuned")


@pytest.mark.parametrize(
    "arguments",
    [
        ("pretrain", "{home}/m.csv", "--epochs", "1", *SMALL, "--out", "{disk}/r"),
        ("finetune", "{home}/run", "{home}/m.csv", *TUNE, "--device", "cpu", "--out", "{disk}/t"),
        ("predict", "{home}/tuned", "{home}/m.csv", "--out", "{disk}/p.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_read_only_disk_is_one_line_before_any_work(run, home, mount, arguments):
    disk = mount("size=1m")
    mount.again("ro", disk)
    outcome = run(*(str(one).format(home=home, disk=disk) for one in arguments))
    assert "Read-only file system" in error_of(outcome)
    assert "epoch 1" not in outcome[2]


def test_a_full_disk_in_the_middle_of_a_prediction_keeps_what_is_done(home, mount, tmp_path, monkeypatch):
    from graphsc.core.errors import CannotWriteError
    from graphsc.finetuning import predict as module

    table = tmp_path / "m.csv"
    table.write_text("smiles\n" + "".join(f"{smiles}\n" for smiles in SMILES * 20))
    disk = mount("size=32k")
    with pytest.raises(CannotWriteError, match="No space left"):
        module.predict_table(home / "tuned", table, disk / "p.csv", chunk=40)
    assert not (disk / "p.csv").exists()
    mount.again("size=4m", disk)
    asked, work = [], module.predict_rows

    def counted(rows, *rest):
        asked.append(rows[0].number)
        return work(rows, *rest)

    monkeypatch.setattr(module, "predict_rows", counted)
    module.predict_table(home / "tuned", table, disk / "p.csv", chunk=40)
    assert asked
    assert asked == list(range(asked[0], len(SMILES) * 20, 40))
    assert asked[0] > 0
    module.predict_table(home / "tuned", table, tmp_path / "whole.csv", chunk=40)
    assert (disk / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert [path.name for path in disk.iterdir()] == ["p.csv"]
