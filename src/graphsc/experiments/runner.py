"""Runs trials of either kind: stored results are used again, failures are reported, the rest continues."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import overload

from graphsc.core.errors import CannotWriteError, DataError, DivergedError, GraphscError
from graphsc.core.files import InUseError, StoppedError
from graphsc.core.parallel import available_jobs, run_parallel, use_cluster
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.experiments.probe import run_probe
from graphsc.experiments.result import AnyResult, AnyTrial, Result, ResultStore
from graphsc.experiments.transfer import PretrainedWeights, run_transfer, shared_molecules
from graphsc.experiments.trial import ProbeTrial, TransferTrial, check_graphs
from graphsc.finetuning.result import TransferResult
from graphsc.training.callbacks import Reporter, duration
from graphsc.training.distributed import driver_device

POLL = 2.0  # seconds between looks at trials that another process is running


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: with a result, an error or a signal. With none of them another process has it."""

    trial: AnyTrial
    result: AnyResult | None = None
    error: str | None = None
    code: int = 2  # exit code of the error
    signal: int | None = None
    data_hash: str = ""  # of the graphs that it ran on

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
def _opened(data: str, features: str, data_hash: str, reader: str | None, options: str) -> GraphCollection:
    collection = open_collection(data, reader=reader, **{**json.loads(options), "features": features})
    check_graphs(data, collection.with_features("auto").content_hash, data_hash)
    return collection


def shared_collection(trial: ProbeTrial) -> GraphCollection:
    """The trial's graphs, opened once for neighbouring trials.

    Raises:
        DataError: Where the graphs are not those of the trial's identity.
    """
    options = json.dumps(dict(trial.options), sort_keys=True, default=str)
    return _opened(trial.data, trial.features, trial.data_hash, trial.reader, options)


@overload
def run_trial(
    trial: ProbeTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
    device: str = "auto",
) -> Result: ...
@overload
def run_trial(
    trial: TransferTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
    device: str = "auto",
) -> TransferResult: ...
def run_trial(
    trial: AnyTrial,
    *,
    runs: str | Path,
    store: ResultStore | None = None,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
    device: str = "auto",
) -> AnyResult:
    """The trial's result: from the store, or by running it in a folder under `runs`.

    Args:
        trial: A trial of either kind.
        runs: Parent folder of training runs.
        store: Where results are looked up and kept.
        reporter: Shows the progress of training.
        weights: Pre-trained weights of transfer trials; by default in `runs/pretrain`.
        device: `auto`, `cpu`, `cuda` or `mps`, where models train.

    Raises:
        InUseError: While another process runs the same training.
    """
    if store is not None and (stored := store.get(trial)) is not None:
        return stored
    with one_thread():
        if isinstance(trial, ProbeTrial):
            collection = shared_collection(trial)
            return run_probe(trial, collection, runs=runs, store=store, reporter=reporter, device=device)
        molecules, _ = shared_molecules(trial.data, trial.split)
        check_graphs(trial.data, molecules.content_hash, trial.data_hash)
        if weights is None:
            results = Path(runs) if store is None else store.folder
            weights = PretrainedWeights(Path(runs) / "pretrain", results)
        return run_transfer(trial, runs=runs, weights=weights, store=store, reporter=reporter, device=device)


