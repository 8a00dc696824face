"""Trials and sweeps on a real Dask cluster: a scheduler and two workers in processes of their own."""

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("distributed")

from graphsc.cli import main
from graphsc.core import parallel
from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import check_outcomes, run_trials
from graphsc.experiments.trial import ProbeTrial

FEW = Protocol(folds=3, inner_folds=2, grid=(1.0,))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A scheduler on loopback; workers are started and killed by the tests."""

    def __init__(self, folder):
        self.folder = folder
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.processes = []
        port = self.address.rpartition(":")[2]
        self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show")
        self.workers = []

    def _start(self, *words):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        log = (self.folder / f"dask-{len(self.processes)}.txt").open("wb")
        command = [sys.executable, "-m", "dask", *words]
        process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, env=environment)
        self.processes.append(process)
        return process

    def add_worker(self, threads=1):
        self.workers.append(
            self._start(
                "worker", self.address, "--nthreads", str(threads), "--no-nanny", "--no-dashboard",
                "--death-timeout", "60",
            )
        )  # fmt: skip
        return self.workers[-1]

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def trials(count, epochs=2):
    return [
        ProbeTrial("motifs:40", "graphsc", seed=seed, training={"epochs": epochs}, protocol=FEW)
        for seed in range(count)
    ]


def lines_of(store):
    return {path.name: path.read_text().count("\n") for path in store.folder.glob("*.jsonl")}


def test_a_killed_worker_s_trials_run_elsewhere_and_the_table_is_that_of_a_local_run(cluster, tmp_path):
    for _ in range(2):
        cluster.add_worker()
    asked = trials(12)
    local = run_trials(asked, ResultStore(tmp_path / "local"), tmp_path / "local-runs")
    store = ResultStore(tmp_path / "results")
    killed = []

    class Kill(parallel_reporter()):
        def log(self, sentence):
            if sentence.startswith("[3/12]") and not killed:
                killed.append(os.kill(cluster.workers[0].pid, signal.SIGKILL))

    outcomes = run_trials(
        asked, store, tmp_path / "runs", jobs=None, reporter=Kill(), cluster=cluster.address
    )
    assert killed
    assert lines_of(store) == {"motifs:40.jsonl": 12}
    for ours, theirs in zip(local, outcomes, strict=True):
        np.testing.assert_array_equal(ours.result.predictions, theirs.result.predictions)


def parallel_reporter():
    from graphsc.training.callbacks import Reporter

    return Reporter


def test_a_killed_driver_s_results_stay_and_the_same_call_runs_only_the_rest(cluster, tmp_path):
    for _ in range(2):
        cluster.add_worker()
    command = [
        sys.executable, "-m", "graphsc", "compare", "motifs:40", "--methods", "untrained,raw", "--seeds", "6",
        "--folds", "3", "--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"),
        "--cluster", cluster.address,
    ]  # fmt: skip
    driver = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    store = ResultStore(tmp_path / "results")
    until = time.monotonic() + 120
    while sum(lines_of(store).values()) < 3 and driver.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    before = sum(lines_of(store).values())
    assert before >= 3
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert again.returncode == 0, again.stderr
    assert f"12 trials: {before} stored, {12 - before} to run" in again.stderr
    assert lines_of(store) == {"motifs:40.jsonl": 12}


def test_a_failed_trial_is_named_and_the_others_finish(cluster, tmp_path):
    cluster.add_worker()
    bad = ProbeTrial("motifs:40", "graphsc", training={"epochs": 2, "learning_rate": 1e30}, protocol=FEW)
    outcomes = run_trials(
        [bad, *trials(1)], ResultStore(tmp_path / "results"), tmp_path / "runs", cluster=cluster.address
    )
    assert "learning rate" in outcomes[0].error
    assert outcomes[1].result is not None


def test_graphs_that_differ_on_a_worker_are_refused(cluster, tmp_path, monkeypatch):
    """The trial means the graphs of this process; a worker that finds others under the path says so."""
    from graphsc.data.readers import open_collection

    cluster.add_worker()
    path = tmp_path / "mine.safetensors"
    open_collection("motifs:30").save(path)
    asked = ProbeTrial(str(path), "raw", protocol=FEW)
    asked.key()
    monkeypatch.setattr(ProbeTrial, "data_hash", "0" * 64)
    (outcome,) = run_trials([asked], ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)
    assert "not those of the trial" in outcome.error


def test_a_sweep_runs_on_the_cluster(cluster, tmp_path):
    pytest.importorskip("optuna")
    from graphsc.experiments.sweep import Sweep, SweepStudy

    for _ in range(2):
        cluster.add_worker()
    asked = Sweep("motifs:40", "untrained", {"encoder.width": [4, 8]}, folds=3, sampler="grid")
    study = SweepStudy(asked, f"sqlite:///{tmp_path}/s.db", "s")
    study.run(runs=tmp_path / "runs", jobs=None, lock=tmp_path / ".lock", cluster=cluster.address)
    assert [trial.state for trial in study.trials()] == ["done", "done"]


def run(*arguments):
    return main.run([str(argument) for argument in arguments])


def test_molecules_are_converted_on_the_cluster_as_locally(cluster, tmp_path):
    pytest.importorskip("rdkit")
    for _ in range(2):
        cluster.add_worker()
    lines = ["smiles", *(f"C{'C' * (k % 7)}O" for k in range(3000)), "not a molecule"]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
    for name, options in (("local", ()), ("there", ("--cluster", cluster.address))):
        out = tmp_path / f"{name}.safetensors"
        assert run("data", "convert", tmp_path / "m.csv", "--out", out, *options) == 0
    content = [(tmp_path / f"{name}.safetensors").read_bytes() for name in ("local", "there")]
    assert content[0] == content[1]


def test_a_plan_runs_on_the_cluster(cluster, tmp_path):
    cluster.add_worker()
    plan = "tables: {t: {title: T, trials: [{data: ['motifs:40'], methods: [raw, untrained], folds: 3}]}}"
    (tmp_path / "plan.yaml").write_text(plan)
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    assert run("results", "run", tmp_path / "plan.yaml", *places, "--cluster", cluster.address) == 0
    assert lines_of(ResultStore(tmp_path / "results")) == {"motifs:40.jsonl": 2}


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 1.0)
    store = ResultStore(tmp_path / "results")
    with pytest.raises(ConfigError, match="does not answer"):
        run_trials(trials(1), store, tmp_path / "runs", cluster=f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(ConfigError, match="does not answer"):
        run_trials(trials(1), store, tmp_path / "runs", cluster="nonsense")


def test_a_scheduler_without_workers_is_one_sentence(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 12.0)
    with pytest.raises(ConfigError, match="no workers"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)


def test_workers_with_several_threads_are_refused(cluster, tmp_path):
    cluster.add_worker(threads=2)
    with pytest.raises(ConfigError, match="has 2 threads"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)


def test_another_version_on_a_worker_is_refused_before_the_first_trial(cluster, tmp_path, monkeypatch):
    cluster.add_worker()
    monkeypatch.setattr(parallel, "__version__", "0.0.0")
    with pytest.raises(ConfigError, match=r"this process has 0\.0\.0"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)


def test_results_of_one_call_are_complete(cluster, tmp_path):
    cluster.add_worker()
    outcomes = run_trials(trials(2, 1), ResultStore(tmp_path / "r"), tmp_path / "x", cluster=cluster.address)
    assert len(check_outcomes(outcomes)) == 2
