import json

import pytest

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.experiments.plan import Block, TablePlan
from graphsc.experiments.search_log import looks_markdown, read_looks, run_candidates


def plan(**changes):
    block = {"data": ["motifs:40"], "methods": ["raw", "untrained"], "first_seed": 1000, "folds": 2} | changes
    return [TablePlan("first", "First", (Block(**block),))]


def test_every_trial_is_a_line_and_is_run_once(tmp_path):
    log = tmp_path / "search" / "log.jsonl"
    assert run_candidates(plan(), log, tmp_path / "runs") == 2
    assert run_candidates(plan(seeds=2), log, tmp_path / "runs") == 2
    looks = read_looks(log)
    assert [(look["candidate"], look["seed"]) for look in looks] == [
        ("raw", 1000), ("untrained", 1000), ("raw", 1001), ("untrained", 1001),
    ]  # fmt: skip
    assert all(0 < look["inner"] <= 100 for look in looks)


def test_seeds_of_the_tables_are_out_of_bounds(tmp_path):
    with pytest.raises(ConfigError, match="seed 3, which tables report"):
        run_candidates(plan(first_seed=3), tmp_path / "log.jsonl", tmp_path / "runs")


def test_a_damaged_line_is_named(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"key": "a"}\n{"key": \n')
    with pytest.raises(DamagedFileError, match="line 2"):
        read_looks(log)


def test_the_table_is_ordered_by_mean_and_counts_looks():
    cells = [("a", "X", 70), ("a", "Y", 80), ("b", "X", 75), ("b", "X", 77), ("b", "Y", 90), ("c", "X", 99)]
    looks = [
        {
            "search": "first",
            "candidate": name,
            "data": data,
            "inner": inner,
            "folds": 3,
            "inner_order": "file",
            "seed": 1000 + number,
        }
        for number, (name, data, inner) in enumerate(cells)
    ]
    text = looks_markdown(json.loads(json.dumps(looks)))
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == ["| b | 76.00 | 90.00 | 83.00 |", "| a | 70.00 | 80.00 | 75.00 |", "| c | 99.00 |  |  |"]
    assert "6 looks at 3 candidates" in text
    assert "Inner folds of 3 outer ones, in the order of the file; seeds: X 4, Y 2." in text


def test_each_search_has_a_table_of_its_own():
    looks = [
        {
            "search": search,
            "candidate": "a",
            "data": "X",
            "inner": inner,
            "folds": folds,
            "seed": 1000,
            "inner_order": "file",
        }
        for search, folds, inner in [("first", 3, 70), ("second", 5, 80)]
    ]
    text = looks_markdown(looks)
    assert text.startswith("**first**\n\n| candidate |")
    first, second = text.split("**second**")
    assert "| a | 70.00 | 70.00 |" in first
    assert "| a | 80.00 | 80.00 |" in second
    assert "2 looks at 1 candidates" in text
