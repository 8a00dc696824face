"""Plans of transfer tables, for `graphsc results`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.cli.output import print_table
from graphsc.cli.tables import chosen
from graphsc.cli.worker import OnStorage, run_on_storage
from graphsc.core.errors import ConfigError, DivergedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsc.experiments.transfer_plan import TransferTable, TransferTrial

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

    trials = [trial for table in _chosen(plan, tables) for trial in table.trials()]
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
    from graphsc.training.reporter import reporter_for_terminal

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

    for one in _chosen(plan, tables):
        sys.stdout.write(transfer_text(one, TransferStore(results)) + "\n")


def write_transfer_page(page: Path, plan: Path, results: Path) -> bool:
    """Rebuild the tables of a page from stored results; True if anything changed."""
    from graphsc.experiments.page import rebuilt, rewrite
    from graphsc.experiments.transfer_cards import CardStore, cards_text
    from graphsc.experiments.transfer_run import TransferStore
    from graphsc.experiments.transfer_table import transfer_text

    made = {table.name: table for table in _chosen(plan, None)}

    def text_of(name: str) -> str:
        if name == "weights":
            trials = [trial for table in made.values() for trial in table.trials() if trial.needs_weights]
            return cards_text(list(dict.fromkeys(trial.method for trial in trials)), CardStore(results))
        if name not in made:
            raise ConfigError(f"the page has a table {name!r} that the plan has not", where=str(page))
        return transfer_text(made[name], TransferStore(results))

    return rewrite(page, lambda text: rebuilt(text, text_of))


def _chosen(plan: Path, tables: str | None) -> list[TransferTable]:
    from graphsc.experiments.transfer_plan import read_transfer_plan

    return chosen(read_transfer_plan(plan), tables, plan)
