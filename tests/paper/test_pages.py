"""Pages: tables are rebuilt between their marks from stored results, the rest is left as it is."""

from pathlib import Path

import pytest

from graphsc.core.errors import ConfigError
from graphsc.experiments.plan import read_plan
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import run_trials
from graphsc.paper.pages import rebuild_tables, write_part, write_tables

ROOT = Path(__file__).parents[2]
PLAN = """
tables:
  small:
    title: A small table
    trials:
      - {data: ["motifs:30"], methods: [raw, untrained], seeds: 2, folds: 3}
"""
TABLE = "before\n<!-- table: small -->\nprevious text\n<!-- end -->\nafter\n"
PAGE = "before\n<!-- figure1 -->\nold\n<!-- end -->\nbetween\n<!-- figure4 -->\n<!-- end -->\nafter\n"


def test_only_the_part_of_that_name_changes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    write_part(page, "figure4", "new \\1\n")
    assert page.read_text() == PAGE.replace("<!-- figure4 -->\n", "<!-- figure4 -->\n\nnew \\1\n\n")


def test_an_unchanged_part_is_not_written_again(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert write_part(page, "figure1", "new\n")
    assert page.read_text().startswith("before\n<!-- figure1 -->\n\nnew\n\n<!-- end -->\nbetween\n")
    assert not write_part(page, "figure1", "new\n")


def test_a_page_without_marks_is_refused_and_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(ConfigError, match="no place for figure5"):
        write_part(page, "figure5", "new\n")
    assert page.read_text() == PAGE


def test_a_missing_page_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the page"):
        write_part(tmp_path / "page.md", "figure1", "new\n")


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return read_plan(path)


def test_a_table_without_results_says_so(plan, tmp_path):
    text = rebuild_tables(TABLE, plan, ResultStore(tmp_path))
    assert "none of 4 trials has run" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_a_table_is_rebuilt_from_stored_results_once(plan, tmp_path):
    store = ResultStore(tmp_path / "results")
    run_trials(plan[0].trials()[:3], store, tmp_path / "runs")
    page = tmp_path / "page.md"
    page.write_text(TABLE)
    assert write_tables(page, plan, store)
    text = page.read_text()
    assert "1 of 4 trials have not run yet" in text
    assert "| untrained |" in text
    assert "previous text" not in text
    assert not write_tables(page, plan, store)


def test_a_table_that_is_not_in_the_plan_is_named(plan, tmp_path):
    with pytest.raises(ConfigError, match="other"):
        rebuild_tables(TABLE.replace("small", "other"), plan, ResultStore(tmp_path))


@pytest.mark.parametrize("page", ["docs/results.md", "docs/does-it-learn.md", "README.md"])
def test_the_tables_in_the_documentation_equal_the_stored_results(page):
    """`make results` changes nothing: no number on these pages is typed in."""
    text = (ROOT / page).read_text()
    assert "<!-- table:" in text
    plan = read_plan(ROOT / "results" / "plan.yaml")
    assert rebuild_tables(text, plan, ResultStore(ROOT / "results")) == text


def test_the_plan_of_the_documentation_has_eight_data_sets_and_one_protocol():
    tables = {table.name: table for table in read_plan(ROOT / "results" / "plan.yaml")}
    seeds = {}
    for trial in tables["systems"].trials():
        seeds.setdefault(trial.data, set()).add(trial.seed)
    assert {data: len(found) for data, found in seeds.items()} == {
        "mutag": 5, "proteins": 5, "imdb-binary": 5, "nci1": 3, "dd": 3, "reddit-binary": 3, "collab": 3,
        "reddit-multi-5k": 3,
    }  # fmt: skip
    orders = {trial.protocol.inner_order for table in tables.values() for trial in table.trials()}
    assert orders == {"shuffled"}
