"""Molecules through the command line: converted, stopped, killed and resumed."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from graphsc.core.chunks import ChunkStore
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules import conversion

pytest.importorskip("rdkit")

# The command as a program, with chunks small enough for several of them to fit into a test.
PROGRAM = (
    "from graphsc.data.molecules import conversion\nconversion.CHUNK = conversion.LEAST_CHUNK = 150\n"
    "from graphsc.cli.main import main\nmain()"
)


@pytest.fixture
def smi(tmp_path):
    lines = [f"{'C' * (k % 23)}N1CCC(c2ccc(O{'C' * (k % 31)})cc2)CC1" for k in range(6000)]
    lines[10] = "nothing"
    (tmp_path / "m.smi").write_text("\n".join(lines) + "\n")
    return tmp_path / "m.smi"


@pytest.fixture
def start(smi, tmp_path):
    """`start("a")`: the program at work on a file, when its first chunks are finished."""
    children = []

    def start(name):
        target = tmp_path / f"{name}.safetensors"
        arguments = ["data", "convert", str(smi), "--out", str(target), "--workers", "2"]
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stderr=subprocess.PIPE, text=True
        )
        children.append(child)
        folder = ChunkStore(target, {}).folder
        deadline = time.monotonic() + 60
        while len(finished(folder)) < 3 and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return child, target, folder

    yield start
    for child in children:
        child.kill()
        child.wait()
        child.stderr.close()


def finished(folder):
    return {int(path.stem.removeprefix("chunk-")) for path in folder.glob("chunk-*.json")}


@pytest.fixture
def resume(run, smi, monkeypatch):
    """`resume(target)`: what the same command prints, and the chunks it had to convert."""

    def resume(target):
        converted = []
        write = ChunkStore.write
        with monkeypatch.context() as patch:
            patch.setattr(conversion, "CHUNK", 150)
            patch.setattr(conversion, "LEAST_CHUNK", 150)
            patch.setattr(ChunkStore, "write", lambda *args: (converted.append(args[1]), write(*args)))
            code, out, _ = run("data", "convert", smi, "--out", target, "--workers", "1", "--json")
        assert code == 0
        return json.loads(out), converted

    return resume


def test_killed_conversion_is_resumed_to_the_same_bytes(start, resume, tmp_path):
    child, target, folder = start("a")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert not target.exists()
    before = finished(folder)
    assert len(before) >= 3
    killed, redone = resume(target)
    whole, converted = resume(tmp_path / "whole.safetensors")
    assert converted == list(range(40))
    assert set(redone) == set(converted) - before
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert killed["content_hash"] == whole["content_hash"]
    assert (killed["graphs"], killed["rejected"]) == (5999, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.rejected.csv", "a.safetensors", "m.smi", "whole.rejected.csv", "whole.safetensors",
    ]  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stop_ends_in_one_line_and_keeps_finished_chunks(start, number, code):
    child, target, folder = start("a")
    child.send_signal(number)
    said = without_progress(child.communicate(timeout=60)[1])
    assert child.returncode == code
    assert said.count("\n") == 1
    assert said.startswith(f"error: stopped by {signal.Signals(number).name}")
    assert "run the same command" in said
    assert not target.exists()
    assert len(finished(folder)) >= 3


def test_a_killed_worker_is_replaced(start, resume, tmp_path):
    child, target, _ = start("a")
    os.kill(running_worker(child), signal.SIGKILL)
    said = without_progress(child.communicate(timeout=120)[1])
    assert child.returncode == 0
    assert said.count("\n") == 1
    assert said.startswith("warning: ")
    resume(tmp_path / "whole.safetensors")
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def test_finished_chunks_are_kept_where_workers_die_again_and_again(start, resume, tmp_path):
    child, target, folder = start("a")
    while worker := running_worker(child):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert not target.exists()
    before = finished(folder)
    assert len(before) >= 3
    _, redone = resume(target)
    resume(tmp_path / "whole.safetensors")
    assert set(redone) == set(range(40)) - before
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def without_progress(said):
    """What a command said, without the lines that a slow machine sees every ten seconds."""
    return re.sub(r"^.*: [\d,]+ of [\d,]+ molecules.*\n", "", said, flags=re.MULTILINE)


def running_worker(child):
    """A worker process that computes, and so does not hold a pipe half written; 0 if the command ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if child.poll() is not None:
            return 0
        for path in Path("/proc").glob("[0-9]*"):
            try:
                state, owner = path.joinpath("stat").read_text().rpartition(") ")[2].split()[:2]
                command = path.joinpath("cmdline").read_bytes()
            except OSError:
                continue  # it ended meanwhile
            if owner == str(child.pid) and state == "R" and b"LokyProcess" in command:
                return int(path.name)
    raise AssertionError("no worker was seen at work")


def test_convert_a_table_with_a_column_of_another_name(run, tmp_path):
    (tmp_path / "m.csv").write_text("what,y\nCCO,1\nxx,0\n,1\nO,\n")
    target = tmp_path / "m.safetensors"
    options = ["--smiles-column", "what", "--reader-set", "label_columns=y"]
    code, out, err = run("data", "convert", tmp_path / "m.csv", "--out", target, *options, "--json")
    assert (code, err) == (0, "")
    written = json.loads(out)
    assert (written["graphs"], written["rejected"]) == (2, 2)
    assert (tmp_path / "m.rejected.csv").read_text().splitlines() == [
        "row,line,smiles,reason", "1,3,xx,not a SMILES string", "2,4,,empty",
    ]  # fmt: skip
    opened = GraphCollection.open(target)
    assert opened.tasks == ("y",)
    assert opened.name == "m"
    code, _, err = run("data", "convert", tmp_path / "m.csv", "--out", target, *options, "--strict")
    assert code == 2
    assert err == (
        "error: row 1 holds no molecule: not a SMILES string "
        f"({tmp_path / 'm.csv'}, line 3); correct it, or leave out strict\n"
    )


def test_wrong_column_name_lists_the_columns(run, tmp_path):
    (tmp_path / "m.csv").write_text("id,structure_of_it\n1,CCO\n")
    code, _, err = run("data", "check", tmp_path / "m.csv", "--smiles-column", "smiles")
    assert code == 2
    assert "no column 'smiles'" in err
    assert "columns: id, structure_of_it" in err


def test_training_lists_what_it_left_out(run, tmp_path):
    (tmp_path / "m.csv").write_text("smiles\nCCO\nxx\nCCN\nc1ccccc1\nCC(C)O\n")
    code, _, _ = run(
        "train", tmp_path / "m.csv", "--epochs", "1", "--out", tmp_path / "run", "--device", "cpu"
    )
    assert code == 0
    assert (tmp_path / "run" / "rejected.csv").read_text() == (
        "row,line,smiles,reason\n1,3,xx,not a SMILES string\n"
    )
    code, _, _ = run("embed", tmp_path / "run", tmp_path / "m.csv", "--out", tmp_path / "e.csv")
    assert code == 0
    header, *rows = [line.split(",") for line in (tmp_path / "e.csv").read_text().splitlines()]
    assert (header[0], header[-1]) == ("id", "reason")
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4"]
    assert set(rows[1][1:-1]) == {"nan"}
    assert [row[-1] for row in rows] == ["", "not a SMILES string", "", "", ""]
    assert "nan" not in rows[0]
