"""The main job on real graphs: compare, judge, and write it all on one page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphsc.core.errors import NotFoundError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.report import comparison_report
from graphsc.experiments.run_all import check_outcomes, run_all
from graphsc.experiments.store import ResultStore
from graphsc.experiments.trial import Trial
from graphsc.report.html import write_report

METHODS = ("raw", "untrained", "graphcl", "graphsc")


@dataclass(frozen=True)
class Demo:
    """What the demo made."""

    collection: GraphCollection
    comparison: Comparison
    report: Path


def run_demo(
    out: Path,
    *,
    data: str | None = None,
    seeds: int = 5,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Demo:
    """Compare methods on MUTAG, or on generated graphs where the extra that carries MUTAG is missing."""
    source, collection = _graphs(data)
    trials = [Trial(source, method, seed) for seed in range(seeds) for method in METHODS]
    results = check_outcomes(run_all(trials, ResultStore(out / "results"), out / "runs", jobs=jobs, say=say))
    found = compare_results(results)
    page = out / "report.html"
    write_report(page, comparison_report(found, results, trials, out / "runs", collection))
    return Demo(collection, found, page)


def _graphs(data: str | None) -> tuple[str, GraphCollection]:
    if data is not None:
        return data, open_collection(data)
    try:
        return "mutag", open_collection("mutag")
    except NotFoundError:
        return "motifs", open_collection("motifs")
