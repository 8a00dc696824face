"""`graphsc reproduce`: a table or figure of the paper from one command, or verdicts on its claims."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.data import ClusterOption
from graphsc.cli.evaluate import JobsOption
from graphsc.cli.results import ResultsOption, RunsOption
from graphsc.core.errors import ConfigError, GraphscError
from graphsc.core.registry import nearest

if TYPE_CHECKING:
    from graphsc.experiments.result import AnyTrial
    from graphsc.paper.make import Output
    from graphsc.paper.recipe import AnyRecipe, Request

TEXTS = ("claims", "reproduction", "ablation", "frozen-valid", "frozen-test")  # made from what is stored
OTHERS = ("figure2", *TEXTS, "diagnosis", "freeze")  # what has no recipe of its own


def reproduce(
    what: Annotated[
        str,
        Parameter(
            help="table1, 2, 3, 4 or 5; figure1, 2, 3, 4 or 5; claims; reproduction; diagnosis; freeze; of "
            "molecules ablation, frozen-valid and frozen-test; or a YAML file."
        ),
    ],
    /,
    *,
    data: Annotated[str | None, Parameter(help="Only these data sets, with commas; by default all.")] = None,
    methods: Annotated[
        str | None,
        Parameter(
            help="Only these methods, with commas; new ones join where that makes sense; by default all."
        ),
    ] = None,
    seeds: Annotated[int | None, Parameter(help="Repetitions; by default by the budget.")] = None,
    budget: Annotated[
        Literal["quick", "day", "full"],
        Parameter(help="quick: small sets, one seed; day: large sets with one seed; full: everything."),
    ] = "full",
    features: Annotated[str, Parameter(help="Feature schemes, with commas: auto, constant.")] = "auto",
    probe: Annotated[
        Literal["full", "cheap"] | None,
        Parameter(help="How embeddings are evaluated; by default as the recipe says."),
    ] = None,
    search: Annotated[
        bool,
        Parameter(
            negative=(), help="Of table3: also choose from random settings, the same number for each method."
        ),
    ] = False,
    points: Annotated[
        int | None, Parameter(help="Random settings of the search; by default as the recipe says.")
    ] = None,
    results: ResultsOption = Path("results"),
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, Parameter(help="Where the files go.")] = Path("reproduced"),
    page: Annotated[
        Path | None,
        Parameter(
            help="Rebuild it on this Markdown page, between <!-- WHAT --> and <!-- end -->; by default none."
        ),
    ] = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Only list what would run, and how long it would take.")
    ] = False,
    no_run: Annotated[
        bool, Parameter(name="--no-run", negative=(), help="Run nothing: make it from what is stored.")
    ] = False,
) -> None:
    """Run what a table or figure of the paper still lacks, and make it. The same command resumes.

    It is made of stored results alone. What has not run is left empty.

    Example: graphsc reproduce table5 --budget quick
    """
    _check_what(what)
    from graphsc.core.files import StoppedError
    from graphsc.paper.make import make
    from graphsc.paper.recipe import Request, read_recipe

    if dry_run and what in ("figure2", *TEXTS, "freeze"):
        sys.stdout.write(f"nothing to run: {what} is made from what is stored\n")
        return
    if dry_run and what == "diagnosis":
        _list_diagnosis(results)
        return
    if what == "figure2":
        if page is not None:
            raise ConfigError("figure2 is a drawing without numbers and needs no --page", hint="use --out")
        _framework(out)
        return
    if what in TEXTS:
        _text(what, results, out, page)
        return
    if what == "diagnosis":
        _diagnosis(results, out, page, no_run)
        return
    if what == "freeze":
        _freeze(results, out)
        return
    recipe = read_recipe(what)
    request = Request(budget, _words(data), _words(methods), seeds, _words(features), probe, search, points)
    trials = [] if no_run and not dry_run else _missing(recipe, request, results)
    if dry_run:
        _list(recipe, request, trials, runs, jobs)
        return
    failed: GraphscError | None = None
    if not no_run:
        try:
            _run(recipe, request, trials, results, runs, jobs, cluster)
        except StoppedError:
            raise
        except GraphscError as error:  # the rest has run, and is shown
            failed = error
    _show(make(recipe, request, results), recipe.name, out, page)
    if failed is not None:
        raise failed


def _check_what(what: str) -> None:
    """Refuse an unknown table, figure or file before anything slow is imported."""
    if Path(what).suffix or Path(what).exists():
        return
    recipes = Path(__file__).parents[1] / "paper" / "recipes"
    known = [*(path.stem for path in recipes.glob("*.yaml")), *OTHERS]
    if what not in known:
        raise ConfigError(f"there is no recipe {what!r}", hint=f"{nearest(what, known)}; or give a YAML file")


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _missing(recipe: AnyRecipe, request: Request, results: Path) -> list[AnyTrial]:
    """Trials that have no result yet and can run on this machine."""
    from graphsc.experiments.result import ResultStore
    from graphsc.paper.recipe import is_available, trials_of
    from graphsc.training.callbacks import reporter_for_terminal

    store = ResultStore(results)
    trials = {trial.key(): trial for trial in trials_of(recipe, request) if trial not in store}
    absent = [data for data in dict.fromkeys(t.data for t in trials.values()) if not is_available(data)]
    if absent:
        reporter_for_terminal().log(f"not on this machine, so not run: {', '.join(absent)}")
    return [trial for trial in trials.values() if trial.data not in absent]


def _list(
    recipe: AnyRecipe, request: Request, trials: Sequence[AnyTrial], runs: Path, jobs: int | None
) -> None:
    """Print what would run, with an estimate of its time."""
    from graphsc.core.tables import Table
    from graphsc.paper.estimate import estimate, estimate_missing_weights, time_text
    from graphsc.paper.recipe import Recipe

    if isinstance(recipe, Recipe) and recipe.kind == "statistics":
        sys.stdout.write(f"would read {', '.join(request.sets(recipe))}\n")
        return
    making = estimate_missing_weights(trials, runs / "pretrain")
    seconds = estimate(trials)
    rows = [(data, method, "", "pre-training", time_text(spent)) for (data, method), spent in making.items()]
    rows += [
        (trial.data_name, trial.method, str(trial.seed), trial.details, time_text(spent))
        for trial, spent in zip(trials, seconds, strict=True)
    ]
    columns = ("data", "method", "seed", "settings", "about")
    Table(columns, tuple(rows), f"{recipe.name}: {len(trials)} trials to run").show()
    at_once = jobs or os.cpu_count() or 1
    names = ", ".join(method for _, method in making)
    before = f", and {time_text(sum(making.values()))} to pre-train {names}" if making else ""
    sys.stdout.write(
        f"{len(trials)} trials, about {time_text(sum(seconds))} on one core, "
        f"{time_text(sum(seconds) / at_once)} with {at_once} jobs{before} (a rough guess from a short "
        "calibration)\n"
    )


def _run(
    recipe: AnyRecipe,
    request: Request,
    trials: Sequence[AnyTrial],
    results: Path,
    runs: Path,
    jobs: int | None,
    cluster: str | None,
) -> None:
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.runner import check_outcomes, run_trials
    from graphsc.paper.recipe import Recipe
    from graphsc.paper.tables import measure
    from graphsc.training.callbacks import reporter_for_terminal

    reporter = reporter_for_terminal()
    if isinstance(recipe, Recipe) and recipe.kind == "statistics":
        measure(request.sets(recipe), results, reporter.log)
    elif trials:
        store = ResultStore(results)
        check_outcomes(run_trials(trials, store, runs, jobs=jobs, reporter=reporter, cluster=cluster))


def _framework(out: Path) -> None:
    """The drawing of the method, which needs no results."""
    from graphsc.report.figure import save_figure
    from graphsc.report.framework import framework_figure

    for ending in ("png", "svg"):
        save_figure(framework_figure(), out / f"figure2.{ending}")
        sys.stdout.write(f"{out / f'figure2.{ending}'}\n")


def _text(what: str, results: Path, out: Path, page: Path | None) -> None:
    """Verdicts on the claims, which published numbers are reached, or a table of frozen vectors."""
    from graphsc.core.files import write_atomic
    from graphsc.experiments.ablation import ablation_markdown
    from graphsc.experiments.frozen import shipped_markdown
    from graphsc.paper.claims import claims_markdown
    from graphsc.paper.pages import write_part
    from graphsc.paper.reproduction import reproduction_markdown

    makers: dict[str, Callable[[Path], str]] = {
        "claims": claims_markdown,
        "reproduction": reproduction_markdown,
        "ablation": ablation_markdown,
        "frozen-valid": partial(shipped_markdown, part="valid"),
        "frozen-test": partial(shipped_markdown, part="test"),
    }
    text = makers[what](results)
    if page is not None:
        _say_rebuilt(page, what, write_part(page, what, text))
        return
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / f"{what}.md", text)
    sys.stdout.write(text)


def _diagnosis(results: Path, out: Path, page: Path | None, no_run: bool) -> None:
    """What training does to embeddings, on a page or as files."""
    from graphsc.core.files import write_atomic
    from graphsc.paper.diagnosis import run_diagnosis, write_diagnosis
    from graphsc.paper.pages import write_part
    from graphsc.training.callbacks import reporter_for_terminal

    if not no_run:
        run_diagnosis(results, reporter_for_terminal())
    text = write_diagnosis(results, (out if page is None else page.parent) / "images")
    if page is not None:
        _say_rebuilt(page, "diagnosis", write_part(page, "diagnosis", text))
        return
    write_atomic(out / "diagnosis.md", text)
    sys.stdout.write(text)


def _list_diagnosis(results: Path) -> None:
    """Print the cases that would run."""
    from graphsc.core.tables import Table
    from graphsc.paper.diagnosis import DATA, EPOCHS, METHOD, missing_cases

    missing = missing_cases(results)
    rows = tuple((DATA, METHOD, case.seed, case.label, max(EPOCHS)) for case in missing)
    columns = ("data", "method", "seed", "case", "epochs")
    Table(columns, rows, f"diagnosis: {len(missing)} cases to run, one after another").show()


def _freeze(results: Path, out: Path) -> None:
    """The settings that the search chose, as the file of the preset `tuned`."""
    from graphsc.core.files import write_atomic
    from graphsc.paper.freeze import frozen_yaml

    out.mkdir(parents=True, exist_ok=True)
    path = out / "tuned.yaml"
    write_atomic(path, frozen_yaml(results))
    sys.stdout.write(f"{path}\n")


def _show(made: Output, name: str, out: Path, page: Path | None) -> None:
    """As files, or on a page."""
    if page is not None:
        _say_rebuilt(page, name, made.write_to_page(page, name))
        return
    for path in made.write(out, name):
        sys.stdout.write(f"{path}\n")


def _say_rebuilt(page: Path, what: str, changed: bool) -> None:
    sys.stdout.write(f"{page}: {f'{what} rebuilt' if changed else 'nothing has changed'}\n")
