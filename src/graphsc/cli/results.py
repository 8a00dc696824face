"""`graphsc results`: run what a plan asks for, and rebuild the tables that are made of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

from cyclopts import App, Parameter

from graphsc.cli.evaluate import JobsOption
from graphsc.cli.output import print_table
from graphsc.cli.sweep import OnStorage, ResultsOption, StorageOption, run_on_storage
from graphsc.core.errors import ConfigError, DivergedError
from graphsc.core.registry import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsc.experiments.plan import TablePlan
    from graphsc.experiments.transfer_plan import TransferTable, TransferTrial


# Tables of a plan by name.


class Named(Protocol):
    """A table of any kind of plan."""

    @property
    def name(self) -> str: ...


Table = TypeVar("Table", bound=Named)


def chosen(tables: Sequence[Table], names: str | None, plan: Path) -> list[Table]:
    """Those that are asked for, with commas; all of them for None. A name the plan has not is answered."""
    if names is None:
        return list(tables)
    found = {table.name: table for table in tables}
    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in found:
            raise ConfigError(f"the plan has no table {name!r}", where=str(plan), hint=nearest(name, found))
    return [found[name] for name in asked]


# Plans of transfer tables, for `graphsc results`.


WEIGHTS = Path("runs/pretrain")


def run_transfer_plan(
    plan: Path,
    tables: str | None,
    *,
    results: Path,
    runs: Path,
    weights: Path,
    dry_run: bool,
    on: OnStorage | None = None,
) -> None:
    """Run the trials of a transfer plan that have no result; weights that are missing are made first."""
    from graphsc.experiments.transfer_run import TransferStore

    trials = [trial for table in _chosen_transfer(plan, tables) for trial in table.trials()]
    trials = list({trial.key(): trial for trial in trials}.values())
    if dry_run:
        store = TransferStore(results)
        missing = [trial for trial in trials if not store.path(trial).exists()]
        print_table(
            f"{len(missing)} of {len(trials)} trials have no result",
            ("data", "method", "way", "seed"),
            [(trial.data_name, trial.method, trial.way, trial.seed) for trial in missing],
        )
        return
    if on is None:
        run_transfer_trials(trials, results=results, runs=runs, weights=weights)
        return
    if weights not in (WEIGHTS, runs / "pretrain"):
        raise ConfigError("with --storage every worker has its weights in RUNS/pretrain", hint="use --runs")
    run_on_storage(trials, on, runs=runs, results=results)


def run_transfer_trials(trials: Sequence[TransferTrial], *, results: Path, runs: Path, weights: Path) -> None:
    """Run what has no result; weights that are missing are made first, in a folder of their method's name."""
    from graphsc.experiments.transfer_run import TransferStore, run_transfer
    from graphsc.experiments.transfer_weights import ready_weights
    from graphsc.training.callbacks import reporter_for_terminal

    reporter = reporter_for_terminal()
    made_from = next((trial.pretraining for trial in trials if trial.needs_weights), {})
    weights_of = ready_weights(made_from, weights, results, reporter)
    outcomes = run_transfer(trials, TransferStore(results), runs, weights_of, reporter=reporter)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        raise DivergedError(
            f"{len(failed)} of {len(outcomes)} trials did not run, the first: {failed[0].error}",
            hint="the others are stored; the same command tries these again",
        )


def print_transfer_tables(plan: Path, tables: str | None, results: Path) -> None:
    """The tables as Markdown."""
    from graphsc.experiments.transfer_run import TransferStore
    from graphsc.experiments.transfer_table import transfer_text

    for one in _chosen_transfer(plan, tables):
        sys.stdout.write(transfer_text(one, TransferStore(results)) + "\n")


def write_transfer_page(page: Path, plan: Path, results: Path) -> bool:
    """Rebuild the tables of a page from stored results; True if anything changed."""
    from graphsc.experiments.page import rebuilt, rewrite
    from graphsc.experiments.transfer_cards import CardStore, cards_text
    from graphsc.experiments.transfer_run import TransferStore
    from graphsc.experiments.transfer_table import transfer_text

    made = {table.name: table for table in _chosen_transfer(plan, None)}

    def text_of(name: str) -> str:
        if name == "weights":
            trials = [trial for table in made.values() for trial in table.trials() if trial.needs_weights]
            return cards_text(list(dict.fromkeys(trial.method for trial in trials)), CardStore(results))
        if name not in made:
            raise ConfigError(f"the page has a table {name!r} that the plan has not", where=str(page))
        return transfer_text(made[name], TransferStore(results))

    return rewrite(page, lambda text: rebuilt(text, text_of))


def _chosen_transfer(plan: Path, tables: str | None) -> list[TransferTable]:
    from graphsc.experiments.transfer_plan import read_transfer_plan

    return chosen(read_transfer_plan(plan), tables, plan)


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
    from graphsc.training.callbacks import reporter_for_terminal

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
    say = reporter_for_terminal().log
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
    from graphsc.training.callbacks import reporter_for_terminal

    run_candidates(_chosen(plan, tables), log, runs, reporter_for_terminal().log)
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
    from graphsc.report.charts import gain_plot
    from graphsc.report.figure import save_figure

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
