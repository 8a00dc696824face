"""`graphsc train`, `embed`, `methods` and `info`."""

import csv
import json

import numpy as np
import pytest


@pytest.fixture
def trained(run, tmp_path):
    code, _, err = run(
        "train", "motifs:30", "--epochs", 1, "--set", "encoder.width=8", "--out", tmp_path / "r"
    )
    assert code == 0, err
    return tmp_path / "r"


def test_train_prints_one_line_per_epoch_and_the_folder(run, tmp_path):
    code, out, err = run("train", "motifs:30", "--epochs", 2, "--out", tmp_path / "r")
    assert code == 0
    assert [line for line in err.splitlines() if line.startswith("epoch ")][-1].startswith("epoch 2/2  loss ")
    assert f"run\t{tmp_path / 'r'}" in out


def test_the_same_command_again_says_that_it_is_finished(run, trained):
    code, _, err = run("train", "motifs:30", "--epochs", 1, "--set", "encoder.width=8", "--out", trained)
    assert code == 0
    assert "finished: 1 epochs" in err


@pytest.mark.parametrize(
    ("setting", "nearest"),
    [
        ("margn=1", "'margin'"),
        ("encoder.widht=3", "'encoder.width'"),
        ("training.epoch=3", "'training.epochs'"),
    ],
)
def test_a_mistyped_setting_suggests_the_nearest(run, tmp_path, setting, nearest):
    code, _, err = run("train", "motifs:30", "--set", setting, "--out", tmp_path / "r")
    assert code == 2
    assert f"did you mean {nearest}" in err
    assert not (tmp_path / "r").exists()


def test_settings_of_method_encoder_and_training_are_used(run, tmp_path):
    sets = [
        f"--set={pair}"
        for pair in ("margin=0.4", "encoder.depth=2", "learning_rate=1e-3", "training.clip=2.0")
    ]
    code, _, err = run("train", "motifs:30", "--epochs", 1, "--seed", 3, *sets, "--out", tmp_path / "r")
    assert code == 0, err
    from graphsc.core.config import read_config

    config = read_config(tmp_path / "r" / "config.yaml")
    assert config["settings"]["margin"] == 0.4
    assert config["encoder_settings"]["depth"] == 2
    assert config["training"]["learning_rate"] == 0.001
    assert config["training"]["clip"] == 2.0
    assert config["training"]["seed"] == 3


def test_epochs_are_ignored_with_a_note_by_methods_that_do_not_train(run, tmp_path):
    code, _, err = run("train", "motifs:30", "--method", "raw", "--epochs", 5, "--out", tmp_path / "r")
    assert code == 0
    assert "raw does not train; --epochs is ignored" in err


def test_divergence_exits_with_3(run, tmp_path):
    code, _, err = run(
        "train", "motifs:30", "--set", "learning_rate=1e30", "--set", "batch_size=8", "--out", tmp_path / "r"
    )
    assert code == 3
    assert err.splitlines()[-1].startswith("error: loss of graphsc is nan at epoch 1")


def test_embed_writes_three_formats_with_ids(run, trained, tmp_path):
    (tmp_path / "e.csv").write_text("graph_id,source,target\n=x,0,1\n=x,1,2\nb,0,1\n")
    expected = None
    for ending in ("npz", "csv", "parquet"):
        if ending == "parquet":
            pytest.importorskip("pyarrow")
        target = tmp_path / f"v.{ending}"
        code, _, err = run("embed", trained, tmp_path / "e.csv", "--out", target)
        assert code == 0, err
        if ending == "npz":
            with np.load(target, allow_pickle=False) as stored:
                expected, ids = stored["vectors"], stored["ids"].tolist()
            assert ids == ["=x", "b"]
        elif ending == "csv":
            rows = list(csv.reader(target.open()))
            assert [row[0] for row in rows] == ["id", "'=x", "b"]  # safe in a spreadsheet
            np.testing.assert_allclose(np.array([row[1:] for row in rows[1:]], float), expected, rtol=1e-6)
        else:
            import pyarrow.parquet

            table = pyarrow.parquet.read_table(target)
            assert table["id"].to_pylist() == ["=x", "b"]
            np.testing.assert_array_equal(table["v0"].to_numpy(), expected[:, 0])


def test_embed_refuses_another_suffix_before_any_work(run, trained, tmp_path):
    code, _, err = run("embed", trained, "nonexistent", "--out", tmp_path / "v.xlsx")
    assert code == 2
    assert "end the name in .npz, .csv or .parquet" in err


def test_embed_needs_a_folder_with_a_model(run, tmp_path):
    code, _, err = run("embed", tmp_path, "motifs:5", "--out", tmp_path / "v.csv")
    assert code == 2
    assert "model" in err


def test_methods_lists_every_method(run):
    code, out, _ = run("methods", "--json")
    assert code == 0
    names = {entry["name"] for entry in json.loads(out)}
    assert {
        "graphsc",
        "graphsc-mse",
        "graphsc-rd",
        "graphsc-nm",
        "graphsc-nb",
        "graphsc-rdt",
        "untrained",
        "raw",
    } <= names


def test_info_names_versions_devices_and_data(run):
    code, out, _ = run("info", "--json")
    info = json.loads(out)
    assert code == 0
    assert "cpu" in info["devices"]
    assert info["torch"]


def test_embed_takes_a_folder_or_a_pattern(run, trained, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("a", "b"):
        (parts / f"{name}.csv").write_text("graph_id,source,target\nx,1,2\ny,1,2\n")
    (parts / "bad.csv").write_text("graph_id,source,target\nx,1\n")
    code, out, err = run("embed", trained, parts, "--out", tmp_path / "out", "--format", "npz")
    assert code == 2
    assert "files written\t2" in out
    assert (
        f"{parts / 'bad.csv'}: failed: no row is well-formed; the first: 2 cells where the header has 3"
        in err
    )
    assert err.splitlines()[-1].startswith("error: 1 of 3 files failed, the first: no row is")
    assert sorted(path.name for path in (tmp_path / "out").glob("*.npz")) == ["a.npz", "b.npz"]
    code, out, _ = run(
        "embed", trained, f"{parts}/[ab].csv", "--out", tmp_path / "out", "--format", "npz", "--json"
    )
    assert code == 0
    assert [(part["rows"], part["computed"]) for part in json.loads(out)] == [(2, False), (2, False)]


def test_embed_refuses_what_cannot_be_meant(run, trained, tmp_path):
    (tmp_path / "e.csv").write_text("graph_id,source,target\nx,1,2\n")
    for arguments, said in (
        ((f"{tmp_path}/*.csv", "--out", tmp_path / "v.csv"), "many files cannot be written to one"),
        ((tmp_path / "e.csv", "--out", tmp_path / "v.csv", "--format", "npz"), "--format is for many files"),
        ((f"{tmp_path}/*.smi", "--out", tmp_path / "out"), "there are no files to read here"),
        ((f"{tmp_path}/*.csv", "--out", tmp_path), "in the folder of the targets"),
        ((tmp_path / "e.csv", "--out", tmp_path / "v.csv", "--jobs", "0"), "--jobs"),
    ):
        code, _, err = run("embed", trained, *arguments)
        assert (code, len(err.splitlines())) == (2, 1)
        assert said in err
    assert not (tmp_path / "v.csv").exists()
