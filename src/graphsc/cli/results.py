"""`graphsc results`: run what a plan asks for, and rebuild the tables that are made of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from graphsc.cli.evaluate import JobsOption
from graphsc.cli.output import print_table
from graphsc.cli.tables import chosen
from graphsc.cli.transfer_results import (
    WEIGHTS,
    print_transfer_tables,
    run_transfer_plan,
    write_transfer_page,
)
from graphsc.cli.worker import OnStorage, ResultsOption, StorageOption, run_on_storage

if TYPE_CHECKING:
    from graphsc.experiments.plan import TablePlan

app = App(name="results", help="Run a plan of trials, and make tables of what is stored.")

PlanArgument = Annotated[Path, Parameter(help="A plan file.")]
TablesOption = Annotated[str | None, Parameter(help="Only these tables of the plan, with commas.")]


@app.command(name="run")
def run_plan(
    plan: PlanArgument,
    /,
    *,
    tables: TablesOption = None,
    results: ResultsOption = Path("results"),
    runs: Annotated[Path, Parameter(help="Where training runs live.")] = Path("runs"),
    jobs: JobsOption = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only say what would run.")] = False,
    storage: StorageOption | None = None,
    study: Annotated[
        str | None, Parameter(help="With --storage: the study's name; by default the plan's.")
    ] = None,
    retry_failed: Annotated[
        bool, Parameter(negative=(), help="With --storage: also queue again what failed.")
    ] = False,
    weights: Annotated[
        Path, Parameter(help="Of a transfer plan: the folder with a pre-training run for each method.")
    ] = WEIGHTS,
) -> None:
    """Run every trial of the plan that has no result yet; run it again to go on after a stop.

    With --storage the trials become the cells of a study that any number of workers can join.
    """
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.run_all import check_outcomes, run_all
    from graphsc.experiments.store import ResultStore
    from graphsc.experiments.transfer_plan import is_transfer_plan
    from graphsc.training.reporter import reporter_for_terminal

    if storage is None and (study is not None or retry_failed):
        raise ConfigError("--study and --retry-failed go with --storage")
    if is_transfer_plan(plan):
        if jobs is not None:
            raise ConfigError(
                "a transfer plan is run by one process", hint="start the command several times, or --storage"
            )
        run_transfer_plan(
            plan, tables, results=results, runs=runs, weights=weights, dry_run=dry_run,
            on=None if storage is None else OnStorage(storage, study or plan.stem, retry_failed),
        )  # fmt: skip
        return
    store = ResultStore(results)
    trials = [trial for table in _chosen(plan, tables) for trial in table.trials()]
    trials = list({trial.key(): trial for trial in trials}.values())
    if dry_run:
        missing = [trial for trial in trials if not store.path(trial).exists()]
        print_table(
            f"{len(missing)} of {len(trials)} trials have no result",
            ("data", "method", "seed", "features"),
            [(trial.data_name, trial.method, trial.seed, trial.features) for trial in missing],
        )
        return
    if storage is not None:
        if jobs is not None and jobs > 1:
            raise ConfigError("with --storage this is one worker", hint="start more with graphsc worker")
        run_on_storage(
            trials, OnStorage(storage, study or plan.stem, retry_failed), runs=runs, results=results
        )
        return
    say = reporter_for_terminal().say
    check_outcomes(run_all(trials, store, runs, jobs=jobs or os.cpu_count() or 1, say=say))


@app.command
def search(
    plan: PlanArgument,
    /,
    *,
    tables: TablesOption = None,
    log: Annotated[Path, Parameter(help="Every setting tried is a line of this file.")] = Path(
        "results/search/log.jsonl"
    ),
    runs: Annotated[Path, Parameter(help="Where training runs live.")] = Path("runs"),
) -> None:
    """Judge the plan's rows by inner folds on development seeds; run it again to go on after a stop."""
    from graphsc.experiments.candidates import looks_markdown, read_looks, run_candidates
    from graphsc.training.reporter import reporter_for_terminal

    run_candidates(_chosen(plan, tables), log, runs, reporter_for_terminal().say)
    sys.stdout.write(looks_markdown(read_looks(log)))


@app.command
def fetch(
    *,
    storage: StorageOption,
    study: Annotated[str | None, Parameter(help="A study by name; by default all of the storage.")] = None,
    results: ResultsOption = Path("results"),
) -> None:
    """Copy the results that a storage has, whoever made them, into the folder tables are made of."""
    from graphsc.experiments.storage import open_storage
    from graphsc.experiments.study import Study

    opened = open_storage(storage)
    for name in [study] if study is not None else opened.studies:
        found = Study(opened, name).fetch(results)
        sys.stdout.write(f"{name}: {found} new results in {results}\n")


@app.command
def table(
    plan: PlanArgument, /, *, tables: TablesOption = None, results: ResultsOption = Path("results")
) -> None:
    """Print the plan's tables as Markdown, with empty cells for what has not run."""
    from graphsc.experiments.page import table_text
    from graphsc.experiments.store import ResultStore
    from graphsc.experiments.transfer_plan import is_transfer_plan

    if is_transfer_plan(plan):
        print_transfer_tables(plan, tables, results)
        return
    for one in _chosen(plan, tables):
        sys.stdout.write(table_text(one, ResultStore(results)) + "\n")


@app.command
def write(
    plan: PlanArgument,
    page: Annotated[Path, Parameter(help="A Markdown page with <!-- table: NAME --> marks.")],
    /,
    *,
    results: ResultsOption = Path("results"),
) -> None:
    """Rebuild the tables of a page from stored results."""
    from graphsc.experiments.page import write_page
    from graphsc.experiments.plan import read_plan
    from graphsc.experiments.store import ResultStore
    from graphsc.experiments.transfer_plan import is_transfer_plan

    if is_transfer_plan(plan):
        changed = write_transfer_page(page, plan, results)
    else:
        changed = write_page(page, read_plan(plan), ResultStore(results))
    sys.stdout.write(f"{page}: {'tables rebuilt' if changed else 'nothing has changed'}\n")


@app.command
def gains(
    plan: PlanArgument,
    out: Annotated[Path, Parameter(help="FILE.png or FILE.svg.")],
    /,
    *,
    method: Annotated[str, Parameter(help="Whose gains.")] = "graphsc-plus",
    controls: Annotated[
        str, Parameter(help="Above whom, with commas: a panel each.")
    ] = "untrained,untrained-plus",
    results: ResultsOption = Path("results"),
) -> None:
    """Draw what training is good for: few labels, unseen graphs, other sizes."""
    from graphsc.experiments.gains import gains as gains_of
    from graphsc.experiments.page import stored_results
    from graphsc.experiments.plan import read_plan
    from graphsc.experiments.store import ResultStore
    from graphsc.report.figure import save_figure
    from graphsc.report.gains import gain_plot

    stored = stored_results(read_plan(plan), ResultStore(results))
    panels = {
        control: {
            condition: {data: (gain.points, gain.error) for data, gain in row.items()}
            for condition, row in gains_of(stored, method, control).items()
        }
        for control in (name.strip() for name in controls.split(","))
    }
    save_figure(gain_plot(panels), out)
    sys.stdout.write(f"{out}: {method} above {' and '.join(panels)}\n")


def _chosen(plan: Path, tables: str | None) -> list[TablePlan]:
    from graphsc.experiments.plan import read_plan

    return chosen(read_plan(plan), tables, plan)
