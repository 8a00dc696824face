"""`graphsc sweep`: search settings of a method, by inner folds alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from cyclopts import Parameter

from graphsc.cli.data import FeaturesOption, JsonOption
from graphsc.cli.evaluate import FoldsOption
from graphsc.cli.train import SetOption

if TYPE_CHECKING:
    from graphsc.experiments.cells import AnyTrial
    from graphsc.experiments.study import Study


# `graphsc worker`: take cells of a study until none is left.


StorageOption = Annotated[
    str,
    Parameter(
        help="Where the study is: FILE.journal on one machine; postgresql://USER@HOST/DATABASE or "
        "sqlite:///FILE for workers that share no folder."
    ),
]
RunsOption = Annotated[Path, Parameter(help="Where training runs live.")]
ResultsOption = Annotated[Path, Parameter(help="Where results are kept.")]


def worker(
    *,
    storage: StorageOption,
    study: Annotated[
        str | None, Parameter(help="A study by name; by default all of the storage, one after the other.")
    ] = None,
    runs: RunsOption = Path("runs"),
    results: ResultsOption = Path("results"),
    max_trials: Annotated[int | None, Parameter(help="Stop after so many cells.")] = None,
) -> None:
    """Run what a study still lacks, beside any number of other workers; they may come and go, or die."""
    from graphsc.core.errors import ConfigError, NotFoundError
    from graphsc.experiments.storage import open_storage
    from graphsc.experiments.study import Study

    if max_trials is not None and max_trials < 1:
        raise ConfigError(f"--max-trials is {max_trials}", hint="use 1 or more")
    opened = open_storage(storage)
    names = [study] if study is not None else opened.studies
    if not names:
        raise NotFoundError(
            "there is no study to work on", where=opened.name,
            hint="make one with graphsc results run --storage or graphsc sweep --storage",
        )  # fmt: skip
    left = max_trials
    for name in names:
        ended = work_on(Study(opened, name), runs, results, left)
        left = None if left is None else left - ended
        if left == 0:
            return


def work_on(study: Study, runs: Path, results: Path, most: int | None = None) -> int:
    """Be a worker of this study in this process, and say what was done."""
    from graphsc.experiments.worker import Worker
    from graphsc.training.callbacks import reporter_for_terminal

    say = reporter_for_terminal().log
    cells = study.cells()
    say(f"study {study.name}: {len(cells)} cells, {sum(cell.open for cell in cells)} to run")
    ended = Worker(study, runs, results, say).work(most)
    states = [cell.state for cell in study.cells()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
    say(f"study {study.name}: {counts}; {ended} by this worker")
    return ended


class OnStorage(NamedTuple):
    """Where trials are queued for workers."""

    storage: str
    study: str
    retry_failed: bool = False


def run_on_storage(trials: Sequence[AnyTrial], on: OnStorage, *, runs: Path, results: Path) -> None:
    """Queue the trials, work on them with whoever joins, and fetch all results into the local folder."""
    from graphsc.core.errors import DivergedError
    from graphsc.experiments.storage import open_storage
    from graphsc.experiments.study import Study
    from graphsc.training.callbacks import reporter_for_terminal

    study = Study(open_storage(on.storage, create=True), on.study, create=True)
    study.enqueue(trials, results, retry_failed=on.retry_failed)
    reporter_for_terminal().log(f"others can join: {join_line(study, runs, results)}")
    work_on(study, runs, results)
    study.fetch(results)
    asked = {trial.key() for trial in trials}
    failed = [cell for cell in study.cells() if cell.key in asked and cell.state == "failed"]
    if failed:
        raise DivergedError(
            f"{len(failed)} of {len(asked)} trials failed, the first: {failed[0].reason}",
            hint="the others are stored; --retry-failed queues the failed ones again",
        )


def join_line(study: Study, runs: Path, results: Path = Path("results")) -> str:
    """The command by which another process or machine joins; a password is left out."""
    words = ["graphsc", "worker", "--storage", study.storage.name, "--study", study.name]
    for option, folder in (("--runs", runs), ("--results", results)):
        words += [] if folder == Path(option[2:]) else [option, str(folder)]
    return shlex.join(words)


def sweep(
    source: Annotated[str, Parameter(help="A collection, as for train.")],
    /,
    *,
    method: Annotated[str, Parameter(help="A method, as 'graphsc methods' lists them.")] = "graphsc",
    space: Annotated[str, Parameter(help="A YAML file of settings and their values, or 'paper'.")],
    trials: Annotated[
        int | None, Parameter(help="How many settings to try; by default 20, or a whole grid.")
    ] = None,
    sampler: Annotated[Literal["tpe", "random", "grid"], Parameter(help="How settings are drawn.")] = "tpe",
    pruner: Annotated[
        Literal["none", "median", "hyperband"], Parameter(help="What ends poor trials early.")
    ] = "none",
    seeds: Annotated[int, Parameter(help="Trainings a trial; their mean decides.")] = 1,
    first_seed: Annotated[int, Parameter(help="The first of the seeds; none that a table reports.")] = 1000,
    set_: SetOption = None,
    epochs: Annotated[int | None, Parameter(help="For every trial; by default the method's own.")] = None,
    preset: Annotated[str, Parameter(help="A preset of the method, to start from.")] = "default",
    features: FeaturesOption = None,
    folds: FoldsOption = 10,
    storage: StorageOption | None = None,
    study: Annotated[str | None, Parameter(help="The study's name; by default DATA-METHOD.")] = None,
    runs: RunsOption = Path("runs"),
    out: Annotated[
        Path | None, Parameter(help="Where tables and pictures go; by default sweeps/DATA-METHOD.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Search for good settings; run the same command again to go on, or with more trials to extend it.

    What decides is the accuracy on inner folds, which hold training graphs only. No test fold is predicted.
    """
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.core.errors import DivergedError
    from graphsc.experiments.space import read_space
    from graphsc.experiments.storage import open_storage
    from graphsc.experiments.sweep import Sweep, open_sweep
    from graphsc.experiments.sweep_files import best_of, command_of, settings_of, write_sweep
    from graphsc.experiments.trial import Trial
    from graphsc.training.callbacks import reporter_for_terminal

    given = parse_assignments(set_ or [])
    prefix = "training."
    training = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    if epochs is not None:
        training["epochs"] = epochs
    asked = Sweep(
        source, method, read_space(space), features=features or "auto", preset=preset,
        settings={key: value for key, value in given.items() if not key.startswith(prefix)},
        training=training, folds=folds, seeds=seeds, first_seed=first_seed, sampler=sampler, pruner=pruner,
    )  # fmt: skip
    asked.check()
    name = study or f"{Trial(source, method).data_name}-{method}"
    folder = out or Path("sweeps") / name
    say = reporter_for_terminal().log
    opened = open_sweep(
        open_storage(storage or str(folder / "sweep.journal"), create=True), name, asked, trials
    )
    say(f"others can join: {join_line(opened, runs)}")
    work_on(opened, runs, Path("results"))
    for sentence in write_sweep(opened, folder):
        say(f"note: {sentence}")
    best = best_of(opened)
    if best is None or best.value is None:
        raise DivergedError(
            f"none of {len(opened.cells())} trials has finished", where=str(folder / "trials.csv"),
            hint="the table says why; try other values",
        )  # fmt: skip
    found = settings_of(best)
    if json:
        print_json(
            {"trial": best.number, "inner_accuracy": best.value, "settings": found, "out": str(folder)}
        )
        return
    facts = [("best trial", best.number), ("inner accuracy", f"{100 * best.value:.2f} %"), *found.items()]
    print_facts(f"{method} on {source}", [*facts, ("written to", folder)])
    sys.stdout.write(f"{command_of(asked, found)}\ngraphsc results run {folder / 'best.yaml'}\n")
