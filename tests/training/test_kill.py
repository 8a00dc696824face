"""SIGKILL at random moments, again and again: the end is the undisturbed one, bit for bit."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_resume import assert_equal, outcome

PROGRAM = Path(__file__).with_name("killing.py")


def run(folder, kills, seed):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(kills), str(seed)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(done.stdout)


def check(tmp_path, kills, rounds):
    run(tmp_path / "whole", 0, 0)
    expected = outcome(tmp_path / "whole")
    hits = 0
    for seed in range(rounds):
        hits += run(tmp_path / f"killed-{seed}", kills, seed)
        assert_equal(expected, outcome(tmp_path / f"killed-{seed}"))
        assert not list((tmp_path / f"killed-{seed}").rglob("*.tmp"))
    return hits


def test_killed_run_ends_as_the_undisturbed_one(tmp_path):
    assert check(tmp_path, kills=4, rounds=1) >= 2


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    hits = check(tmp_path, kills=7, rounds=5)
    print(f"{hits} kills, 0 mismatches")
    assert hits >= 20
