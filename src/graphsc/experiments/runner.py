"""Runs trials of either kind: stored results are used again, failures are reported, the rest continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar, overload

from graphsc.core.errors import CannotWriteError, DataError, DivergedError, GraphscError
from graphsc.core.files import InUseError, StoppedError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.experiments.probe import run_probe
from graphsc.experiments.result import AnyResult, AnyTrial, Result, ResultStore
from graphsc.experiments.transfer import PretrainedWeights, run_transfer, shared_molecules
from graphsc.experiments.trial import ProbeTrial, TransferTrial
from graphsc.finetuning.result import TransferResult
from graphsc.training.callbacks import Reporter

T = TypeVar("T")
POLL = 2.0  # seconds between looks at trials that another process is running


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: with a result, an error or a signal. With none of them another process has it."""

    trial: AnyTrial
    result: AnyResult | None = None
    error: str | None = None
    signal: int | None = None

    @property
    def line(self) -> str:
        """The trial and how it ended."""
        ended = f"failed: {self.error}" if self.result is None else self.result.summary
        return f"{self.trial.description}: {ended}"


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, so that the number of parallel trials changes no number."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=2)
def _opened(data: str, features: str, data_hash: str) -> GraphCollection:
    collection = open_collection(data, features=features)
    check_graphs(data, collection.with_features("auto").content_hash, data_hash)
    return collection


def shared_collection(trial: ProbeTrial) -> GraphCollection:
    """The trial's graphs, opened once for neighbouring trials.

    Raises:
        DataError: Where the graphs are not those of the trial's identity.
    """
    return _opened(trial.data, trial.features, trial.data_hash)


def check_graphs(data: str, found: str, expected: str) -> None:
    """Refuse graphs that are not those of the trial."""
    if found != expected:
        raise DataError(
            f"the graphs of {data} are not those of the trial: content hash {found[:12]}, expected "
            f"{expected[:12]}",
            hint="to use other graphs than the known ones under this name, give the path of their file",
        )


@overload
def run_trial(
    trial: ProbeTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
) -> Result: ...
@overload
def run_trial(
    trial: TransferTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
) -> TransferResult: ...
def run_trial(
    trial: AnyTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
) -> AnyResult:
    """The trial's result: from the store, or by running it in a folder under `runs`.

    Args:
        trial: A trial of either kind.
        runs: Parent folder of training runs.
        store: Where results are looked up and kept.
        reporter: Shows the progress of training.
        weights: Pre-trained weights of transfer trials; by default in `runs/pretrain`.

    Raises:
        InUseError: While another process runs the same training.
    """
    if store is not None and (stored := store.get(trial)) is not None:
        return stored
    with one_thread():
        if isinstance(trial, ProbeTrial):
            collection = shared_collection(trial)
            return run_probe(trial, collection, runs=runs, store=store, reporter=reporter)
        molecules, _ = shared_molecules(trial.data, trial.split)
        check_graphs(trial.data, molecules.collection.content_hash, trial.data_hash)
        if weights is None:
            results = Path(runs) if store is None else store.folder
            weights = PretrainedWeights(Path(runs) / "pretrain", results)
        return run_transfer(trial, runs=runs, weights=weights, store=store, reporter=reporter)


def run_trials(
    trials: Sequence[AnyTrial],
    store: ResultStore,
    runs: str | Path,
    *,
    jobs: int = 1,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
) -> list[Outcome]:
    """Run the trials that have no stored result, `jobs` at a time, with one thread each.

    Returns:
        One outcome per trial, in the order of `trials`.

    Raises:
        StoppedError: When asked to stop. Stored results stay, and the same call resumes.
        CannotWriteError: Where the disk is full or read-only.
    """
    reporter = reporter or Reporter()
    by_key = {trial.key(): trial for trial in trials}
    ended: dict[str, Outcome] = {}
    for key, trial in by_key.items():
        if (stored := store.get(trial)) is not None:
            ended[key] = Outcome(trial, stored)
    missing = [trial for key, trial in by_key.items() if key not in ended]
    reporter.log(f"{len(by_key)} trials: {len(ended)} stored, {len(missing)} to run")
    while missing:
        before = len(missing)
        for outcome in each_result(
            _run, ((trial, store, runs, weights) for trial in missing), min(jobs, before)
        ):
            if outcome.signal is not None:
                raise StoppedError(outcome.signal, f"{len(ended)} of {len(by_key)} trials are stored")
            if outcome.result is not None or outcome.error is not None:
                ended[outcome.trial.key()] = outcome
                reporter.log(f"[{len(ended)}/{len(by_key)}] {outcome.line}")
        missing = [trial for key, trial in by_key.items() if key not in ended]
        if len(missing) == before:
            time.sleep(POLL)
    return [ended[trial.key()] for trial in trials]


def check_outcomes(outcomes: Sequence[Outcome]) -> list[AnyResult]:
    """All results, or an error that counts the failures and names the first."""
    failed = [outcome for outcome in outcomes if outcome.result is None]
    if failed:
        raise DivergedError(
            f"{len(failed)} of {len(outcomes)} trials failed, the first: {failed[0].line}",
            hint="the others are stored; the same command runs the failed ones again",
        )
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def probe_results(outcomes: Sequence[Outcome]) -> list[Result]:
    """The results of probe trials, all of which must have succeeded."""
    return [result for result in check_outcomes(outcomes) if isinstance(result, Result)]


def each_result(function: Callable[..., T], pieces: Iterable[tuple[object, ...]], jobs: int) -> Iterator[T]:
    """Results of `function(*piece)` in the order of completion, `jobs` at a time."""
    if jobs == 1:
        yield from (function(*piece) for piece in pieces)
        return
    from joblib import Parallel, delayed, parallel_config

    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)(
            delayed(function)(*piece) for piece in pieces
        )


def _run(trial: AnyTrial, store: ResultStore, runs: str | Path, weights: PretrainedWeights | None) -> Outcome:
    try:
        return Outcome(trial, run_trial(trial, runs=runs, store=store, weights=weights))
    except InUseError:
        return Outcome(trial)
    except StoppedError as stopped:
        return Outcome(trial, signal=stopped.exit_code - 128)
    except CannotWriteError:
        raise  # a full disk fails every trial, not this one
    except GraphscError as error:
        return Outcome(trial, error=str(error))
