"""`graphsc reproduce`: a table or figure of the paper from one command, or what is known of its claims."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.evaluate import JobsOption
from graphsc.cli.sweep import OnStorage, ResultsOption, RunsOption, StorageOption
from graphsc.core.errors import ConfigError, GraphscError

if TYPE_CHECKING:
    from graphsc.cli.sweep import OnStorage
    from graphsc.experiments.transfer_plan import TransferTrial
    from graphsc.experiments.trial import Trial
    from graphsc.paper.make import Made
    from graphsc.paper.recipe import Recipe, Request, TransferRequest


# `graphsc reproduce table4`: trials of transfer, listed, run and made into a table.


def refuse_others(what: str, options: Mapping[str, object]) -> None:
    """Options of other tables, which have no meaning here."""
    for name, value in options.items():
        if value is not None:
            hint = (
                "start the command several times, or graphsc worker" if name == "--jobs" else "leave it out"
            )
            raise ConfigError(f"{what} is of transfer and has no {name}", hint=hint)


def reproduce_transfer(
    what: str,
    request: TransferRequest,
    *,
    results: Path,
    runs: Path,
    dry_run: bool,
    no_run: bool,
    on: OnStorage | None,
    show: Callable[[Made, str], None],
) -> None:
    """Run what the table lacks and make it; weights lie in the folder of runs, under `pretrain`."""
    from graphsc.cli.results import run_transfer_trials
    from graphsc.cli.sweep import run_on_storage
    from graphsc.core.files import StoppedError
    from graphsc.experiments.transfer_run import TransferStore
    from graphsc.paper.make import Made
    from graphsc.paper.recipe import asked_of, read_transfer_recipe
    from graphsc.paper.tables import transfer_sheets

    recipe = read_transfer_recipe(what)
    tables = asked_of(recipe, request)
    if not tables:
        raise ConfigError(
            f"{what} has no trial of these methods on these data sets", hint="see them with --dry-run"
        )
    store = TransferStore(results)
    by_key = {trial.key(): trial for table in tables for trial in table.trials()}
    left = [trial for trial in _here(list(by_key.values())) if not store.path(trial).exists()]
    if dry_run:
        _list_transfer(recipe.name, left, runs / "pretrain")
        return
    failed: GraphscError | None = None
    if left and not no_run:
        try:
            if on is None:
                run_transfer_trials(left, results=results, runs=runs, weights=runs / "pretrain")
            else:
                run_on_storage(left, on, runs=runs, results=results)
        except StoppedError:
            raise
        except GraphscError as error:  # the rest has run, and is shown
            failed = error
    show(Made(tuple(transfer_sheets(recipe, tables, store))), recipe.name)
    if failed is not None:
        raise failed


def _here(trials: Sequence[TransferTrial]) -> list[TransferTrial]:
    """The trials whose molecules are on this machine."""
    from graphsc.paper.recipe import is_here
    from graphsc.training.callbacks import reporter_for_terminal

    absent = [data for data in dict.fromkeys(trial.data for trial in trials) if not is_here(data)]
    if absent:
        reporter_for_terminal().log(f"not on this machine, stays empty: {', '.join(absent)}")
    return [trial for trial in trials if trial.data not in absent]


def _list_transfer(name: str, trials: Sequence[TransferTrial], weights: Path) -> None:
    from graphsc.cli.output import print_table
    from graphsc.core.run_folder import RunFolder
    from graphsc.paper.estimate import estimate_pretraining, estimate_transfer, in_words

    missing = {
        trial.method: trial
        for trial in reversed(trials)
        if trial.needs_weights and not RunFolder(weights / trial.method).model.exists()
    }
    making = {
        method: estimate_pretraining(method, trial.pretraining, trial.data)
        for method, trial in sorted(missing.items())
    }
    seconds = estimate_transfer(trials)
    rows: list[tuple[object, ...]] = [
        (str(missing[method].pretraining.get("data", "")), method, "pre-training", "", in_words(spent))
        for method, spent in making.items()
    ]
    rows += [
        (t.data_name, t.method, t.way, t.seed, in_words(s)) for t, s in zip(trials, seconds, strict=True)
    ]
    print_table(f"{name}: {len(trials)} trials to run", ("data", "method", "way", "seed", "about"), rows)
    before = f", and {in_words(sum(making.values()))} to pre-train {', '.join(making)}" if making else ""
    sys.stdout.write(
        f"{len(trials)} trials, about {in_words(sum(seconds))} on one core{before} "
        "(a rough guess from a short calibration)\n"
    )


def reproduce(
    what: Annotated[
        str,
        Parameter(help="table1, 2, 3, 4 or 5; figure1, 2, 3, 4 or 5; claims; or a YAML file."),
    ],
    /,
    *,
    data: Annotated[str | None, Parameter(help="Only these data sets, with commas.")] = None,
    methods: Annotated[
        str | None, Parameter(help="Only these methods, with commas; new ones join where that makes sense.")
    ] = None,
    seeds: Annotated[int | None, Parameter(help="Repetitions; by default what the budget pays for.")] = None,
    budget: Annotated[
        Literal["quick", "day", "full"],
        Parameter(help="quick: small sets, one seed; day: large sets with one seed; full: everything."),
    ] = "full",
    features: Annotated[str, Parameter(help="Feature schemes, with commas: auto, constant.")] = "auto",
    probe: Annotated[
        Literal["full", "cheap"] | None,
        Parameter(help="How vectors are judged; by default as the recipe says."),
    ] = None,
    search: Annotated[
        bool | None,
        Parameter(help="Also choose settings inside each outer fold; by default with the full budget."),
    ] = None,
    storage: StorageOption | None = None,
    study: Annotated[str | None, Parameter(help="With --storage: the study's name; by default WHAT.")] = None,
    retry_failed: Annotated[
        bool, Parameter(negative=(), help="With --storage: also queue again what failed.")
    ] = False,
    results: ResultsOption = Path("results"),
    runs: RunsOption = Path("runs"),
    out: Annotated[Path, Parameter(help="Where the files go.")] = Path("reproduced"),
    page: Annotated[
        Path | None,
        Parameter(help="Rebuild it on this Markdown page, between <!-- WHAT --> and <!-- end -->."),
    ] = None,
    jobs: JobsOption = None,
    dry_run: Annotated[
        bool, Parameter(negative=(), help="Only list what would run, and how long it would take.")
    ] = False,
    no_run: Annotated[
        bool, Parameter(name="--no-run", negative=(), help="Run nothing: make it from what is stored.")
    ] = False,
) -> None:
    """Run what a table or figure of the paper still lacks, and make it; run it again to go on after a stop.

    It is made of stored results alone, also of a part of them: what has not run is left empty.
    """
    from graphsc.core.errors import ConfigError, GraphscError
    from graphsc.core.files import StoppedError
    from graphsc.paper.make import make
    from graphsc.paper.recipe import Request, TransferRequest, is_transfer, read_recipe

    if what == "figure2":
        if page is not None:
            raise ConfigError(
                "figure2 is a drawing without numbers; --page has no use for it", hint="use --out"
            )
        _framework(out)
        return
    if what == "claims":
        _claims(results, out, page)
        return
    if storage is None and (study is not None or retry_failed):
        raise ConfigError("--study and --retry-failed go with --storage")
    if is_transfer(what):
        others: dict[str, object] = {"--probe": probe, "--search": search, "--jobs": jobs}
        if features != "auto":
            others["--features"] = features
        refuse_others(what, others)
        asked = TransferRequest(budget, _words(data), _words(methods), seeds)
        reproduce_transfer(
            what, asked, results=results, runs=runs, dry_run=dry_run, no_run=no_run,
            on=None if storage is None else OnStorage(storage, study or Path(what).stem, retry_failed),
            show=lambda made, name: _show(made, name, out, page),
        )  # fmt: skip
        return
    recipe = read_recipe(what)
    request = Request(budget, _words(data), _words(methods), seeds, _words(features), probe, search)
    trials = _trials(recipe, request, results)
    if dry_run:
        _list(recipe, request, trials, jobs)
        return
    failed: GraphscError | None = None
    if not no_run:
        try:
            _run(recipe, request, trials, storage, study or recipe.name, results, runs, jobs, retry_failed)
        except StoppedError:
            raise
        except GraphscError as error:  # the rest has run, and is shown
            failed = error
    _show(make(recipe, request, results), recipe.name, out, page)
    if failed is not None:
        raise failed


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _trials(recipe: Recipe, request: Request, results: Path) -> list[Trial]:
    """What has no result yet and can run here."""
    from graphsc.experiments.store import ResultStore
    from graphsc.paper.recipe import expand, is_here
    from graphsc.training.callbacks import reporter_for_terminal

    if recipe.kind == "statistics":
        return []
    store = ResultStore(results)
    cells = {cell.trial.key(): cell.trial for cell in expand(recipe, request)}
    for trial in cells.values():
        trial.identity()  # a wrong setting is refused before anything runs
    absent = [name for name in request.sets(recipe) if not is_here(name)]
    if absent:
        reporter_for_terminal().log(f"not on this machine, stays empty: {', '.join(absent)}")
    return [t for t in cells.values() if t.data not in absent and not store.path(t).exists()]


def _list(recipe: Recipe, request: Request, trials: list[Trial], jobs: int | None) -> None:
    from graphsc.cli.output import print_table
    from graphsc.paper.estimate import estimate, in_words

    if recipe.kind == "statistics":
        sys.stdout.write(f"would read {', '.join(request.sets(recipe))}\n")
        return
    seconds = estimate(trials)
    print_table(
        f"{recipe.name}: {len(trials)} trials to run",
        ("data", "features", "method", "seed", "settings", "about"),
        [
            (t.data_name, t.features, t.method, t.seed,
             ", ".join(f"{k}={v}" for k, v in {**t.settings, **t.training}.items()), in_words(s))
            for t, s in zip(trials, seconds, strict=True)
        ],
    )  # fmt: skip
    at_once = jobs or os.cpu_count() or 1
    sys.stdout.write(
        f"{len(trials)} trials, about {in_words(sum(seconds))} on one core, "
        f"{in_words(sum(seconds) / at_once)} with {at_once} jobs (a rough guess from a short calibration)\n"
    )


def _run(
    recipe: Recipe,
    request: Request,
    trials: list[Trial],
    storage: str | None,
    study: str,
    results: Path,
    runs: Path,
    jobs: int | None,
    retry_failed: bool,
) -> None:
    from graphsc.cli.sweep import run_on_storage
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.run_all import check_outcomes, run_all
    from graphsc.experiments.store import ResultStore
    from graphsc.paper.tables import measure
    from graphsc.training.callbacks import reporter_for_terminal

    say = reporter_for_terminal().log
    if recipe.kind == "statistics":
        measure(request.sets(recipe), results, say)
    elif storage is not None:
        if jobs is not None and jobs > 1:
            raise ConfigError("with --storage this is one worker", hint="start more with graphsc worker")
        run_on_storage(trials, OnStorage(storage, study, retry_failed), runs=runs, results=results)
    elif trials:
        check_outcomes(run_all(trials, ResultStore(results), runs, jobs=jobs or os.cpu_count() or 1, say=say))


def _framework(out: Path) -> None:
    """The drawing of the method, which needs no results."""
    from graphsc.report.figure import save_figure
    from graphsc.report.framework import framework_figure

    for ending in ("png", "svg"):
        save_figure(framework_figure(), out / f"figure2.{ending}")
        sys.stdout.write(f"{out / f'figure2.{ending}'}\n")


def _claims(results: Path, out: Path, page: Path | None) -> None:
    from graphsc.core.files import write_atomic
    from graphsc.experiments.page import put_on_page
    from graphsc.paper.claims import claims_markdown

    text = claims_markdown(results)
    if page is not None:
        _say_rebuilt(page, "claims", put_on_page(page, "claims", text))
        return
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "claims.md", text)
    sys.stdout.write(text)


def _show(made: Made, name: str, out: Path, page: Path | None) -> None:
    """As files, or on a page."""
    if page is not None:
        _say_rebuilt(page, name, made.on_page(page, name))
        return
    for path in made.write(out, name):
        sys.stdout.write(f"{path}\n")


def _say_rebuilt(page: Path, what: str, changed: bool) -> None:
    sys.stdout.write(f"{page}: {f'{what} rebuilt' if changed else 'nothing has changed'}\n")
