"""Plans are read strictly, and their tables come from stored results."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.experiments.plan import read_plan
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import run_trials
from graphsc.experiments.tables import table_text

PLAN = """
tables:
  small:
    title: A small table
    trials:
      - {data: ["motifs:30"], methods: [raw, untrained], seeds: 2, folds: 3}
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return read_plan(path)


def test_a_block_is_a_product_seed_by_seed(plan):
    trials = [(trial.seed, trial.method) for trial in plan[0].trials()]
    assert trials == [(0, "raw"), (0, "untrained"), (1, "raw"), (1, "untrained")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tables: 3", "a table under each name"),
        ("tables: {}\nmore: 1", "`tables` and `transfer`"),
        ("tables: {t: {title: x}}", "`title` and `trials`"),
        ("tables: {t: {title: x, trials: []}}", "list of blocks"),
        ("tables: {t: {title: x, trials: [3]}}", "block 1"),
        ("tables: {t: {title: x, trials: [{data: [m], methods: [raw], sedes: 1}]}}", "'seeds'"),
        ("tables: {t: {title: x, trials: [{data: [m], methods: [grahpsc]}]}}", "did you mean 'graphsc'"),
        ("tables: {t: {title: x, trials: [{data: [m], methods: [raw], seeds: 0}]}}", "1 or more"),
        ("tables: {t: {title: x, control: rwa, trials: [{data: [m], methods: [raw]}]}}", "no row 'rwa'"),
        ("tables: {t: {title: x, trials: [{data: [m], methods: [raw], selection: best}]}}", "selection"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path, text, message):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_plan(path)


def test_rows_are_tested_against_the_control_that_the_table_names(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "tables: {t: {title: x, control: raw, trials: "
        "[{data: ['motifs:60'], methods: [raw, untrained], features: [constant], seeds: 2}]}}"
    )
    plan = read_plan(tmp_path / "plan.yaml")[0]
    store = ResultStore(tmp_path / "results")
    run_trials(plan.trials(), store, tmp_path / "runs")
    text = table_text(plan, store)
    # Far above raw, which sees sizes only: a mark against raw, which has none against itself.
    assert next(line for line in text.splitlines() if line.startswith("| untrained")).count(r"\*") == 1
    assert r"\* significantly above *raw*" in text


def test_methods_of_a_table_are_those_of_blocks_without_any(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "tables: {t: {title: x, methods: [raw, untrained], trials: "
        "[{data: ['motifs:30']}, {data: ['motifs:40'], methods: [graphsc]}]}}"
    )
    (table,) = read_plan(tmp_path / "plan.yaml")
    assert [(trial.data, trial.method) for trial in table.trials()] == [
        ("motifs:30", "raw"), ("motifs:30", "untrained"), ("motifs:40", "graphsc"),
    ]  # fmt: skip


def test_a_column_without_results_is_empty_and_named(plan, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.replace('["motifs:30"]', '["motifs:30", "motifs:32"]'))
    table = read_plan(tmp_path / "plan.yaml")[0]
    store = ResultStore(tmp_path / "results")
    run_trials(plan[0].trials(), store, tmp_path / "runs")
    text = table_text(table, store)
    assert "| method | motifs:30 | motifs:32 | average rank |" in text
    assert "Not run: motifs:32 (all rows)." in text


INNER = """
tables:
  search:
    title: A search
    inner: true
    trials:
      - data: ["motifs:30"]
        methods: [untrained]
        seeds: 2
        folds: 3
        label: narrow
        settings: {encoder.width: 4}
      - data: ["motifs:30"]
        methods: [untrained]
        seeds: 2
        folds: 3
        label: wide
        settings: {encoder.width: 8}
"""


def test_an_inner_table_shows_inner_accuracies_by_label(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(INNER)
    (table,) = read_plan(path)
    store = ResultStore(tmp_path / "results")
    results = [outcome.result for outcome in run_trials(table.trials(), store, tmp_path / "runs")]
    expected = 100 * (results[0].inner_accuracy + results[1].inner_accuracy) / 2
    text = table_text(table, store)
    assert f"| narrow | {expected:.2f} |" in text
    assert "| wide |" in text
    assert "no outer test fold is looked at" in text


def test_variants_are_rows_with_their_own_settings(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text("""
tables:
  one:
    title: One change at a time
    trials:
      - data: [mutag]
        methods: [graphsc]
        settings: {factors: 8}
        training: {epochs: 3}
        variants:
          strong: {strong_rate: 0.4}
          slow: {training.learning_rate: 0.001, factors: 2}
""")
    rows = read_plan(path)[0].rows()
    assert [(name, trial.settings, trial.training) for name, trial in rows] == [
        ("strong", {"factors": 8, "strong_rate": 0.4}, {"epochs": 3}),
        ("slow", {"factors": 2}, {"epochs": 3, "learning_rate": 0.001}),
    ]
