"""`graphsc reproduce table4`: trials of transfer, listed, run and made into a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graphsc.core.errors import ConfigError, GraphscError

if TYPE_CHECKING:
    from graphsc.cli.worker import OnStorage
    from graphsc.experiments.reproduce.make import Made
    from graphsc.experiments.reproduce.transfer_recipe import TransferRequest
    from graphsc.experiments.transfer_plan import TransferTrial


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
    from graphsc.cli.transfer_results import run_transfer_trials
    from graphsc.cli.worker import run_on_storage
    from graphsc.core.signals import StoppedError
    from graphsc.experiments.reproduce.make import Made
    from graphsc.experiments.reproduce.transfer_recipe import asked_of, read_transfer_recipe
    from graphsc.experiments.reproduce.transfer_sheet import transfer_sheets
    from graphsc.experiments.transfer_run import TransferStore

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
        _list(recipe.name, left, runs / "pretrain")
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
    from graphsc.experiments.reproduce.expand import is_here
    from graphsc.training.reporter import reporter_for_terminal

    absent = [data for data in dict.fromkeys(trial.data for trial in trials) if not is_here(data)]
    if absent:
        reporter_for_terminal().say(f"not on this machine, stays empty: {', '.join(absent)}")
    return [trial for trial in trials if trial.data not in absent]


def _list(name: str, trials: Sequence[TransferTrial], weights: Path) -> None:
    from graphsc.cli.output import print_table
    from graphsc.core.run_folder import RunFolder
    from graphsc.experiments.reproduce.calibrate import in_words
    from graphsc.experiments.reproduce.transfer_calibrate import estimate_pretraining, estimate_transfer

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
