"""`graphsc worker`: take cells of a study until none is left."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

if TYPE_CHECKING:
    from graphsc.experiments.cells import AnyTrial
    from graphsc.experiments.study import Study

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
    from graphsc.training.reporter import reporter_for_terminal

    say = reporter_for_terminal().say
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
    from graphsc.training.reporter import reporter_for_terminal

    study = Study(open_storage(on.storage, create=True), on.study, create=True)
    study.enqueue(trials, results, retry_failed=on.retry_failed)
    reporter_for_terminal().say(f"others can join: {join_line(study, runs, results)}")
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
