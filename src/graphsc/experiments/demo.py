"""The demo: compares methods on real graphs and writes a report of one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from graphsc.core.errors import NotFoundError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.result import ResultStore
from graphsc.experiments.run_report import comparison_report
from graphsc.experiments.runner import probe_results, run_trials
from graphsc.experiments.trial import ProbeTrial
from graphsc.report.html import write_report
from graphsc.training.callbacks import Reporter

METHODS = ("raw", "untrained", "graphcl", "graphsc")


@dataclass(frozen=True)
class Demo:
    """The graphs, the comparison and the report of a demo."""

    collection: GraphCollection
    comparison: Comparison
    report: Path


def run_demo(
    out: Path,
    *,
    data: str | None = None,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    seeds: int = 5,
    jobs: int = 1,
    reporter: Reporter | None = None,
) -> Demo:
    """Compare methods on MUTAG, or on synthetic graphs where MUTAG is not installed.

    Args:
        out: Folder for runs, results and the report.
        data: Other labelled graphs than MUTAG.
        reader: The reader of `data`; guessed by default.
        options: Options of the reader.
        seeds: Repetitions.
        jobs: Trials at a time.
        reporter: Shows progress.
    """
    source, collection = _graphs(data, reader, options or {})
    trials = [
        ProbeTrial(source, method, seed, reader=reader, options=options or {})
        for seed in range(seeds)
        for method in METHODS
    ]
    results = probe_results(
        run_trials(trials, ResultStore(out / "results"), out / "runs", jobs=jobs, reporter=reporter)
    )
    comparison = compare_results(results)
    page = out / "report.html"
    write_report(page, comparison_report(comparison, results, trials, out / "runs", collection))
    return Demo(collection, comparison, page)


def _graphs(
    data: str | None, reader: str | None, options: Mapping[str, object]
) -> tuple[str, GraphCollection]:
    if data is not None:
        return data, open_collection(data, reader=reader, **options)
    try:
        return "mutag", open_collection("mutag")
    except NotFoundError:
        return "motifs", open_collection("motifs")
