"""The search log: every evaluation is a line, and test folds are never used."""

import pytest

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.files import json_line
from graphsc.experiments.plan import Block, TablePlan
from graphsc.experiments.search_log import log_markdown, read_log, run_candidates


def plan(**changes):
    block = {"data": ["motifs:40"], "methods": ["raw", "untrained"], "first_seed": 1000, "folds": 2} | changes
    return [TablePlan("first", "First", (Block(**block),))]


def entry(search, candidate, data, inner, *, folds, seed=1000):
    """A line of the log, in file order."""
    return {
        "search": search, "candidate": candidate, "data": data, "inner": inner, "folds": folds, "seed": seed,
        "inner_order": "file",
    }  # fmt: skip


def test_every_trial_is_a_line_and_runs_once(tmp_path):
    log = tmp_path / "search" / "log.jsonl"
    assert run_candidates(plan(), log, tmp_path / "runs") == 2
    assert run_candidates(plan(seeds=2), log, tmp_path / "runs") == 2
    entries = read_log(log)
    assert [(entry["candidate"], entry["seed"]) for entry in entries] == [
        ("raw", 1000), ("untrained", 1000), ("raw", 1001), ("untrained", 1001),
    ]  # fmt: skip
    assert all(0 < entry["inner"] <= 100 for entry in entries)


def test_seeds_that_tables_report_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="seed 3, which tables report"):
        run_candidates(plan(first_seed=3), tmp_path / "log.jsonl", tmp_path / "runs")


def test_a_damaged_line_is_named(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text((json_line({"key": "a"}) + json_line({"key": "b"})).replace('"b"', '"c"'))
    with pytest.raises(DamagedFileError, match="line 2"):
        read_log(log)


def test_the_table_is_ordered_by_mean_and_evaluations_are_counted():
    cells = [("a", "X", 70), ("a", "Y", 80), ("b", "X", 75), ("b", "X", 77), ("b", "Y", 90), ("c", "X", 99)]
    entries = [
        entry("first", name, data, inner, folds=3, seed=1000 + number)
        for number, (name, data, inner) in enumerate(cells)
    ]
    text = log_markdown(entries)
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == ["| b | 76.00 | 90.00 | 83.00 |", "| a | 70.00 | 80.00 | 75.00 |", "| c | 99.00 |  |  |"]
    assert "6 evaluations of 3 candidates" in text
    assert "Inner folds of 3 outer ones, in the order of the file; seeds: X 4, Y 2." in text


def test_each_search_has_its_own_table():
    entries = [
        entry(search, "a", "X", inner, folds=folds)
        for search, folds, inner in [("first", 3, 70), ("second", 5, 80)]
    ]
    text = log_markdown(entries)
    assert text.startswith("**first**\n\n| candidate |")
    first, second = text.split("**second**")
    assert "| a | 70.00 | 70.00 |" in first
    assert "| a | 80.00 | 80.00 |" in second
    assert "2 evaluations of 1 candidates" in text
