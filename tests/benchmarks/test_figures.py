"""The page on speed shows what is stored, and every row is described and can be run by name."""

import json
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.measure import Result
from benchmarks.rows import ROWS

ROOT = Path(__file__).parents[2]
NOT_ROWS = {"__init__", "__main__", "cases", "figures", "measure", "peer", "rows"}
FACTS = {
    "cpu": "A CPU",
    "cores": 2,
    "system": "Linux x86_64",
    "threads": 1,
    "python": "3.11",
    "rdkit": "missing",
}
TEMPLATE = "".join(
    f"<!-- figures: {name} -->\nwritten before\n<!-- end -->\n"
    for name in ("summary", "rows", "results-training", "results-other")
)


def made(benchmark="start", case="a case", ratio=2.0, note="", unit="ms"):
    return Result(
        benchmark, case, 12.0, 6.0, 11.0, 5.0, ratio, 2.5, 3.0, None, "lower", "numpy", note, 7, unit
    )  # fmt: skip


def test_page_is_what_the_command_writes_from_the_stored_results():
    pages = [path.read_text(encoding="utf-8") for path in figures.PAGES]
    assert [page.count("<!-- figures:") for page in pages] == [2, 1, 1]
    for page in pages:
        assert figures.fill(page, figures.load()) == page


def test_every_measured_row_is_on_one_of_the_pages():
    text = "".join(path.read_text(encoding="utf-8") for path in figures.PAGES)
    assert all(text.count(f"\n## {name}\n") == 1 for name in figures.load())
    assert set(figures.TRAINING) < set(ROWS)


def test_every_module_is_a_row_and_every_row_a_module():
    modules = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - NOT_ROWS
    assert modules == set(ROWS)


def test_storing_a_row_replaces_it_and_keeps_the_others(tmp_path):
    path = tmp_path / "results.json"
    figures.store("start", FACTS, [made()], path)
    figures.store("encoder", FACTS, [made("encoder")], path)
    figures.store("start", FACTS, [made(case="another")], path)
    stored = figures.load(path)
    assert list(stored) == ["encoder", "start"]  # in the order of the rows
    assert [result.case for result in stored["start"][1]] == ["another"]
    assert stored["encoder"] == (FACTS, [made("encoder")])
    assert "date" not in path.read_text()


def test_misses_are_shown_as_misses():
    stored = {"start": (FACTS, [made(), made(case="slow one", ratio=3.2)])}
    page = figures.fill(TEMPLATE, stored)
    assert "2 cases of 1 rows: 0 reach the goal, 1 pass, 1 miss the bar." in page
    assert "| `start` | slow one | numpy | 3.20 | ≤ 3 |" in page
    assert "| slow one | 12 / 11 | numpy | 6 / 5 | 3.20 | 2.50 | ≤ 3 | 7 | **MISSED** |" in page
    assert "| a case | 12 / 11 | numpy | 6 / 5 | 2.00 | 2.50 | ≤ 3 | 7 | pass |" in page
    assert "written before" not in page


def test_rows_without_results_are_named():
    page = figures.fill(TEMPLATE, {"start": (FACTS, [made()])})
    assert "Not measured yet: `sparse`, `encoder`" in page
    assert "has not run yet" in figures.fill(TEMPLATE, {})


def test_machines_are_named_once_or_beside_their_rows():
    other = FACTS | {"cpu": "B CPU"}
    same = figures.fill(TEMPLATE, {"encoder": (FACTS, [made("encoder")]), "start": (FACTS, [made()])})
    assert same.count("A CPU, 2 cores, Linux x86_64, 1 thread; python 3.11.") == 1
    mixed = figures.fill(TEMPLATE, {"encoder": (other, [made("encoder")]), "start": (FACTS, [made()])})
    assert "Measured on" not in mixed
    assert mixed.index("On B CPU") < mixed.index("## start") < mixed.index("On A CPU")


def test_units_other_than_time_stand_beside_their_values():
    results = [made(), made(case="memory", unit="MB")]
    page = figures.fill(TEMPLATE, {"read": (FACTS, results)})
    assert "12 / 11 MB" in page
    assert "12 / 11 ms" in page


def test_a_note_of_all_cases_is_written_once():
    results = [made(case=case, note="rows are counted") for case in ("one", "two")]
    page = figures.fill(TEMPLATE, {"start": (FACTS, results)})
    assert page.count("ows are counted") == 1
    page = figures.fill(TEMPLATE, {"start": (FACTS, [*results, made(case="three")])})
    assert "one, two: rows are counted." in page


def test_machine_facts_have_no_date_and_name_cpu_and_versions():
    import torch

    facts = figures.machine_facts(1)
    assert facts["torch"] == torch.__version__
    assert facts["cores"] >= 1
    assert facts["cpu"]
    assert not {"date", "time", "host", "hostname", "user"} & set(facts)


def test_an_unknown_row_is_one_sentence(capsys):
    from benchmarks.__main__ import main

    assert main(["--rows", "sparze"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("there is no row 'sparze'; did you mean 'sparse'?")
    assert said.count("\n") == 1


def test_a_row_without_its_data_is_skipped_and_said(tmp_path, monkeypatch, capsys):
    from benchmarks import __main__ as program

    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(figures, "PAGES", (tmp_path / "speed.md",))
    (tmp_path / "speed.md").write_text(TEMPLATE)
    monkeypatch.chdir(tmp_path)
    assert program.main(["--rows", "embed,wl"]) == 0
    said = capsys.readouterr().err
    assert "embed: skipped: " in said
    assert "wl: skipped: none of its data sets was found" in said
    assert not (tmp_path / "results.json").exists()
    assert "has not run yet" in (tmp_path / "speed.md").read_text()


def test_stored_json_can_be_read_by_others(tmp_path):
    figures.store("start", FACTS, [made()], tmp_path / "r.json")
    stored = json.loads((tmp_path / "r.json").read_text())
    assert stored["start"]["machine"] == FACTS
    assert stored["start"]["results"][0]["ratio"] == 2.0


@pytest.mark.parametrize("name", ROWS)
def test_every_row_says_what_is_equal_and_what_is_not(name):
    row = ROWS[name]
    assert row.equal
    assert row.different
    assert not row.ours.endswith(".")
