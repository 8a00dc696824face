"""Pages: tables are rebuilt between their marks from stored results, the rest is left as it is."""

import re
from pathlib import Path

import numpy as np
import pytest

from graphsc.cli.main import run
from graphsc.core.errors import ConfigError
from graphsc.evaluation.metrics import Task
from graphsc.experiments.plan import read_plan
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import run_trials
from graphsc.finetuning.result import HeldOutScores, TransferResult
from graphsc.paper.pages import FIGURE, rebuild_tables, write_part, write_tables

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


@pytest.mark.parametrize(
    "page", ["docs/results.md", "docs/conditions.md", "docs/does-it-learn.md", "README.md"]
)
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


FIGURES = (
    "It has <!-- value: small; raw; motifs:30 -->1<!-- / -->, which is\n"
    "<!-- gain: small; raw; untrained; motifs:30 -->2<!-- / --> points from the other, has the rank "
    "<!-- rank: small; raw --><!-- / -->, and is above it on "
    "<!-- above: small; raw -->x<!-- / --> and below it on <!-- below: small; raw -->x<!-- / -->.\n"
)


def words_of(text):
    return re.findall(r"-->([^<]*)<!-- / -->", text)


def test_figures_in_sentences_are_those_of_the_table(plan, tmp_path):
    store = ResultStore(tmp_path / "results")
    assert words_of(rebuild_tables(FIGURES, plan, store)) == ["(not run yet)"] * 5
    run_trials(plan[0].trials(), store, tmp_path / "runs")
    value, gain, rank, above, below = words_of(rebuild_tables(FIGURES, plan, store))
    mean = {
        method: 100 * np.mean([result.accuracy for result in store.all() if result.method == method])
        for method in ("raw", "untrained")
    }
    assert value == f"{mean['raw']:.2f}"
    assert gain == f"{mean['raw'] - mean['untrained']:+.2f}"
    assert float(rank) == (
        1 if mean["raw"] > mean["untrained"] else 2 if mean["raw"] < mean["untrained"] else 1.5
    )
    table = rebuild_tables(TABLE, plan, store)
    assert f"| raw | {value} ±" in table.replace("**", "")
    row = next(line for line in table.splitlines() if line.startswith("| raw"))
    assert above == f"{row.count(chr(92) + '*')} of 1"  # an escaped star
    assert below == f"{row.count('†')} of 1"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("value: other; raw; motifs:30", "a table 'other'"),
        ("value: small; raw", "too many or too few parts"),
        ("rank: small; grahpsc", "a row that its table does not have"),
    ],
)
def test_a_figure_that_no_table_has_is_refused(plan, tmp_path, mark, said):
    store = ResultStore(tmp_path / "results")
    run_trials(plan[0].trials()[:2], store, tmp_path / "runs")
    with pytest.raises(ConfigError, match=said):
        rebuild_tables(f"<!-- {mark} -->x<!-- / -->", plan, store)


PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "results.md",
    ROOT / "docs" / "conditions.md",
    ROOT / "docs" / "does-it-learn.md",
]
# An accuracy, a difference in points, or a number of data sets, as a sentence would quote them.
QUOTED = re.compile(
    r"\b[0-9]{2}\.[0-9]+\b|\b[0-9.]+ (?:to [0-9.]+ )?points?\b"
    r"|\b(?:one|two|three|four|five|six|seven|none|[0-9])(?: data sets?)? of (?:seven|eight|[0-9])\b"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_quotes_a_result_that_is_not_filled_in_from_its_table(page):
    """Pages contradicted each other where the same number was typed into several of them."""
    text = FIGURE.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"<!-- (?:table: )?[\w-]+ -->.*?<!-- end -->", "", text, flags=re.S)
    assert QUOTED.findall(text) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_hold_what_the_stored_results_give(page):
    text = page.read_text(encoding="utf-8")
    assert (
        rebuild_tables(text, read_plan(ROOT / "results" / "plan.yaml"), ResultStore(ROOT / "results")) == text
    )


def test_figures_of_transfer_tables_are_values_gains_and_averages(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "transfer:\n  pretraining: {data: moses, molecules: 1000}\n  tables:\n    frozen:\n      title: F\n"
        "      trials:\n        - {data: [bace, bbbp], way: frozen, methods: [none, graphsc]}\n"
    )
    plan, store = read_plan(tmp_path / "plan.yaml"), ResultStore(tmp_path)
    for trial in plan[0].trials():
        if (trial.method, trial.data) != ("none", "bbbp"):
            above = 60 if trial.method == "none" else 80 if trial.data == "bace" else 70
            task = Task(np.append(1.0, np.zeros(100)), np.append(above - 0.5, np.arange(100.0)))
            rules = {"fit": HeldOutScores.of([task], [], "classification")}
            parts = np.array([0, 1, 2])
            store.put(trial, TransferResult({}, {}, ("t",), "classification", parts, rules, "Words."))
    marks = (
        "value: frozen; graphsc; BACE", "gain: frozen; graphsc; none; BACE",
        "value: frozen; graphsc; average", "value: frozen; none; average",
    )  # fmt: skip
    text = " ".join(f"<!-- {mark} --><!-- / -->" for mark in marks)
    assert words_of(rebuild_tables(text, plan, store)) == ["80.00", "+20.00", "75.00", "(not run yet)"]
    with pytest.raises(ConfigError, match="no cell 'graphcl', 'BACE'"):
        rebuild_tables("<!-- value: frozen; graphcl; BACE --><!-- / -->", plan, store)


@pytest.mark.parametrize(
    ("what", "page"),
    [
        ("ablation", "methods/graphsc-plus.md"),
        ("frozen-valid", "pretraining.md"),
        ("frozen-test", "pretraining.md"),
    ],
)
def test_tables_of_frozen_vectors_equal_the_stored_scores(what, page, tmp_path):
    """A number changed by hand is put right by the command, and nothing else changes."""
    before = (ROOT / "docs" / page).read_text()
    begin = before.index(f"<!-- {what} -->")
    row = before.index("| ECFP |" if what == "ablation" else "| ecfp |", begin)
    copy = tmp_path / "page.md"
    copy.write_text(before[:row] + before[row:].replace(".", ",", 1))
    assert copy.read_text() != before
    assert run(["reproduce", what, "--page", str(copy), "--results", str(ROOT / "results")]) == 0
    assert copy.read_text() == before
