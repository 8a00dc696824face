"""`graphsc pretrain`, `pack`, `models` and `info MODEL`."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("rdkit")
SMILES = ["C" * length + tail for length in range(1, 15) for tail in ("", "O", "N", "c1ccccc1", "C(=O)O")]
SMALL = ("--set", "encoder.depth=2", "--set", "encoder.width=16", "--set", "batch_size=32")


@pytest.fixture
def pretrained(run, tmp_path):
    (tmp_path / "m.smi").write_text("\n".join(SMILES))
    code, out, err = run(
        "pretrain", tmp_path / "m.smi", "--molecules", 40, "--epochs", 1, *SMALL, "--out", tmp_path / "r"
    )
    assert code == 0, err
    return tmp_path / "r", out, err


def test_pretrain_prints_the_model_card_and_the_loss(pretrained):
    _, out, err = pretrained
    facts = dict(line.split("\t") for line in out.splitlines())
    assert facts["method"] == "graphsc, preset molecules"
    assert facts["data"] == "40 of 70 molecules of m"
    assert facts["held out"] == "7 others"
    assert facts["molecules seen"] == "40 in 1 epochs, 2 steps"
    assert facts["passes per step"].startswith("3 ")
    assert "chance 0.5000" in facts["weak view nearer than strong"]
    assert "seconds" in facts["training time"]
    assert "epoch 1/1  loss " in err


def test_pretrain_prints_json_and_resumes(run, pretrained):
    folder, _, _ = pretrained
    arguments = (folder.parent / "m.smi", "--molecules", 40, *SMALL, "--out", folder, "--json", "--full")
    code, out, err = run("pretrain", *arguments, "--epochs", 2)
    assert code == 0
    assert "resuming at epoch 2" in err
    card = json.loads(out)
    assert (card["seen"], card["graphs"], len(card["metrics"])) == (80, 40, 2)
    code, _, err = run("pretrain", *arguments, "--epochs", 2)
    assert code == 0
    assert "finished: 2 epochs" in err


def test_pack_models_info_and_embed_by_name(run, pretrained, tmp_path, monkeypatch):
    folder, _, _ = pretrained
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    code, out, err = run("pack", folder, "--out", tmp_path / "models" / "tiny.safetensors")
    assert code == 0, err
    assert "model\ttiny" in out
    code, out, _ = run("models", "--json")
    listed = {row["name"]: row for row in json.loads(out)}
    assert (listed["tiny"]["graphs seen"], listed["tiny"]["dimensions"]) == (40, 16)
    code, out, _ = run("info", "tiny", "--json")
    assert code == 0
    assert json.loads(out)["graphs"] == 40
    code, out, _ = run("info", folder)
    assert "40 of 70 molecules" in out
    assert "tiny" in json.loads(run("info", "--json")[1])["models"]
    (tmp_path / "mols.csv").write_text("name,smiles\na,CCO\nb,bad\nc,c1ccccc1\n")
    code, _, err = run("embed", "tiny", tmp_path / "mols.csv", "--out", tmp_path / "e.csv")
    assert code == 0, err
    rows = list(csv.reader((tmp_path / "e.csv").open()))
    assert len(rows) == 4
    assert len(rows[0]) == 1 + 16 + 1
    assert np.isfinite(np.array(rows[1][1:17], float)).all()
    assert rows[2][-1] != ""


def test_an_unknown_model_name_lists_the_valid_ones(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_MODELS", str(tmp_path))
    code, _, err = run("embed", "graphsc-mosse", "motifs:3", "--out", tmp_path / "v.csv")
    assert code == 2
    assert "model called 'graphsc-mosse'" in err
    assert "valid:" in err


def test_a_model_without_a_card_says_so(run, tmp_path):
    assert run("train", "motifs:20", "--epochs", 0, "--out", tmp_path / "r")[0] == 0
    code, _, err = run("info", tmp_path / "r")
    assert code == 2
    assert "has no card" in err


def test_pack_refuses_another_suffix(run, pretrained, tmp_path):
    code, _, err = run("pack", pretrained[0], "--out", tmp_path / "x.pt")
    assert code == 2
    assert ".safetensors" in err


def test_pretrain_on_a_union_says_what_was_left_out(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.smi").write_text("\n".join(SMILES))
    (tmp_path / "b.smi").write_text(
        "\n".join([*SMILES[:5], "CN1[C@H]2CCC[C@@H]1CC(C2)NC(=O)c3nn(C)c4ccccc34", "CF"])
    )
    code, out, err = run(
        "pretrain", f"{tmp_path / 'a.smi'},{tmp_path / 'b.smi'}:2", "--method", "graphsc-plus", "--epochs", 1,
        *SMALL, "--out", tmp_path / "r", "--snapshots", 40, "--held-out", 5,
    )  # fmt: skip
    assert code == 0, err
    different = len({_canonical(text) for text in SMILES})
    assert f"data\t{different + 1 - 5} of {different + 1} molecules of a+b" in out
    assert (
        "b.smi: 7 molecules, 1 of downstream test sets excluded by InChIKey, 5 duplicates left out, 1 kept"
        in out
    )
    assert len(list((tmp_path / "r" / "snapshots").iterdir())) >= 2
    code, _, err = run("frozen", tmp_path / "r", "--sets", "BASE")
    assert code != 0
    assert "none of the eight sets" in err
    code, _, err = run("frozen", tmp_path / "r", "--figure", tmp_path / "curve.txt")
    assert code != 0
    assert "must end in .svg or .png" in err


def _canonical(smiles):
    from rdkit import Chem

    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles))
