"""Train and judge several methods on the same graphs and folds: the protocol, as one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.plan import MOST_SEEDS
from graphsc.experiments.run_all import check_outcomes, run_all
from graphsc.experiments.selection import Rule
from graphsc.experiments.store import ResultStore
from graphsc.experiments.table import to_csv, to_markdown
from graphsc.experiments.trial import Trial

ENDINGS = (".md", ".csv", ".png", ".svg")


def compare(
    sources: Sequence[str],
    methods: Sequence[str],
    *,
    seeds: int = 5,
    first_seed: int = 0,
    features: str = "auto",
    preset: str = "default",
    settings: Mapping[str, object] | None = None,
    training: Mapping[str, object] | None = None,
    protocol: Protocol | None = None,
    selection: Rule = "last",
    inductive: bool = False,
    fold_seeds: int = 1,
    jobs: int = 1,
    results: str | Path = "results",
    runs: str | Path = "runs",
    say: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """A table of methods by data sets. Stored results are used again; `settings` go to every method."""
    if min(seeds, fold_seeds) < 1 or not methods:
        raise ConfigError("a comparison needs at least one method, one seed and one fold seed")
    if max(seeds, fold_seeds) > MOST_SEEDS:
        raise ConfigError(f"{max(seeds, fold_seeds):,} seeds asked", hint=f"use up to {MOST_SEEDS:,}")
    trials = [
        Trial(
            data=source,
            method=method,
            seed=seed,
            features=features,
            preset=preset,
            settings=settings or {},
            training=training or {},
            protocol=protocol or Protocol(),
            selection=selection,
            inductive=inductive,
        )
        for source in sources
        for seed in range(first_seed, first_seed + seeds)
        for method in methods
    ]
    for trial in trials:
        trial.identity()  # a wrong setting is refused before anything runs
    trials = [again for trial in trials for again in trial.resplit(fold_seeds)]
    outcomes = run_all(trials, ResultStore(results), runs, jobs=jobs, say=say)
    return compare_results(check_outcomes(outcomes))


def check_target(path: Path) -> None:
    """Refuse a file we could not write before anything runs."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write a comparison to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(ENDINGS)}",
        )  # fmt: skip


def write_comparison(found: Comparison, path: Path) -> None:
    """The table as Markdown or CSV, or the critical-difference diagram as a picture."""
    check_target(path)
    if path.suffix in (".png", ".svg"):
        from graphsc.evaluation.significance import average_ranks, complete, critical_difference
        from graphsc.report.critical_difference import critical_difference_diagram
        from graphsc.report.figure import save_figure

        table = complete(found.means())
        if len(found.methods) < 2 or not table.shape[1]:
            raise ConfigError("ranks need two methods and a data set that all of them have")
        ranks = dict(zip(found.methods, average_ranks(table).tolist(), strict=True))
        save_figure(critical_difference_diagram(ranks, critical_difference(*table.shape)), path)
        return
    write_atomic(path, to_markdown(found) if path.suffix == ".md" else to_csv(found))
