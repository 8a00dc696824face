"""`graphsc results`: run the trials of a plan, and rebuild the tables that are made of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from graphsc.cli.checks import check_file
from graphsc.cli.data import ClusterOption
from graphsc.cli.evaluate import JobsOption

if TYPE_CHECKING:
    from graphsc.experiments.plan import AnyTable

app = App(name="results", help="Run a plan of trials, and make tables of stored results.")

PlanArgument = Annotated[Path, Parameter(help="A plan file.")]
TablesOption = Annotated[
    str | None, Parameter(help="Only these tables of the plan, with commas; by default all.")
]
ResultsOption = Annotated[Path, Parameter(help="Where results are kept.")]
RunsOption = Annotated[Path, Parameter(help="Where training runs live.")]


@app.command(name="run")
def run_plan(
    plan: PlanArgument,
    /,
    *,
    tables: TablesOption = None,
    results: ResultsOption = Path("results"),
    runs: RunsOption = Path("runs"),
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only list what would run.")] = False,
    weights: Annotated[
        Path | None,
        Parameter(help="Of transfer tables: the folder of pre-training runs; by default RUNS/pretrain."),
    ] = None,
) -> None:
    """Run every trial of the plan that has no result yet; the same command resumes after a stop.

    Pre-trained weights that a transfer table lacks are made first.

    Example: graphsc results run results/plan.yaml --tables systems
    """
    check_file(plan, "plan")
    from graphsc.core.tables import Table
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.runner import check_outcomes, run_trials
    from graphsc.experiments.transfer import PretrainedWeights
    from graphsc.training.callbacks import reporter_for_terminal

    store = ResultStore(results)
    trials = {trial.key(): trial for table in _chosen(plan, tables) for trial in table.trials()}
    if dry_run:
        missing = [trial for trial in trials.values() if trial not in store]
        rows = tuple((trial.data_name, trial.row, trial.seed, trial.variant) for trial in missing)
        title = f"{len(missing)} of {len(trials)} trials have no result"
        Table(("data", "method", "seed", "as"), rows, title).show()
        return
    outcomes = run_trials(
        list(trials.values()), store, runs, jobs=jobs, cluster=cluster,
        reporter=reporter_for_terminal(), weights=PretrainedWeights(weights or runs / "pretrain", results),
    )  # fmt: skip
    check_outcomes(outcomes)


@app.command
def search(
    plan: PlanArgument,
    /,
    *,
    tables: TablesOption = None,
    log: Annotated[Path, Parameter(help="Every setting tried is a line of this file.")] = Path(
        "results/search/log.jsonl"
    ),
    runs: RunsOption = Path("runs"),
) -> None:
    """Evaluate the plan's rows by inner folds on development seeds; the same command resumes after a stop.

    Example: graphsc results search plan.yaml
    """
    check_file(plan, "plan")
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.plan import TablePlan
    from graphsc.experiments.search_log import log_markdown, read_log, run_candidates
    from graphsc.training.callbacks import reporter_for_terminal

    chosen = [table for table in _chosen(plan, tables) if isinstance(table, TablePlan)]
    if not chosen:
        raise ConfigError("a search needs tables of methods, not of transfer", where=str(plan))
    run_candidates(chosen, log, runs, reporter_for_terminal().log)
    sys.stdout.write(log_markdown(read_log(log)))


@app.command
def table(
    plan: PlanArgument, /, *, tables: TablesOption = None, results: ResultsOption = Path("results")
) -> None:
    """Print the plan's tables as Markdown, with empty cells for what has not run.

    Example: graphsc results table results/plan.yaml --tables final
    """
    check_file(plan, "plan")
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.tables import table_text

    for chosen in _chosen(plan, tables):
        sys.stdout.write(table_text(chosen, ResultStore(results)) + "\n")


@app.command
def write(
    plan: PlanArgument,
    page: Annotated[Path, Parameter(help="A Markdown page with <!-- table: NAME --> marks.")],
    /,
    *,
    results: ResultsOption = Path("results"),
) -> None:
    """Rebuild the tables of a page from stored results.

    Example: graphsc results write results/plan.yaml docs/results.md
    """
    check_file(plan, "plan")
    check_file(page, "page")
    from graphsc.experiments.plan import read_plan
    from graphsc.experiments.result import ResultStore
    from graphsc.paper.pages import write_tables

    changed = write_tables(page, read_plan(plan), ResultStore(results))
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
    """Draw what training is good for: few labels, unseen graphs, other sizes.

    Example: graphsc results gains results/plan.yaml gains.png
    """
    check_file(plan, "plan")
    from graphsc.experiments.plan import read_plan
    from graphsc.experiments.result import ResultStore
    from graphsc.paper.analyses import gains as gains_of
    from graphsc.paper.pages import plain_results
    from graphsc.report.charts import gain_plot
    from graphsc.report.figure import save_figure

    stored = plain_results(read_plan(plan), ResultStore(results))
    panels = {
        control: {
            condition: {data: (gain.points, gain.error) for data, gain in row.items()}
            for condition, row in gains_of(stored, method, control).items()
        }
        for control in (name.strip() for name in controls.split(","))
    }
    save_figure(gain_plot(panels), out)
    sys.stdout.write(f"{out}: {method} above {' and '.join(panels)}\n")


def _chosen(plan: Path, tables: str | None) -> list[AnyTable]:
    from graphsc.experiments.plan import chosen_tables, read_plan

    return chosen_tables(read_plan(plan), tables, str(plan))
