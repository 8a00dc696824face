"""Row 15: a disk that is full or read-only; old files stay, and nobody trains for nothing."""

import numpy as np
import pytest
import torch

from graphsc.core.errors import CannotWriteError
from graphsc.core.files import write_atomic
from graphsc.core.serialization import load_tensors
from graphsc.data.collection import GraphCollection
from graphsc.estimator import GraphEmbedder
from graphsc.training.embed_io import read_embeddings

TRAIN = ("train", "motifs:24", "--epochs", "3", "--set", "encoder.width=4", "--set", "batch_size=8")


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def one_line(err):
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert err.splitlines()[-1:] == lines[-1:]
    assert len(lines) == 1
    return lines[0]


def test_full_disk_ends_training_in_one_line_and_the_same_command_goes_on(run, mount, tmp_path):
    disk = mount("size=64k")
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * 40_000)
    code, _, err = run(*TRAIN, "--out", disk / "run")
    assert code == 2
    assert "cannot write: No space left on device" in one_line(err)
    assert "free some space and run the same command again" in err
    assert not [name for name in names(disk) if name.endswith(".tmp")]
    ballast.unlink()
    mount.again("size=4m", disk)
    code, _, err = run(*TRAIN, "--out", disk / "run")
    assert code == 0, err
    run(*TRAIN, "--out", tmp_path / "whole")
    for name, kind in (("model.safetensors", "model"), ("embeddings/epoch-00003.safetensors", "embeddings")):
        one, two = (load_tensors(folder / name, kind)[0] for folder in (disk / "run", tmp_path / "whole"))
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_full_disk_leaves_the_old_collection(run, mount):
    disk = mount("size=64k")
    assert run("data", "convert", "motifs:20", "--out", disk / "c.safetensors")[0] == 0
    before = (disk / "c.safetensors").read_bytes()
    code, _, err = run("data", "convert", "motifs:3000", "--out", disk / "c.safetensors")
    assert code == 2
    assert "No space left on device" in one_line(err)
    assert (disk / "c.safetensors").read_bytes() == before
    assert names(disk) == ["c.safetensors"]
    GraphCollection.open(disk / "c.safetensors").check()


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_full_disk_leaves_the_old_vectors(run, mount, trained, ending):
    disk = mount("size=32k")
    target = disk / f"v{ending}"
    assert run("embed", trained, "motifs:8", "--out", target)[0] == 0
    before = read_embeddings(target)
    code, _, err = run("embed", trained, "motifs:2000", "--out", target)
    assert code == 2
    assert "No space left on device" in one_line(err)
    np.testing.assert_array_equal(read_embeddings(target)[0], before[0])
    assert names(disk) == [target.name]


def test_full_disk_in_the_middle_of_a_long_embedding_keeps_what_is_done(mount, trained, monkeypatch):
    from graphsc.data.readers import open_collection
    from graphsc.training.embed_io import embed_to_file
    from graphsc.training.train import model_of

    disk = mount("size=32k")
    model, graphs = model_of(trained), open_collection("motifs:900")
    with pytest.raises(CannotWriteError, match="No space left"):
        embed_to_file(model, graphs, disk / "v.npz", chunk=100)
    mount.again("size=4m", disk)
    seen = []
    embed_to_file(model, graphs, disk / "v.npz", chunk=100, progress=lambda done, _: seen.append(done))
    assert seen[0] > 0
    np.testing.assert_allclose(read_embeddings(disk / "v.npz")[0], model.embed(graphs), rtol=1e-5, atol=1e-6)
    assert names(disk) == ["v.npz"]


def test_full_disk_ends_a_comparison_at_once_and_not_every_trial_of_it(run, mount, monkeypatch):
    disk = mount("size=16k")
    monkeypatch.chdir(disk)
    code, _, err = run(
        "compare",
        "motifs:24",
        "--methods",
        "untrained,graphsc",
        "--seeds",
        2,
        "--epochs",
        1,
        "--folds",
        3,
        "--jobs",
        1,
    )
    assert code == 2
    assert "No space left on device" in one_line(err)
    assert "failed" not in err


def test_read_only_folder_fails_before_training(run, mount):
    disk = mount("size=1m")
    mount.again("ro", disk)
    code, _, err = run(*TRAIN, "--out", disk / "run")
    assert code == 2
    assert "cannot write to the run folder: Read-only file system" in one_line(err)
    assert "epoch 1" not in err


def test_run_folder_that_became_read_only_fails_before_training(run, mount):
    disk = mount("size=4m")
    assert run(*TRAIN, "--out", disk / "run")[0] == 0
    mount.again("ro", disk)
    longer = [argument if argument != "3" else "5" for argument in TRAIN]
    code, _, err = run(*longer, "--out", disk / "run")
    assert code == 2
    assert "Read-only file system" in one_line(err)
    assert "epoch 4" not in err
    assert run("evaluate", disk / "run", "--folds", 3)[0] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", "{run}", "motifs:8", "--out", "{disk}/v.csv"),
        ("data", "convert", "motifs:8", "--out", "{disk}/c.safetensors"),
        ("explore", "{run}", "--out", "{disk}/m.html"),
        ("report", "{run}", "--out", "{disk}/r.html", "--no-maps", "--no-judge"),
        ("compare", "motifs:24", "--methods", "raw", "--seeds", "1", "--folds", "3", "--jobs", "1",
         "--results", "{disk}/results", "--runs", "{disk}/runs"),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_every_verb_says_in_one_line_that_it_cannot_write(run, mount, trained, arguments):
    disk = mount("size=1m")
    mount.again("ro", disk)
    code, _, err = run(*(argument.format(run=trained, disk=disk) for argument in arguments))
    assert code == 2
    assert "Read-only file system" in one_line(err)


def test_estimator_cannot_save_onto_a_full_disk_and_the_old_model_stays(mount):
    disk = mount("size=32k")
    small = GraphEmbedder("raw").fit("motifs:8")
    small.save(disk / "m.safetensors")
    before = (disk / "m.safetensors").read_bytes()
    (disk / "ballast").write_bytes(b"x" * (32_768 - len(before) - 4096 - 1))
    large = GraphEmbedder(epochs=1).fit("motifs:8")
    with pytest.raises(CannotWriteError, match="No space left on device"):
        large.save(disk / "m.safetensors")
    assert (disk / "m.safetensors").read_bytes() == before


def test_a_file_in_place_of_a_folder_is_one_sentence(tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(CannotWriteError, match=r"cannot write: .*; choose another place"):
        write_atomic(tmp_path / "a" / "b", b"x")
