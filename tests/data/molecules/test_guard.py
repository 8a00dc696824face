"""Texts that make RDKit slow, huge or crash: rejected rows, found in a child process."""

import os
import random
import resource
import signal
import subprocess
import sys

import pytest

from graphsc.data.molecules.guard import CLOSURES, LONG, SHORT, ParserGuard, is_suspicious

pytest.importorskip("rdkit")


def tangle(atoms, degree, seed=0):
    """A SMILES of dummy atoms in a chain with random ring closures: `degree` bonds per atom, two at the ends.

    Args:
        atoms: Number of atoms.
        degree: Even number of bonds per atom.
        seed: Of the random pairs.
    """
    generator = random.Random(seed)
    bonds = {(k, k + 1) for k in range(atoms - 1)}
    ends = [k for k in range(atoms) for _ in range(degree - 2)]
    pairs = []
    while ends:
        generator.shuffle(ends)
        left = []
        for one, other in zip(ends[::2], ends[1::2], strict=True):
            pair = (min(one, other), max(one, other))
            if one == other or pair in bonds:
                left += [one, other]
            else:
                bonds.add(pair)
                pairs.append(pair)
        ends = [] if len(left) <= 2 * degree else left
    starts, free, open_labels = {}, [], {}
    for pair in pairs:
        for end in pair:
            starts.setdefault(end, []).append(pair)
    text = []
    for atom in range(atoms):
        text.append("*")
        for pair in starts.get(atom, ()):
            if pair in open_labels:
                label = open_labels.pop(pair)
                free.append(label)
            else:
                label = free.pop() if free else len(open_labels) + 1
                open_labels[pair] = label
            text.append(str(label) if label < 10 else f"%{label}" if label < 100 else f"%({label})")
    return "".join(text), len(bonds) - atoms + 1


CODE = """
import sys
from graphsc.data.molecules.featurize import featurize
found = featurize(["CCO", sys.stdin.read(), "CC"])
print(found.kept.tolist(), found.rejected)
"""


def test_a_tangle_of_rings_is_a_rejected_row_within_two_gigabytes():
    text, rings = tangle(600, 6)
    assert 10_000 < len(text) < 20_000

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))

    done = subprocess.run(
        [sys.executable, "-c", CODE],
        input=text,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"[0, 2] [(1, '{rings:,} rings, at most 600 are taken')]"


@pytest.fixture(scope="module")
def heavy():
    """A text below the limit of rings; RDKit needs about a second and 350 MB for it."""
    text, rings = tangle(290, 6)
    assert 500 < rings <= 600
    return text


def test_a_crash_for_lack_of_memory_is_a_reason(heavy):
    with ParserGuard(memory=2**26) as guard:
        assert guard.refuse(heavy, 1_000) == "RDKit fails within 64 MB of memory"
        assert guard.refuse("CCO", 1_000) is None


def test_too_much_time_is_a_reason(heavy):
    with ParserGuard(seconds=0.05) as guard:
        assert guard.refuse(heavy, 1_000) == "RDKit takes more than 0.05 seconds"


def test_a_child_that_someone_kills_is_started_again():
    with ParserGuard() as guard:
        assert guard.refuse("CCO", 1_000) is None
        os.kill(guard._child.pid, signal.SIGKILL)
        assert guard.refuse("C" * 50, 49) == "50 atoms, at most 49 are taken"
        child = guard._child
    assert child.returncode is not None


def test_hydrogens_that_rdkit_removes_are_not_counted():
    with ParserGuard() as guard:
        assert guard.refuse("[H]C([H])([H])[H]", 1) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C" * SHORT, False),
        ("C1CC1" * (SHORT // 5), False),
        ("C1CC1" * (CLOSURES // 2), False),
        ("C1CC1" * (CLOSURES // 2 + 101), True),
        ("C%11CCCC%11" * (CLOSURES // 2), False),
        ("C%11CCCC%11" * (CLOSURES // 2 + 1), True),
        ("[13CH3]" * (LONG // 7), False),
        ("C" * LONG, False),
        ("C" * (LONG + 1), True),
    ],
    ids=["short", "rings", "limit", "many", "limit of %nn", "many %nn", "isotopes", "long", "longer"],
)
def test_only_long_texts_and_those_of_many_rings_are_suspicious(text, expected):
    assert is_suspicious(text) is expected


def test_a_suspicious_molecule_is_read_like_any_other():
    from graphsc.data.molecules.featurize import featurize

    text = "[13CH3]" + "[13CH2]" * 900 + "O"
    assert is_suspicious(text)
    found = featurize([text])
    assert found.rejected == []
    assert found.node_counts.tolist() == [902]
    assert found.edge_counts.tolist() == [2 * 901]
