"""Row 15: a disk that is full or read-only; old files stay, and nobody trains for nothing."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsc.core.errors import CannotWriteError
from graphsc.core.files import write_atomic
from graphsc.core.serialization import load_tensors
from graphsc.data.collection import GraphCollection
from graphsc.estimator import GraphEmbedder
from graphsc.training.embedding_files import read_embeddings

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
    np.testing.assert_array_equal(read_embeddings(target).rows, before.rows)
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
    np.testing.assert_allclose(
        read_embeddings(disk / "v.npz").rows, model.embed(graphs), rtol=1e-5, atol=1e-6
    )
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
        ("report", "{run}", "--out", "{disk}/r.html", "--no-maps", "--no-evaluate"),
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [("methods",), ("methods", "--json"), ("--help",), ("data", "check", "motifs:8")],
    ids=" ".join,
)
def test_standard_output_that_is_full_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "graphsc", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert one_line(done.stderr) == "error: cannot write to standard output: No space left on device"
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("embed", "{run}", "motifs:8", "--out", "{device}.csv"),
        ("data", "convert", "motifs:8", "--out", "{device}.safetensors"),
        ("report", "{run}", "--out", "{device}.html", "--no-maps", "--no-evaluate"),
        ("compare", "motifs:24", "--methods", "raw", "--seeds", "1", "--folds", "3", "--jobs", "1",
         "--out", "{device}.md", "--results", "{device}-results", "--runs", "{device}-runs"),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_a_device_as_target_is_refused_and_stays(run, trained, tmp_path, arguments):
    device = tmp_path / f"full{Path(arguments[arguments.index('--out') + 1]).suffix}"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # as /dev/full
    except OSError:
        pytest.skip("devices cannot be made here")
    code, _, err = run(*(each.format(run=trained, device=device.with_suffix("")) for each in arguments))
    assert code == 2
    assert "cannot write: this is no regular file" in one_line(err)
    assert "to run" not in err  # nothing has been computed for nothing
    assert device.is_char_device()


PLAN = (
    "tables: {t: {title: T, trials: [{data: ['motifs:24'], methods: [untrained], folds: 3, "
    "first_seed: 1000, seeds: 3}]}}"
)


def test_a_full_disk_under_the_results_keeps_whole_lines(run, mount, tmp_path):
    disk = mount("size=16k")
    (tmp_path / "plan.yaml").write_text(PLAN)
    command = ("results", "run", tmp_path / "plan.yaml", "--results", disk, "--runs", tmp_path / "runs",
               "--jobs", 1)  # fmt: skip
    (disk / "ballast").write_bytes(b"x" * 8000)
    code, _, err = run(*command)
    assert code == 2
    assert "No space left on device" in one_line(err)
    (disk / "ballast").unlink()
    mount.again("size=1m", disk)
    code, _, err = run(*command)
    assert code == 0, err
    assert (disk / "motifs-24.jsonl").read_text().count("\n") == 3


def test_a_full_disk_under_the_log_of_a_search_keeps_whole_lines(run, mount, tmp_path):
    disk = mount("size=12k")
    (tmp_path / "plan.yaml").write_text(PLAN)
    command = ("results", "search", tmp_path / "plan.yaml", "--log", disk / "log.jsonl", "--runs",
               tmp_path / "runs")  # fmt: skip
    (disk / "ballast").write_bytes(b"x" * 8000)
    code, _, err = run(*command)
    assert code == 2
    assert "No space left on device" in one_line(err)
    (disk / "ballast").unlink()
    mount.again("size=1m", disk)
    code, out, err = run(*command)
    assert code == 0, err
    assert "3 evaluations" in out


@pytest.mark.parametrize("storage", ["{disk}/s.journal", "sqlite:///{disk}/s.db"])
def test_a_full_disk_under_a_study_is_one_line_and_the_same_command_goes_on(run, mount, tmp_path, storage):
    pytest.importorskip("optuna")
    disk = mount("size=256k")
    # So many trials that the file of the study must grow.
    (tmp_path / "space.yaml").write_text(f"encoder.width: {list(range(2, 18))}\n")
    command = ("sweep", "motifs:24", "--method", "untrained", "--space", tmp_path / "space.yaml",
               "--folds", 3, "--sampler", "grid", "--storage", storage.format(disk=disk),
               "--out", tmp_path / "out", "--runs", tmp_path / "runs")  # fmt: skip
    assert run(*command, "--trials", 1)[0] == 0
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "ballast").write_bytes(b"x" * free)
    code, _, err = run(*command)
    assert code == 2, err
    assert "free some space and run the same command again" in one_line(err)
    (disk / "ballast").unlink()
    code, _, err = run(*command)
    assert code == 0, err
    assert (tmp_path / "out" / "trials.csv").read_text().count("done") == 16


def test_a_full_disk_does_not_fail_the_trials_of_a_sweep(run, mount, tmp_path):
    pytest.importorskip("optuna")
    disk = mount("size=8k")
    (tmp_path / "space.yaml").write_text("encoder.width: [4, 8]\n")
    command = ("sweep", "motifs:24", "--method", "untrained", "--space", tmp_path / "space.yaml",
               "--folds", 3, "--sampler", "grid", "--out", tmp_path / "out",
               "--runs", disk / "runs")  # fmt: skip
    code, _, err = run(*command)
    assert code == 2
    assert "No space left on device" in one_line(err)
    mount.again("size=4m", disk)
    code, _, err = run(*command)
    assert code == 0, err
    assert "failed" not in (tmp_path / "out" / "trials.csv").read_text()