def run_trials(
    trials: Sequence[AnyTrial],
    store: ResultStore,
    runs: str | Path,
    *,
    jobs: int | None = 1,
    reporter: Reporter | None = None,
    weights: PretrainedWeights | None = None,
    cluster: str | None = None,
    device: str = "auto",
) -> list[Outcome]:
    """Run the trials that have no stored result, several at a time, with one thread each.

    Args:
        trials: Trials of either kind.
        store: Where results are looked up and kept.
        runs: Parent folder of training runs.
        jobs: Trials at a time; None for as many as there are cores. A cluster uses all its workers.
        reporter: Receives one line per trial.
        weights: Pre-trained weights of transfer trials.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`. Workers find data by name or path, and
            runs in a shared folder or in their own; this process stores each result as it arrives.
        device: `auto`, `cpu`, `cuda` or `mps`, where models train. Local processes share the GPUs there are.

    Returns:
        One outcome per trial, in the order of `trials`.

    Raises:
        StoppedError: When asked to stop. Stored results stay, and the same call resumes.
        CannotWriteError: Where the disk is full or read-only.
        DataError: Where a worker finds other graphs than this process.
    """
    reporter = reporter or Reporter()
    driver_device(device, jobs, cluster)
    by_key = {trial.key(): trial for trial in trials}
    ended: dict[str, Outcome] = {}
    for key, trial in by_key.items():
        if (stored := store.get(trial)) is not None:
            ended[key] = Outcome(trial, stored)
    missing = [trial for key, trial in by_key.items() if key not in ended]
    costs = _Costs(outcome.result for outcome in ended.values())
    parallel = 1 if jobs == 1 and cluster is None else min(len(missing), jobs or available_jobs()) or 1
    left = costs.left(missing, parallel)
    reporter.log(f"{len(by_key)} trials: {len(ended)} stored, {len(missing)} to run{left}")
    if not missing:
        return [ended[trial.key()] for trial in trials]
    runs, results = (
        Path(runs).absolute(),
        store.folder.absolute(),
    )  # workers have working folders of their own
    shared = ResultStore(results) if cluster is None else None
    weights = weights or PretrainedWeights(runs / "pretrain", results)
    weights = replace(weights, folder=weights.folder.absolute(), results=weights.results.absolute())
    with use_cluster(cluster), reporter.counting("finished", "trials", lines=False) as progress:
        progress(len(ended), len(by_key))
        while missing:
            pieces = [_Piece(trial, trial.data_hash, runs, weights, shared, device) for trial in missing]
            count = None if jobs is None or cluster else min(jobs, len(missing))
            with run_parallel(_run, pieces, jobs=count, where="finished trials are stored") as outcomes:
                for outcome in outcomes:
                    if outcome.signal is not None:
                        raise StoppedError(outcome.signal, f"{len(ended)} of {len(by_key)} trials are stored")
                    if outcome.result is None and outcome.error is None:
                        continue
                    check_graphs(outcome.trial.data, outcome.trial.data_hash, outcome.data_hash)
                    if outcome.result is not None and outcome.trial not in store:
                        outcome = replace(outcome, result=store.put(outcome.trial, outcome.result))
                    ended[outcome.trial.key()] = outcome
                    costs.add(outcome.result)
                    coming = [trial for key, trial in by_key.items() if key not in ended]
                    left = costs.left(coming, parallel)
                    reporter.log(f"[{len(ended)}/{len(by_key)}] {outcome.line}{left}")
                    progress(len(ended), len(by_key))
            remaining = [trial for key, trial in by_key.items() if key not in ended]
            if len(remaining) == len(missing):
                time.sleep(POLL)  # another process runs all of them
            missing = remaining
    return [ended[trial.key()] for trial in trials]


class _Costs:
    """Seconds of finished trials, from which the time of others is estimated."""

    def __init__(self, results: Iterable[AnyResult | None]) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for result in results:
            self.add(result)

    def add(self, result: AnyResult | None) -> None:
        if result is not None and (seconds := result.seconds.get("total")) is not None:
            data, method = str(result.trial["data"]), str(result.trial["method"])
            for key in ((data, method), (method,), ()):
                self._seconds[key].append(float(seconds))

    def left(self, trials: Sequence[AnyTrial], jobs: int) -> str:
        """The time for these trials in words: by trials of the same data and method, or else the like."""
        total = 0.0
        for trial in trials:
            keys = ((trial.data_name, trial.method), (trial.method,), ())
            known = next((self._seconds[key] for key in keys if key in self._seconds), None)
            if known is None:
                return ""
            total += sum(known) / len(known)
        return f", about {duration(total / jobs)} left" if trials else ""


def check_outcomes(outcomes: Sequence[Outcome]) -> list[AnyResult]:
    """All results, or an error that counts the failures and names the first."""
    failed = [outcome for outcome in outcomes if outcome.result is None]
    if failed:
        # Only what diverged is a divergence: graphs without labels, for example, are bad input.
        error = (
            DivergedError if all(outcome.code == DivergedError.exit_code for outcome in failed) else DataError
        )
        raise error(
            f"{len(failed)} of {len(outcomes)} trials failed, the first: {failed[0].line}",
            hint="the others are stored; the same command runs the failed ones again",
        )
    return [outcome.result for outcome in outcomes if outcome.result is not None]


def probe_results(outcomes: Sequence[Outcome]) -> list[Result]:
    """The results of probe trials, all of which must have succeeded."""
    return [result for result in check_outcomes(outcomes) if isinstance(result, Result)]


@dataclass(frozen=True)
class _Piece:
    """A trial for a worker. On a cluster the driver stores the result, so `store` is missing there."""

    trial: AnyTrial
    data_hash: str
    runs: Path
    weights: PretrainedWeights | None
    store: ResultStore | None
    device: str


def _run(piece: _Piece) -> Outcome:
    trial = piece.trial
    check_graphs(trial.data, trial.data_hash, piece.data_hash)
    try:
        result = run_trial(
            trial, runs=piece.runs, store=piece.store, weights=piece.weights, device=piece.device
        )
        return Outcome(trial, result, data_hash=piece.data_hash)
    except InUseError:
        return Outcome(trial)
    except StoppedError as stopped:
        return Outcome(trial, signal=stopped.exit_code - 128)
    except CannotWriteError:
        raise  # a full disk fails every trial, not this one
    except GraphscError as error:
        return Outcome(trial, error=str(error), code=error.exit_code, data_hash=piece.data_hash)
