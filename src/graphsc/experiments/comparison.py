"""Comparisons: methods by data sets, with both deviations and tests, from new or stored results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import check_writable, write_atomic
from graphsc.data.datasets.catalog import NAMED
from graphsc.evaluation.protocol import Protocol
from graphsc.evaluation.significance import (
    Summary,
    WilcoxonResult,
    average_ranks,
    complete,
    corrected_t_test,
    holm,
    summarise,
    wilcoxon,
)
from graphsc.experiments.plan import CONTROL, MOST_SEEDS
from graphsc.experiments.published import published
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.runner import probe_results, run_trials
from graphsc.experiments.selection import Rule, best_epoch
from graphsc.experiments.trial import ProbeTrial
from graphsc.methods import METHODS, trains
from graphsc.methods.registry import ENCODER
from graphsc.training.callbacks import Reporter

ENDINGS = (".md", ".csv", ".tex", ".png", ".svg")


@dataclass(frozen=True)
class Cell:
    """A method on a data set; accuracies in per cent."""

    summary: Summary
    difference: float | None = None  # from the control, over the seeds that both have
    p_value: float | None = None  # of that difference, corrected for the methods of the column
    published: tuple[float, float] | None = None
    leaky: bool = False
    # Deviation of the same embeddings on other folds, averaged over seeds. It is no deviation over runs.
    over_fold_seeds: float | None = None
    seeds: tuple[int, ...] = ()
    accuracies: tuple[tuple[float, ...], ...] = ()  # seeds x folds


@dataclass(frozen=True)
class Comparison:
    """Methods by data sets, with empty cells for trials that have not run."""

    methods: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    ranks: dict[str, float]  # over the columns that every method has; empty where there is none
    words: tuple[str, ...]  # the protocols in words; one, unless results of several protocols are mixed
    over_data: dict[str, WilcoxonResult] = field(default_factory=dict)  # each method against the control
    control: str = CONTROL  # the row that the others are tested against

    @property
    def leaky(self) -> bool:
        return any(cell.leaky for cell in self.cells.values())

    def _repr_html_(self) -> str:
        """What a notebook shows: the table with its notes."""
        from graphsc.experiments.tables import comparison_table

        return comparison_table(self).html()

    def means(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Methods x columns, nan where a cell is empty."""
        return np.array(
            [
                [self.cells[m, c].summary.mean if (m, c) in self.cells else np.nan for c in self.columns]
                for m in self.methods
            ]
        ).reshape(len(self.methods), len(self.columns))


