"""`graphsc evaluate` and `graphsc compare`: how good embeddings are, by one protocol."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import (
    check_encoder,
    check_ending,
    check_method,
    check_run,
    check_settings,
    check_source,
)
from graphsc.cli.data import (
    READ_AS_USUAL,
    ClusterOption,
    FeaturesOption,
    FullOption,
    JsonOption,
    ReaderOptions,
)
from graphsc.cli.train import DeviceOption, SetOption

if TYPE_CHECKING:
    from graphsc.experiments.comparison import Comparison
    from graphsc.experiments.run_evaluation import RunEvaluation

SelectionOption = Annotated[
    Literal["last", "validation", "label-free", "legacy-leaky", "legacy-leaky-common"],
    Parameter(help="Which epoch is evaluated; legacy-leaky rules take the best test accuracy."),
]
ClassifierOption = Annotated[
    Literal["svm", "linear-svm", "logistic", "knn"], Parameter(help="What reads classes off the vectors.")
]
ScaleOption = Annotated[
    Literal["raw", "standardised"], Parameter(help="Vectors as they are, or each column standardised.")
]
FoldsOption = Annotated[int, Parameter(help="Outer folds; each graph is tested once.")]
JobsOption = Annotated[int | None, Parameter(help="Parallel processes; by default one per core.")]


def evaluate(
    run: Annotated[Path, Parameter(help="A run's folder.")],
    source: Annotated[
        str | None, Parameter(help="The run's graphs, if they have moved; by default where they were.")
    ] = None,
    /,
    *,
    selection: SelectionOption = "last",
    classifier: ClassifierOption = "svm",
    scale: ScaleOption = "raw",
    folds: FoldsOption = 10,
    fold_seeds: Annotated[int, Parameter(help="Re-split the same embeddings this often.")] = 1,
    few_labels: Annotated[
        bool, Parameter(negative=(), help="Also with 1, 5, 10, 50 and 100 % of the labels.")
    ] = False,
    clusters: Annotated[bool, Parameter(negative=(), help="Also cluster, without labels.")] = False,
    jobs: JobsOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: FullOption = False,
) -> None:
    """Evaluate a finished run on the folds of its own seed.

    The run's graphs are read as they were in training, wherever this command is run.

    Example: graphsc evaluate runs/mutag --few-labels
    """
    check_run(run)
    if source is not None:
        check_source(source, reading)
    from graphsc.cli.output import print_facts, print_json
    from graphsc.evaluation.protocol import Protocol
    from graphsc.experiments.run_evaluation import evaluate_run, store_result

    evaluated = evaluate_run(
        run, source, reader=reading.reader, options=reading.options(),
        protocol=Protocol(classifier=classifier, scale=scale, folds=folds), selection=selection,
        fold_seeds=fold_seeds, few=few_labels, clusters=clusters, jobs=jobs or os.cpu_count() or 1,
    )  # fmt: skip
    store_result(evaluated.result, run)
    if json:
        print_json(_as_json(evaluated, full))
        return
    print_facts(str(run), _as_facts(evaluated))


def _as_facts(evaluated: RunEvaluation) -> list[tuple[str, object]]:
    import numpy as np

    found = evaluated.evaluation
    facts: list[tuple[str, object]] = [
        ("accuracy", f"{100 * found.accuracy:.2f} %"),
        ("deviation over folds", f"{100 * found.deviation:.2f}"),
        ("evaluated epochs", ", ".join(map(str, sorted(set(evaluated.result.epochs))))),
    ]
    if evaluated.resplit:
        again = 100 * np.array(evaluated.resplit)
        facts.append(
            (f"over {len(again)} fold seeds", f"{again.mean():.2f}, deviation {again.std(ddof=1):.2f} "
             "(the same embeddings re-split; not a deviation over runs)")
        )  # fmt: skip
    for share, few in (evaluated.few or {}).items():
        facts.append((f"with {100 * share:g} % of the labels", f"{100 * few.accuracy:.2f} %"))
    facts += [(f"clusters: {name}", f"{value:.3f}") for name, value in (evaluated.clusters or {}).items()]
    facts.append(("protocol", evaluated.result.words))
    return facts


def _as_json(evaluated: RunEvaluation, full: bool) -> dict[str, object]:
    found = evaluated.evaluation
    long = {"predictions": found.predictions.tolist(), "folds": found.fold.tolist()} if full else {}
    return {
        "accuracy": found.accuracy,
        "deviation_over_folds": found.deviation,
        "fold_accuracies": found.accuracies.tolist(),
        "chosen": list(found.chosen),
        "epochs": list(evaluated.result.epochs),
        "classes": list(evaluated.result.classes),
        **long,
        "resplit_accuracies": list(evaluated.resplit),
        "few_labels": {f"{share:g}": few.accuracy for share, few in (evaluated.few or {}).items()},
        "clusters": evaluated.clusters,
        "protocol": evaluated.result.words,
    }


def compare(
    *sources: Annotated[str, Parameter(help="One or more collections, as for train.")],
    methods: Annotated[str, Parameter(help="Methods by name, with commas.")] = "raw,untrained,graphsc",
    seeds: Annotated[int, Parameter(help="Whole repetitions: initialisation, training, folds.")] = 5,
    first_seed: Annotated[int, Parameter(help="The first of the seeds.")] = 0,
    features: FeaturesOption = None,
    preset: Annotated[str, Parameter(help="A preset that all the methods have.")] = "default",
    encoder: Annotated[str, Parameter(help="The encoder of all methods that have one.")] = "gin",
    set_: SetOption = None,
    epochs: Annotated[int | None, Parameter(help="For every method; by default each its own.")] = None,
    selection: SelectionOption = "last",
    inductive: Annotated[
        bool, Parameter(negative=(), help="One encoder per fold, trained without that fold's graphs.")
    ] = False,
    classifier: ClassifierOption = "svm",
    scale: ScaleOption = "raw",
    folds: FoldsOption = 10,
    fold_seeds: Annotated[
        int, Parameter(help="Also re-split each seed's embeddings this often, as another deviation.")
    ] = 1,
    device: DeviceOption = "auto",
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    results: Annotated[Path, Parameter(help="Where results are kept and found again.")] = Path("results"),
    runs: Annotated[Path, Parameter(help="Where training runs live.")] = Path("runs"),
    out: Annotated[
        Path | None,
        Parameter(
            help="Also write the table to FILE.md, FILE.tex or FILE.csv (all digits, ranks and folds), or a "
            "diagram of ranks to FILE.png or FILE.svg; none by default."
        ),
    ] = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: Annotated[
        bool, Parameter(negative=(), help="With --json: also the accuracy on every fold of every seed.")
    ] = False,
) -> None:
    """Train and evaluate methods on the same folds; the same command resumes after a stop.

    Example: graphsc compare mutag proteins --methods untrained,graphcl,graphsc --seeds 5 --out table.tex
    """
    from graphsc.core.errors import ConfigError

    if not sources:
        raise ConfigError("compare needs graphs", hint="name a collection, e.g. graphsc compare mutag")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    check_method(*names)
    check_encoder(encoder)
    check_settings(names, encoder, set_)
    for source in sources:
        check_source(source, reading, features, by_header=True)
    check_ending(out, (".md", ".csv", ".tex", ".png", ".svg"), "a comparison")
    from graphsc.cli.output import print_json
    from graphsc.core.config import parse_assignments
    from graphsc.evaluation.protocol import Protocol
    from graphsc.experiments.comparison import check_target, write_comparison
    from graphsc.experiments.comparison import compare as run_comparison
    from graphsc.experiments.plan import split_settings
    from graphsc.training.callbacks import reporter_for_terminal

    if out is not None:
        check_target(out)
    settings, training = split_settings(parse_assignments(set_ or []))
    if epochs is not None:
        training["epochs"] = epochs
    found = run_comparison(
        sources, names, seeds=seeds,
        first_seed=first_seed, features=features or "auto", reader=reading.reader,
        options=reading.options(), preset=preset, encoder=encoder, settings=settings, training=training,
        protocol=Protocol(classifier=classifier, scale=scale, folds=folds), selection=selection,
        inductive=inductive, fold_seeds=fold_seeds, jobs=jobs, cluster=cluster, device=device,
        results=results, runs=runs, reporter=reporter_for_terminal(),
    )  # fmt: skip
    if out is not None:
        write_comparison(found, out)
    if json:
        print_json(comparison_json(found, full))
        return
    print_comparison(found)
    sys.stdout.write(f"As one page: graphsc report {shlex.quote(str(results))} --out report.html\n")


def print_comparison(comparison: Comparison) -> None:
    """Print the long table, the ranks where there are several data sets, and the protocol."""
    from graphsc.core.tables import Table, plain_text
    from graphsc.experiments.tables import comparison_notes, records_table

    records_table(comparison).show()
    if len(comparison.columns) > 1 and comparison.ranks:
        over = comparison.over_data
        ranked = tuple(
            (name, f"{rank:.2f}", f"{over[name].p_value:.3f}" if name in over else "-")
            for name, rank in sorted(comparison.ranks.items(), key=lambda item: item[1])
        )
        Table(("method", "rank", f"p against {comparison.control}"), ranked, "Average ranks").show()
    folds = "Over folds: the standard deviation over the folds of a seed (ddof = 0), mean over the seeds."
    for note in (*comparison_notes(comparison), folds):
        sys.stdout.write(f"{plain_text(note)}\n")


def comparison_json(comparison: Comparison, full: bool = False) -> dict[str, object]:
    """The table for machines; with `full`, cells have the accuracies of all seeds and folds."""
    from dataclasses import asdict

    long = () if full else ("seeds", "accuracies")
    return {
        "cells": [
            {"method": method, "data": data}
            | {name: value for name, value in asdict(cell).items() if name not in long}
            for (method, data), cell in comparison.cells.items()
        ],
        "ranks": comparison.ranks,
        "protocol": list(comparison.words),
        "leaky": comparison.leaky,
    }
