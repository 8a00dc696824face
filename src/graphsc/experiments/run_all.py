"""Many trials, some at a time: what is stored is skipped, what fails is named, the rest goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphsc.core.errors import CannotWriteError, DivergedError, GraphscError
from graphsc.core.files import InUseError, StoppedError
from graphsc.experiments.result import Result
from graphsc.experiments.run import run_trial
from graphsc.experiments.single import one_thread, shared_collection
from graphsc.experiments.store import ResultStore
from graphsc.experiments.trial import Trial

POLL = 2.0  # seconds between looks at trials that another process is running


@dataclass(frozen=True)
class Outcome:
    """How one trial ended: with a result, an error, or a signal; with none of them it is in other hands."""

    trial: Trial
    result: Result | None = None
    error: str | None = None
    signal: int | None = None


def run_all(
    trials: Sequence[Trial],
    store: ResultStore,
    runs: str | Path,
    *,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Run what the store has not; one thread a trial, so that `jobs` changes no number."""
    by_key = {trial.key(): trial for trial in trials}
    found = {
        key: Outcome(trial, kept) for key, trial in by_key.items() if (kept := store.get(trial)) is not None
    }
    missing = [trial for key, trial in by_key.items() if key not in found]
    say(f"{len(by_key)} trials: {len(found)} stored, {len(missing)} to run")
    while missing:
        before = len(missing)
        for outcome in _each(missing, store, runs, min(jobs, before)):
            if outcome.signal is not None:
                raise StoppedError(outcome.signal, f"{len(found)} of {len(by_key)} trials are stored")
            if outcome.result is not None or outcome.error is not None:
                found[outcome.trial.key()] = outcome
                say(f"[{len(found)}/{len(by_key)}] {in_a_line(outcome)}")
        missing = [trial for key, trial in by_key.items() if key not in found]
        if len(missing) == before:
            time.sleep(POLL)
    return [found[trial.key()] for trial in trials]


def in_a_line(outcome: Outcome) -> str:
    """What ran and how it ended."""
    trial = outcome.trial
    what = f"{trial.method} on {trial.data_name}, seed {trial.seed}"
    if outcome.result is None:
        return f"{what}: failed: {outcome.error}"
    seconds = outcome.result.seconds.get("total", 0.0)
    return f"{what}: {100 * outcome.result.accuracy:.2f} % in {seconds:.0f} s"


def check_outcomes(outcomes: Sequence[Outcome]) -> list[Result]:
    """All results, or one sentence that counts and names the failures."""
    failed = [outcome for outcome in outcomes if outcome.result is None]
    if failed:
        raise DivergedError(
            f"{len(failed)} of {len(outcomes)} trials failed, the first: {in_a_line(failed[0])}",
            hint="the others are stored; the same command runs the failed ones again",
        )
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def _each(trials: Sequence[Trial], store: ResultStore, runs: str | Path, jobs: int) -> Iterator[Outcome]:
    """Outcomes as they come."""
    if jobs == 1:
        yield from (_run(trial, store, runs) for trial in trials)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)(
            delayed(_run)(trial, store, runs) for trial in trials
        )


def _run(trial: Trial, store: ResultStore, runs: str | Path) -> Outcome:
    try:
        with one_thread():
            collection = shared_collection(trial.data, trial.features)
            return Outcome(trial, run_trial(trial, collection=collection, runs=runs, store=store))
    except InUseError:
        return Outcome(trial)
    except StoppedError as stopped:
        return Outcome(trial, signal=stopped.exit_code - 128)
    except CannotWriteError:
        raise  # a full disk fails every trial, not this one
    except GraphscError as error:
        return Outcome(trial, error=str(error))
