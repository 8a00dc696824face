"""Row 23: a flipped bit or a cut in any file of ours is found, or the file reads exactly as before."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # `faults` is no part of the package

from faults.bits import Stored, damage_one, damages, digest
from faults.stored import STORED

# A database takes long to open. A collection is quick, and its name is a small part of it.
FLIPS = {"study": 20, "collection": 3000}
EXTRAS = {"study": "optuna", "journal": "optuna", "plan": "optuna", "vectors-parquet": "pyarrow"}
EXTRAS |= dict.fromkeys(["predictor", "transfer", "split", "predictions", "baselines"], "rdkit")


@pytest.mark.parametrize("kind", STORED)
def test_no_damage_is_silent(kind):
    pytest.importorskip(EXTRAS.get(kind, "graphsc"))
    found = damage_one(STORED[kind], flips=FLIPS.get(kind, 300), cuts=20 if kind == "study" else 100)
    assert found["flips"] > 0
    assert found["cuts"] > 0
    assert (found["silent"], found["errors"]) == (0, 0), found
    if kind != "study":  # most of its pages are empty
        assert found["refused"] + found["edited"] > found["same"], found


def test_every_bit_and_every_length_is_tried():
    content = b"ab"
    flipped = [damaged for kind, _, damaged in damages(content, 100, 100, 0) if kind == "flip"]
    expected = [bytes([97 ^ 1 << k, 98]) for k in range(8)] + [bytes([97, 98 ^ 1 << k]) for k in range(8)]
    assert flipped == expected
    assert [damaged for kind, _, damaged in damages(content, 100, 100, 0) if kind == "cut"] == [b"", b"a"]


@pytest.mark.parametrize(
    ("read", "counted"),
    [
        (lambda path: path.read_bytes(), "silent"),
        (lambda path: None, "same"),
        (lambda path: [][0] if path.read_bytes() != b"x" else None, "errors"),
    ],
)
def test_a_careless_reader_is_counted(read, counted):
    def seed(home):
        (home / "file").write_bytes(b"x")
        return home / "file"

    found = damage_one(Stored(seed, lambda home: read(home / "file")))
    assert found[counted] == 9  # eight bits and the empty file


def test_two_values_that_differ_in_a_bit_have_two_digests():
    assert digest({"a": [1.0, None]}) == digest({"a": [1.0, None]})
    assert digest([0.0]) != digest([-0.0])
    assert digest([1]) != digest([1.0])
    assert digest(["ab"]) != digest(["a", "b"])
