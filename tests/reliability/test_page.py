"""The page on reliability tells the truth: its tests exist, its figures are those that were measured."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def figures():
    """`faults/figures.py`, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("faults_figures", ROOT / "faults" / "figures.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_named_test_exists(path, name):
    assert re.search(rf"^\s*def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M), f"{path}::{name}"


def test_every_promise_has_tests():
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 31))
    for number, rest in rows:
        assert "::test_" in rest, f"promise {number}"


def test_figures_on_the_page_are_those_that_were_measured():
    assert "<!-- figures:" in PAGE
    assert figures().fill(PAGE) == PAGE
