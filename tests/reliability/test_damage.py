"""Rows 4, 5 and 6 at the command line: damaged files, pickles, and weights of something else."""

import os
import pickle
import re
import shutil

import pytest

from graphsc.core.errors import DamagedFileError
from graphsc.estimator import GraphEmbedder

TRAIN = ("train", "motifs:24", "--epochs", "3", "--set", "batch_size=8")
WIDTH = ("--set", "encoder.width=4")


def truncated(data):
    return data[: len(data) // 2]


def flipped(data):
    return data[:-3] + bytes([data[-3] ^ 4]) + data[-2:]


HURT = pytest.mark.parametrize(
    "hurt", [truncated, flipped, lambda _: b""], ids=["truncated", "flipped", "empty"]
)


def error_of(outcome):
    code, _, err = outcome
    assert code == 2, err
    last = err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "internal error" not in err
    return last


@HURT
def test_damaged_model_is_refused(run, trained, tmp_path, hurt):
    model = trained / "model.safetensors"
    model.write_bytes(hurt(model.read_bytes()))
    assert "model file is damaged" in error_of(run("embed", trained, "motifs:5", "--out", tmp_path / "v.csv"))
    assert not (tmp_path / "v.csv").exists()
    with pytest.raises(DamagedFileError):
        GraphEmbedder.load(model)


@HURT
def test_damaged_collection_is_refused(run, tmp_path, hurt):
    path = tmp_path / "c.safetensors"
    run("data", "convert", "motifs:20", "--out", path)
    path.write_bytes(hurt(path.read_bytes()))
    assert "is damaged" in error_of(run("train", path, "--out", tmp_path / "r"))
    assert not (tmp_path / "r").exists()


@HURT
def test_damaged_checkpoint_is_passed_over_and_said(run, trained, hurt):
    newest = max((trained / "checkpoints").iterdir())
    newest.write_bytes(hurt(newest.read_bytes()))
    code, _, err = run(*TRAIN, *WIDTH, "--out", trained)
    assert code == 0
    assert f"warning: checkpoint file is damaged ({newest}); trying the one before" in err
    assert "resuming at epoch 3, step 1" in err


@pytest.mark.parametrize("name", ["config.yaml", "env.json", "metrics.csv"])
@pytest.mark.parametrize("content", [b"\x00\xff\xfe", b"{", b"a,b\n1,x\n", b""])
def test_damaged_text_of_a_run_is_one_sentence_or_does_no_harm(run, trained, name, content):
    (trained / name).write_bytes(content)
    for outcome in (
        run(*TRAIN, *WIDTH, "--out", trained),
        run("evaluate", trained, "--folds", 3, "--jobs", 1),
    ):
        assert outcome[0] == 0 or error_of(outcome)


@HURT
def test_damaged_result_is_refused(run, trained, hurt, tmp_path):
    assert run("evaluate", trained, "--folds", 3, "--jobs", 1)[0] == 0
    path = trained / "result.json"
    path.write_bytes(hurt(path.read_bytes()))
    code, _, err = run("report", trained, "--no-maps", "--out", tmp_path / "r.html", "--jobs", 1)
    assert (code == 0 and (tmp_path / "r.html").exists()) or "damaged" in error_of((code, "", err))


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_is_refused_and_not_run(run, trained, tmp_path, protocol):
    payload = pickle.dumps(Payload(tmp_path / "ran"), protocol=protocol)
    for name in ("w.pt", "w.safetensors"):
        (tmp_path / name).write_bytes(payload)
        error_of(run("embed", tmp_path / name, "motifs:5", "--out", tmp_path / "v.csv"))
        error_of(run("data", "check", tmp_path / name))
    newest = max((trained / "checkpoints").iterdir())
    newest.write_bytes(payload)
    (trained / "model.safetensors").write_bytes(payload)
    run(*TRAIN, *WIDTH, "--out", trained)
    assert not (tmp_path / "ran").exists()


def test_a_torch_archive_is_refused_and_not_run(run, tmp_path):
    import torch

    torch.save({"weights": torch.zeros(2), "payload": Payload(tmp_path / "ran")}, tmp_path / "w.pt")
    said = error_of(run("embed", tmp_path / "w.pt", "motifs:5", "--out", tmp_path / "v.csv"))
    assert "this is a pickle" in said
    assert not (tmp_path / "ran").exists()


def test_checkpoint_of_another_width_is_named_with_both_shapes(run, trained, tmp_path):
    assert run(*TRAIN, "--set", "encoder.width=8", "--out", tmp_path / "wide")[0] == 0
    for path in (trained / "checkpoints").iterdir():
        path.unlink()
    foreign = max((tmp_path / "wide" / "checkpoints").iterdir())
    shutil.copy(foreign, trained / "checkpoints")
    said = error_of(run(*TRAIN, *WIDTH, "--out", trained))
    assert "these weights are of another model" in said
    assert re.search(r"has shape \(8,\), not \(4,\)", said)


def test_checkpoint_of_another_method_is_named(run, trained, tmp_path):
    assert run(*TRAIN, *WIDTH, "--method", "adgcl", "--out", tmp_path / "other")[0] == 0
    for path in (trained / "checkpoints").iterdir():
        path.unlink()
    shutil.copy(max((tmp_path / "other" / "checkpoints").iterdir()), trained / "checkpoints")
    assert "is of method adgcl, the run has method graphsc" in error_of(run(*TRAIN, *WIDTH, "--out", trained))


def test_run_of_another_method_or_width_is_refused_by_key(run, trained):
    said = error_of(run(*TRAIN, "--set", "encoder.width=8", "--out", trained))
    assert "encoder_settings.width: 4 against 8" in said
    said = error_of(run(*TRAIN, *WIDTH, "--method", "simgrace", "--out", trained))
    assert "method: 'graphsc' against 'simgrace'" in said


def test_graphs_of_another_feature_scheme_are_named(run, tmp_path):
    tables = {"a": "C,C,N", "b": "C,O,O"}
    for name, atoms in tables.items():
        (tmp_path / f"{name}.csv").write_text("graph_id,source,target\n1,0,1\n1,1,2\n2,0,1\n2,1,2\n")
        rows = [f"{g},{n},{atom}\n" for g in (1, 2) for n, atom in enumerate(atoms.split(","))]
        (tmp_path / f"{name}-nodes.csv").write_text("graph_id,node_id,atom\n" + "".join(rows))
    nodes = [f"nodes={tmp_path / f'{name}-nodes.csv'}" for name in tables]
    code, _, err = run(
        "train", tmp_path / "a.csv", "--reader-set", nodes[0], "--epochs", 1, "--out", tmp_path / "r"
    )
    assert code == 0, err
    embed = (
        "embed",
        tmp_path / "r",
        tmp_path / "b.csv",
        "--reader-set",
        nodes[1],
        "--out",
        tmp_path / "v.csv",
    )
    assert "'O' of 'atom' was never seen before" in error_of(run(*embed))
    assert not (tmp_path / "v.csv").exists()
