"""The page on a comparison: its table, ranks and diagram, from stored results alone."""

import re

import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import compare, compare_results
from graphsc.experiments.comparison_report import BETTER, WORSE, is_results_folder, overview, results_report
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.run_report import runs_report
from graphsc.report.html import render_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three methods on two sets of graphs, two seeds each."""
    home = tmp_path_factory.mktemp("comparison")
    compare(
        ["motifs:24", "motifs:30"], ["raw", "untrained", "graphsc"], seeds=2, training={"epochs": 1},
        protocol=Protocol(folds=3), results=home / "results", runs=home / "runs",
    )  # fmt: skip
    return home / "results"


def results_of(folder):
    return [result for result in ResultStore(folder).all() if isinstance(result, Result)]


def test_a_folder_of_results_gives_one_page_over_all_data_sets(folder):
    assert is_results_folder(folder)
    page = runs_report([folder])
    assert page.title == "3 methods on 2 data sets"
    comparison = compare_results(results_of(folder))
    table = page.verdict.table
    assert list(table.headers) == ["Method", "Average rank", *comparison.columns]
    ranks = [float(row[1]) for row in table.rows]
    assert ranks == sorted(ranks)
    assert {row[0]: row[1] for row in table.rows} == {
        method: f"{rank:.2f}" for method, rank in comparison.ranks.items()
    }
    for row in table.rows:
        for text, column in zip(row[2:], comparison.columns, strict=True):
            accuracies = [
                100 * result.accuracy
                for result in results_of(folder)
                if result.method == row[0] and result.data == column
            ]
            mean, deviation = re.match(r"([0-9.]+)\s±\s([0-9.]+)", text).groups()
            assert float(mean) == pytest.approx(np.mean(accuracies), abs=0.051)
            assert float(deviation) == pytest.approx(np.std(accuracies, ddof=1), abs=0.051)
    assert page.verdict.figure.title == "Critical-difference diagram"


def test_one_data_set_is_counted_in_the_singular(tmp_path):
    compare(
        ["motifs:24"], ["raw", "untrained"], seeds=2, protocol=Protocol(folds=3),
        results=tmp_path / "results", runs=tmp_path / "runs",
    )  # fmt: skip
    page = runs_report([tmp_path / "results"])
    assert page.title == "2 methods on 1 data set"
    assert "1 data sets" not in page.lead


def test_methods_are_folded_below_and_no_fact_is_repeated(folder):
    page = results_report(folder)
    assert {part.title for part in page.parts} == {"raw", "untrained", "graphsc"}
    assert all(part.folded and not part.protocol and not part.environment for part in page.parts)
    text = render_report(page)
    assert text.count("<details>") == 6  # each method, and its settings
    assert text.count("A seed is a whole repetition") == 1
    assert [table.title for table in page.parts[0].tables] == [
        "motifs:24: scores by class", "motifs:30: scores by class",
    ]  # fmt: skip


def test_settings_that_differ_are_in_the_name_of_a_row(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "results")
    compare(
        ["motifs:24"], ["graphsc"], seeds=2, training={"epochs": 2}, protocol=Protocol(folds=3),
        results=tmp_path / "results", runs=tmp_path / "runs",
    )  # fmt: skip
    rows = [row[0] for row in results_report(tmp_path / "results").verdict.table.rows]
    assert any(re.fullmatch(r"graphsc \(.*epochs=1.*\)", row) for row in rows)
    assert any(re.fullmatch(r"graphsc \(.*epochs=2.*\)", row) for row in rows)


def test_a_significantly_worse_method_points_down(folder):
    """The same results, in which one method is always wrong."""
    from dataclasses import replace

    results = [
        replace(result, predictions=1 - result.labels) if result.method == "raw" else
        replace(result, predictions=result.labels.copy()) if result.method == "untrained" else result
        for result in results_of(folder)
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for result in results:  # some noise: without any, there is no deviation to test with
        flip = rng.random(len(result.labels)) < 0.1
        result.predictions[flip] = 1 - result.predictions[flip]
    table = overview(results, [result.method for result in results], "").verdict.table
    rows = {row[0]: row[2:] for row in table.rows}
    assert all(WORSE in text and BETTER not in text for text in rows["raw"])
    assert WORSE not in "".join(rows["untrained"])


def test_results_and_runs_do_not_share_a_report(folder, tmp_path):
    with pytest.raises(ConfigError, match="a report of their own"):
        runs_report([folder, tmp_path])