def compare_results(
    results: Sequence[Result],
    *,
    labels: Sequence[str] = (),
    methods: Sequence[str] = (),
    columns: Sequence[str] = (),
    control: str = CONTROL,
) -> Comparison:
    """Arrange results as a comparison.

    Args:
        results: Results to compare, one per method, data set, seed and fold seed.
        labels: The row of each result; by default its method.
        methods: The rows and their order; by default as the results come.
        columns: The columns and their order; by default as the results come.
        control: The row that the others are tested against.
    """
    results = at_common_epochs(results, list(labels) or [row_name(result) for result in results])
    titles = column_names(results)
    grouped: dict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
    again: dict[tuple[str, str], dict[int, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for label, title, result in zip(labels or map(row_name, results), titles, results, strict=True):
        place = (label, title)
        again[place][result.seed].append(result)
        if result.resplit:
            continue
        if result.seed in grouped[place]:
            raise DataError(f"two results for {place[0]} on {place[1]}, seed {result.seed}")
        grouped[place][result.seed] = result
    rows = list(methods) or list(dict.fromkeys(place[0] for place in grouped))
    heads = list(columns) or list(dict.fromkeys(place[1] for place in grouped))
    cells: dict[tuple[str, str], Cell] = {}
    for head in heads:
        cells |= _column(head, {row: grouped[row, head] for row in rows if (row, head) in grouped}, control)
    for place, cell in cells.items():
        spreads = [
            np.std([100 * r.accuracy for r in some], ddof=1)
            for some in again[place].values()
            if len(some) > 1
        ]
        if spreads:
            cells[place] = replace(cell, over_fold_seeds=float(np.mean(spreads)))
    words = tuple(dict.fromkeys(result.words for result in results))
    table = Comparison(tuple(rows), tuple(heads), cells, {}, words, control=control)
    means = table.means()
    if not means.size:
        return table
    # Only columns that every method has: ranks among few and among many methods do not average.
    common = complete(means)
    ranks = dict(zip(rows, average_ranks(common).tolist(), strict=True)) if common.size else {}
    over = {}
    if control in rows:
        beside = means[rows.index(control)]
        over = {row: wilcoxon(means[i], beside) for i, row in enumerate(rows) if row != control}
    return replace(table, ranks=ranks, over_data=over)


def at_common_epochs(results: Sequence[Result], labels: Sequence[str]) -> list[Result]:
    """The results with the rule `legacy-leaky-common` applied; others are left as they are.

    Results with the same label and data set are seeds of one cell. The common epoch has the best mean test
    accuracy over the seeds that are there, each on its own folds.
    """
    cells: dict[tuple[str, str], list[Result]] = defaultdict(list)
    places = list(zip(labels, column_names(results), strict=True))
    for place, result in zip(places, results, strict=True):
        if result.trial["selection"] == "legacy-leaky-common" and not result.resplit:
            cells[place].append(result)
    epochs = {place: best_epoch([r.epoch_accuracies for r in seeds]) for place, seeds in cells.items()}
    return [
        result.at_epoch(epochs[place]) if result.by_epoch and place in epochs else result
        for place, result in zip(places, results, strict=True)
    ]


def row_name(result: Result) -> str:
    """The method, with its preset where that is not the default one."""
    preset = result.trial["preset"]
    return result.method if preset == "default" else f"{result.method} ({preset})"


def column_name(trial: Mapping[str, object]) -> str:
    """The data set of a trial's identity, with its features, share of labels and splitting where unusual."""
    unusual = []
    if trial["features"] != "auto":
        unusual.append(str(trial["features"]))
    protocol = cast(Mapping[str, object], trial["protocol"])
    if protocol["label_share"] != 1:
        unusual.append(f"{100 * cast(float, protocol['label_share']):g} % of labels")
    if protocol["splitting"] == "size":
        unusual.append("size shift")
    return f"{trial['data']} ({', '.join(unusual)})" if unusual else str(trial["data"])


def column_names(results: Sequence[Result | ProbeTrial]) -> list[str]:
    """The column of each result or trial. The hash tells data sets of one name and other graphs apart."""
    trials = [result.trial if isinstance(result, Result) else result.identity() for result in results]
    hashes: dict[str, set[str]] = defaultdict(set)
    for trial in trials:
        hashes[column_name(trial)].add(str(trial["graphs"]))
    return [
        name if len(hashes[name]) == 1 else f"{name} [{str(trial['graphs'])[:6]}]"
        for trial in trials
        for name in [column_name(trial)]
    ]


def _column(head: str, column: dict[str, dict[int, Result]], control: str) -> dict[tuple[str, str], Cell]:
    _check_same_graphs(head, column)
    beside = column.get(control, {})
    tested: dict[str, tuple[float, float]] = {}
    for row, by_seed in column.items():
        common = sorted(by_seed.keys() & beside.keys())
        if row == control or not common:
            continue
        differences = np.stack([by_seed[s].accuracies - beside[s].accuracies for s in common])
        test = corrected_t_test(differences, 1 / differences.shape[1])
        tested[row] = (100 * test.mean, test.p_value)
    corrected = dict(zip(tested, holm([p for _, p in tested.values()]).tolist(), strict=True))
    return {
        (row, head): Cell(
            summary=summarise(100 * np.stack([by_seed[s].accuracies for s in sorted(by_seed)])),
            difference=tested[row][0] if row in tested else None,
            p_value=corrected.get(row),
            published=_published(row, next(iter(by_seed.values()))),
            leaky=any(result.leaky for result in by_seed.values()),
            seeds=tuple(sorted(by_seed)),
            accuracies=tuple(tuple((100 * by_seed[s].accuracies).tolist()) for s in sorted(by_seed)),
        )
        for row, by_seed in column.items()
    }


def _published(row: str, result: Result) -> tuple[float, float] | None:
    """The published number, if it is of these graphs and this is evaluated as in the main tables."""
    if not result.evaluated_whole:
        return None
    named = NAMED.get(result.data.lower())
    if named is not None and named.content_hash not in (None, result.trial["graphs"]):
        return None
    return published().get(row, {}).get(result.data)


def _check_same_graphs(head: str, column: dict[str, dict[int, Result]]) -> None:
    """Paired tests need the same graphs in the same folds."""
    for seed in {seed for by_seed in column.values() for seed in by_seed}:
        here = [by_seed[seed] for by_seed in column.values() if seed in by_seed]
        first = here[0]
        for other in here[1:]:
            same = np.array_equal(first.fold, other.fold) and np.array_equal(first.labels, other.labels)
            if not same:
                raise DataError(
                    f"{first.method} and {other.method} were evaluated on other folds of {head}, seed {seed}",
                    hint="compare results of one data set and one number of folds",
                )


def compare(
    sources: str | Sequence[str],
    methods: str | Sequence[str],
    *,
    seeds: int = 5,
    first_seed: int = 0,
    features: str = "auto",
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    preset: str = "default",
    encoder: str = ENCODER,
    settings: Mapping[str, object] | None = None,
    training: Mapping[str, object] | None = None,
    protocol: Protocol | None = None,
    selection: Rule = "last",
    inductive: bool = False,
    fold_seeds: int = 1,
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    results: str | Path = "results",
    runs: str | Path = "runs",
    reporter: Reporter | None = None,
) -> Comparison:
    """Train and evaluate methods on the same graphs and folds. Stored results are used again.

    Args:
        sources: Names and paths that `open_collection` takes. Save graphs in memory before: a result belongs
            to a source that can be read again.
        methods: Methods by name.
        seeds: Repetitions; each is a whole repetition of initialisation, training and folds.
        reader: The reader of all sources; guessed by default.
        options: Options of the reader.

        encoder: An encoder by name, of all methods that have one.
        settings: Settings of every method.
        training: Settings of the training loop; methods that do not train ignore them.
        fold_seeds: How many foldings each seed's embeddings are evaluated on.
        jobs: Trials at a time; None for as many as there are cores, or workers.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`.
        device: `auto`, `cpu`, `cuda` or `mps`. Local processes share the GPUs there are.
        results: Folder of stored results.
        runs: Parent folder of training runs.
    """
    sources = [sources] if isinstance(sources, str) else list(sources)
    methods = [methods] if isinstance(methods, str) else list(methods)
    for kind, values in (("source", sources), ("method", methods)):
        for value in values:
            if not isinstance(value, str):
                hint = "save the graphs and give the path: open_collection(graphs).save(PATH)"
                if kind == "method":
                    hint = "register it, by METHODS.register(NAME)(MethodEntry(...)), and give the name"
                found = type(value).__name__
                raise ConfigError(f"a {kind} of a comparison is a name, not a {found}", hint=hint)
    if min(seeds, fold_seeds) < 1 or not methods:
        raise ConfigError("a comparison needs at least one method, one seed and one fold seed")
    if max(seeds, fold_seeds) > MOST_SEEDS:
        raise ConfigError(f"{max(seeds, fold_seeds):,} seeds asked", hint=f"use up to {MOST_SEEDS:,}")
    trials = [
        ProbeTrial(
            data=source,
            method=method,
            seed=seed,
            features=features,
            reader=reader,
            options=options or {},
            preset=preset,
            encoder=encoder,
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
    reporter = reporter or Reporter()
    for method in methods:
        if training and not trains(method):
            names = ", ".join(f"training.{key}" for key in training)
            reporter.log(f"note: {method} does not train; {names} ignored")
        if encoder != ENCODER and METHODS.get(method).kind != "trained":
            reporter.log(f"note: {method} has no encoder; {encoder} is ignored")
    trials = [again for trial in trials for again in trial.resplit(fold_seeds)]
    outcomes = run_trials(
        trials, ResultStore(results), runs, jobs=jobs, reporter=reporter, cluster=cluster, device=device
    )
    return compare_results(probe_results(outcomes))


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, or its ending, before anything runs."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write a comparison to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(ENDINGS)}",
        )  # fmt: skip
    check_writable(path)


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the table as Markdown, LaTeX or CSV, or the critical-difference diagram as a picture."""
    check_target(path)
    if path.suffix in (".png", ".svg"):
        from graphsc.evaluation.significance import average_ranks, complete, critical_difference
        from graphsc.report.critical_difference import critical_difference_diagram
        from graphsc.report.figure import save_figure

        table = complete(comparison.means())
        if len(comparison.methods) < 2 or not table.shape[1]:
            raise ConfigError("ranks need two methods and a data set that all of them have")
        ranks = dict(zip(comparison.methods, average_ranks(table).tolist(), strict=True))
        save_figure(critical_difference_diagram(ranks, critical_difference(*table.shape)), path)
        return
    from graphsc.experiments.tables import comparison_table, full_table

    if path.suffix == ".csv":
        text = full_table(comparison).csv()
    else:
        wide = comparison_table(comparison, title="" if path.suffix == ".md" else "Accuracy in per cent")
        text = wide.markdown() if path.suffix == ".md" else wide.latex()
    write_atomic(path, text)
