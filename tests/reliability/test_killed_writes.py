"""Row 1 for molecules: killed at every file it writes, each verb ends as if nothing had happened."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open

from graphsc.training.callbacks import TIMES

pytest.importorskip("rdkit")
pytestmark = pytest.mark.faults

PROGRAM = Path(__file__).with_name("killed_writes.py")
RINGS = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "c1ccsc1", "C1CCNCC1", "C1CCOC1", "C1CC1"]
SMILES = [chain + ring for ring in RINGS for chain in ("", "C", "CC", "CCO")]
SMALL = ("--set", "encoder.width=4", "--set", "encoder.depth=1", "--device", "cpu")
PRETRAIN = (
    "pretrain", "m.csv", "--epochs", "2", "--held-out", "3", *SMALL, "--set", "batch_size=16", "--out", "run",
)  # fmt: skip
FINETUNE = (
    "finetune", "none", "m.csv", "--labels", "nitrogen", "--split", "random", "--seeds", "2", "--epochs", "1",
    *SMALL, "--out", "tuned",
)  # fmt: skip


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(one) for key, one in value.items() if key != "seconds"}
    return value


def content(path):
    """What a file says, times aside."""
    if path.name in (".lock", "card.md"):  # a process's number; a time in words, which card.json has as well
        return None
    if path.suffix == ".json":
        return without_times(json.loads(path.read_text()))
    if path.name == "metrics.csv":
        with open(path, newline="") as file:
            return [{key: row[key] for key in row if key not in TIMES} for row in csv.DictReader(file)]
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            facts = without_times(json.loads(file.metadata()["facts"]))
            return facts, {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118
    return path.read_bytes()


def contents(folder):
    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*") if path.is_file()}


def kills_of(home, begin, arguments):
    """How often the command was killed; the folders `whole` and `killed` are left to be compared."""
    done = subprocess.run(
        [sys.executable, PROGRAM, begin, home / "whole", home / "killed", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


@pytest.fixture
def begin(tmp_path):
    (tmp_path / "begin").mkdir()
    lines = [f"{smiles},{int('n' in smiles.lower())}" for smiles in SMILES]
    (tmp_path / "begin" / "m.csv").write_text("\n".join(["smiles,nitrogen", *lines, "nonsense,1", ""]))
    return tmp_path / "begin"


@pytest.mark.parametrize(
    ("arguments", "least"), [(PRETRAIN, 20), (FINETUNE, 30)], ids=["pretrain", "finetune"]
)
def test_killed_at_every_file_it_ends_as_the_undisturbed_one(tmp_path, begin, arguments, least):
    assert kills_of(tmp_path, begin, arguments) >= least
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.fixture
def tuned(begin):
    """A fine-tuned model, and a table of two chunks to predict."""
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.finetune import FineTuneSettings, finetune
    from graphsc.finetuning.predict import CHUNK

    finetune(
        read_dataset(begin / "m.csv"), out=begin / "tuned", settings=FineTuneSettings(epochs=1),
        split="random", encoder_settings={"width": 4, "depth": 1}, device="cpu",
    )  # fmt: skip
    rows = [SMILES[row % len(SMILES)] for row in range(CHUNK + 10)]
    (begin / "parts").mkdir()
    (begin / "parts" / "long.csv").write_text("\n".join(["smiles", *rows, "nonsense", ""]))
    (begin / "parts" / "short.smi").write_text("CCO a\nCCN b\n")
    return rows


def test_killed_prediction_has_every_row_once(tmp_path, begin, tuned):
    arguments = ("predict", "tuned", "parts/long.csv", "--out", "p.csv")
    # The identity, two files of each of two chunks, and the table, twice each.
    assert kills_of(tmp_path, begin, arguments) == 12
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    with open(tmp_path / "killed" / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["smiles"] for row in rows] == [*tuned, "nonsense"]
    assert [bool(row["reason"]) for row in rows] == [False] * len(tuned) + [True]


def test_killed_predictions_of_many_files_are_each_there_once(tmp_path, begin, tuned):
    arguments = ("predict", "tuned", "parts", "--out", "predicted")
    # As above, the short table, and two records per table, which are the same file: begun and finished.
    assert kills_of(tmp_path, begin, arguments) >= 18
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert sorted(path.name for path in (tmp_path / "killed" / "predicted").iterdir()) == [
        ".graphsc-parts", "long.csv", "short.csv",
    ]  # fmt: skip
