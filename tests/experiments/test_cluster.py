"""Trials, sweeps, embeddings and predictions on a real Dask cluster.

A scheduler and two workers run in processes of their own; tests kill workers and drivers. Most tests share
one cluster, because a worker takes seconds to import what it needs.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

pytest.importorskip("distributed")

from graphsc.cli import main
from graphsc.core import parallel
from graphsc.core.errors import ConfigError, DataError
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

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self.address.rpartition(":")[2]))) == 0

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    """A scheduler of this test alone, without workers."""
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def shared_cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture
def two_workers(shared_cluster):
    """The shared cluster with two workers that are ready; those that a test has killed are replaced."""
    from distributed import Client

    cluster = shared_cluster
    cluster.workers[:] = [worker for worker in cluster.workers if worker.poll() is None]
    while len(cluster.workers) < 2:
        cluster.add_worker()
    with Client(cluster.address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    return cluster


def trials(count, epochs=2):
    return [
        ProbeTrial("motifs:40", "graphsc", seed=seed, training={"epochs": epochs}, protocol=FEW)
        for seed in range(count)
    ]


def lines_of(store):
    return {path.name: path.read_text().count("\n") for path in store.folder.glob("*.jsonl")}


def test_a_killed_worker_s_trials_run_elsewhere_and_the_table_is_that_of_a_local_run(two_workers, tmp_path):
    asked = trials(8)
    local = run_trials(asked, ResultStore(tmp_path / "local"), tmp_path / "local-runs")
    store = ResultStore(tmp_path / "results")
    killed = []

    class Kill(parallel_reporter()):
        def log(self, sentence):
            if sentence.startswith("[2/8]") and not killed:
                killed.append(os.kill(two_workers.workers[0].pid, signal.SIGKILL))

    outcomes = run_trials(
        asked, store, tmp_path / "runs", jobs=None, reporter=Kill(), cluster=two_workers.address
    )
    assert killed
    assert lines_of(store) == {"motifs-40.jsonl": 8}
    for ours, theirs in zip(local, outcomes, strict=True):
        np.testing.assert_array_equal(ours.result.predictions, theirs.result.predictions)


def parallel_reporter():
    from graphsc.training.callbacks import Reporter

    return Reporter


def test_a_killed_driver_s_results_stay_and_the_same_call_runs_only_the_rest(two_workers, tmp_path, capsys):
    asked = [
        "compare", "motifs:40", "--methods", "untrained,raw", "--seeds", "10", "--folds", "3",
        "--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs"),
        "--cluster", two_workers.address,
    ]  # fmt: skip
    command = [sys.executable, "-m", "graphsc", *asked]
    driver = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    store = ResultStore(tmp_path / "results")
    until = time.monotonic() + 120
    while sum(lines_of(store).values()) < 3 and driver.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    before = sum(lines_of(store).values())
    assert 3 <= before < 20
    assert main.run(asked) == 0
    assert f"20 trials: {before} stored, {20 - before} to run" in capsys.readouterr().err
    assert lines_of(store) == {"motifs-40.jsonl": 20}


def test_a_failed_trial_is_named_and_the_others_finish(two_workers, tmp_path):
    bad = ProbeTrial("motifs:40", "graphsc", training={"epochs": 2, "learning_rate": 1e30}, protocol=FEW)
    outcomes = run_trials(
        [bad, *trials(1)], ResultStore(tmp_path / "results"), tmp_path / "runs", cluster=two_workers.address
    )
    assert "learning rate" in outcomes[0].error
    assert outcomes[1].result is not None


def test_graphs_that_differ_on_a_worker_are_refused(two_workers, tmp_path, monkeypatch):
    """The trial means the graphs of this process; a worker that finds others under the path says so."""
    from graphsc.data.readers import open_collection

    path = tmp_path / "mine.safetensors"
    open_collection("motifs:30").save(path)
    asked = ProbeTrial(str(path), "raw", protocol=FEW)
    asked.key()
    monkeypatch.setattr(ProbeTrial, "data_hash", "0" * 64)
    with pytest.raises(DataError, match=r"not those of the trial: content hash [0-9a-f]{12}, expected 0{12}"):
        run_trials([asked], ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=two_workers.address)


def test_a_sweep_runs_on_the_cluster(two_workers, tmp_path):
    pytest.importorskip("optuna")
    from graphsc.experiments.sweep import Sweep, SweepStudy

    asked = Sweep("motifs:40", "untrained", {"encoder.width": [4, 8]}, folds=3, sampler="grid")
    study = SweepStudy(asked, f"sqlite:///{tmp_path}/s.db", "s")
    study.run(runs=tmp_path / "runs", jobs=None, lock=tmp_path / ".lock", cluster=two_workers.address)
    assert [trial.state for trial in study.trials()] == ["done", "done"]


def test_a_sweep_on_graphs_that_differ_on_a_worker_is_refused(two_workers, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    from graphsc.experiments.sweep import Sweep, SweepStudy

    monkeypatch.setattr(Sweep, "data_hash", "0" * 64)
    asked = Sweep("motifs:40", "untrained", {"encoder.width": [4]}, folds=3, sampler="grid")
    study = SweepStudy(asked, f"sqlite:///{tmp_path}/s.db", "s")
    with pytest.raises(DataError, match=r"not those of the trial: content hash [0-9a-f]{12}, expected 0{12}"):
        study.run(runs=tmp_path / "runs", jobs=None, lock=tmp_path / ".lock", cluster=two_workers.address)
    assert [trial.state for trial in study.trials()] == ["running"]  # and not failed


def run(*arguments):
    return main.run([str(argument) for argument in arguments])


def test_molecules_are_converted_on_the_cluster_as_locally(two_workers, tmp_path):
    pytest.importorskip("rdkit")
    lines = ["smiles", *(f"C{'C' * (k % 7)}O" for k in range(3000)), "not a molecule"]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
    for name, options in (("local", ()), ("there", ("--cluster", two_workers.address))):
        out = tmp_path / f"{name}.safetensors"
        assert run("data", "convert", tmp_path / "m.csv", "--out", out, *options) == 0
    content = [(tmp_path / f"{name}.safetensors").read_bytes() for name in ("local", "there")]
    assert content[0] == content[1]


def test_a_plan_runs_on_the_cluster(two_workers, tmp_path):
    plan = "tables: {t: {title: T, trials: [{data: ['motifs:40'], methods: [raw, untrained], folds: 3}]}}"
    (tmp_path / "plan.yaml").write_text(plan)
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    assert run("results", "run", tmp_path / "plan.yaml", *places, "--cluster", two_workers.address) == 0
    assert lines_of(ResultStore(tmp_path / "results")) == {"motifs-40.jsonl": 2}


def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 1.0)
    store = ResultStore(tmp_path / "results")
    with pytest.raises(ConfigError, match="does not answer"):
        run_trials(trials(1), store, tmp_path / "runs", cluster=f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(ConfigError, match="does not answer"):
        run_trials(trials(1), store, tmp_path / "runs", cluster="nonsense")


def test_a_scheduler_without_workers_is_one_sentence(cluster, tmp_path, monkeypatch):
    until = time.monotonic() + 60
    while not cluster.answers():
        assert time.monotonic() < until
        time.sleep(0.05)
    monkeypatch.setattr(parallel, "CLUSTER_TIMEOUT", 3.0)
    with pytest.raises(ConfigError, match="no workers"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)


def test_workers_with_several_threads_are_refused(cluster, tmp_path):
    cluster.add_worker(threads=2)
    with pytest.raises(ConfigError, match="has 2 threads"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=cluster.address)


def test_another_version_on_a_worker_is_refused_before_the_first_trial(two_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "__version__", "0.0.0")
    with pytest.raises(ConfigError, match=r"this process has 0\.0\.0"):
        run_trials(trials(1), ResultStore(tmp_path / "r"), tmp_path / "runs", cluster=two_workers.address)


def test_a_single_worker_is_used(cluster):
    def process(_):
        import os

        return os.getpid()

    cluster.add_worker()
    with parallel.use_cluster(cluster.address), parallel.run_parallel(process, range(3)) as results:
        assert set(results) == {cluster.workers[0].pid}


def test_results_of_one_call_are_complete(two_workers, tmp_path):
    outcomes = run_trials(
        trials(2, 1), ResultStore(tmp_path / "r"), tmp_path / "x", cluster=two_workers.address
    )
    assert len(check_outcomes(outcomes)) == 2


# Embeddings and predictions


def write_molecules(path, rows):
    """A .smi file with an id per row; every 97th row is not a molecule."""
    tails = ["", "O", "N", "(=O)O", "c1ccccc1", "C(F)(F)F", "1CC1"]
    with path.open("w") as file:
        for row in range(rows):
            chain = "C" * (row % 13 + 1) + tails[row % len(tails)]
            file.write(f"{chain if row % 97 else 'nothing'} m{row}\n")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    pytest.importorskip("rdkit")
    from graphsc.data.readers import open_collection
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    folder = tmp_path_factory.mktemp("model") / "run"
    molecules = open_collection(["CCO", "CCN", "c1ccccc1", "CC(F)(F)F", "CC(=O)O", "C1CC1"])
    train(molecules, settings={"encoder.width": 4}, training=TrainSettings(epochs=1), out=folder)
    return folder


class CountedWrites:
    """Notes the index of every chunk that this process stores."""

    def __init__(self, monkeypatch):
        from graphsc.core.chunks import ChunkStore

        self.stored = []
        write = ChunkStore.write

        def noted(store, index, *content):
            self.stored.append(index)
            write(store, index, *content)

        monkeypatch.setattr(ChunkStore, "write", noted)


def test_a_killed_worker_s_chunks_are_embedded_elsewhere_and_the_file_is_that_of_a_local_run(
    two_workers, model, tmp_path, monkeypatch
):
    from graphsc.training.embed_io import embed_source

    write_molecules(tmp_path / "m.smi", 5000)
    embed_source(model, tmp_path / "m.smi", tmp_path / "local.npz", chunk=256)
    killed = []

    def kill(done, total):
        if done >= 5 * 256 and not killed:
            killed.append(os.kill(two_workers.workers[0].pid, signal.SIGKILL))

    writes = CountedWrites(monkeypatch)
    done = embed_source(
        model,
        tmp_path / "m.smi",
        tmp_path / "there.npz",
        chunk=256,
        cluster=two_workers.address,
        progress=kill,
    )
    assert killed
    assert (done.rows, done.graphs) == (5000, 5000 - len(range(0, 5000, 97)))
    assert sorted(writes.stored) == list(range(20))  # 5000 = 19 * 256 + 136
    assert (tmp_path / "there.npz").read_bytes() == (tmp_path / "local.npz").read_bytes()


EMBED = """
import sys, time
from graphsc.training.embed_io import embed_source

model, source, out, cluster = sys.argv[1:]
def progress(done, total):
    print(done, flush=True)
    time.sleep(0.05)
embed_source(model, source, out, chunk=256, cluster=cluster, progress=progress)
"""


def test_a_killed_driver_s_chunks_stay_and_the_same_call_embeds_only_the_rest(two_workers, model, tmp_path):
    from graphsc.training.embed_io import embed_source

    write_molecules(tmp_path / "m.smi", 5000)
    embed_source(model, tmp_path / "m.smi", tmp_path / "local.csv", chunk=256)
    command = [
        sys.executable,
        "-c",
        EMBED,
        model,
        tmp_path / "m.smi",
        tmp_path / "there.csv",
        two_workers.address,
    ]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in driver.stdout:
        if int(line) >= 5 * 256:
            break
    driver.kill()
    driver.communicate()
    assert not (tmp_path / "there.csv").exists()
    stored = len(list((tmp_path / ".there.csv.chunks").glob("*.json"))) - 1  # one is the identity
    assert stored >= 5
    reports = []
    embed_source(
        model, tmp_path / "m.smi", tmp_path / "there.csv", chunk=256, cluster=two_workers.address,
        progress=lambda done, total: reports.append(done),
    )  # fmt: skip
    assert len(reports) == 1 + 20 - stored
    assert reports[-1] == 5000
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


@pytest.mark.slow
def test_a_hundred_thousand_rows_with_a_killed_worker_and_a_killed_driver(cluster, model, tmp_path):
    write_molecules(tmp_path / "m.smi", 100_000)
    assert run("embed", model, tmp_path / "m.smi", "--out", tmp_path / "local.npz") == 0
    for _ in range(2):
        cluster.add_worker()
    target = tmp_path / "there.npz"
    command = [
        sys.executable, "-m", "graphsc", "embed", model, tmp_path / "m.smi", "--out", target,
        "--cluster", cluster.address,
    ]  # fmt: skip
    chunks = tmp_path / ".there.npz.chunks"
    driver = subprocess.Popen(command, cwd=tmp_path)

    def wait_for(count):
        until = time.monotonic() + 300
        while len(list(chunks.glob("chunk-*.json"))) < count and driver.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)

    wait_for(2)
    cluster.workers[0].kill()
    wait_for(5)
    driver.kill()
    driver.wait()
    before = {path.name: path.stat().st_mtime_ns for path in chunks.glob("chunk-*.json")}
    assert 5 <= len(before) < 13  # 100,000 = 12 * 8192 + 1696
    cluster.add_worker()
    driver = subprocess.Popen(command, cwd=tmp_path)
    wait_for(len(before) + 1)
    kept = {path.name: path.stat().st_mtime_ns for path in chunks.glob("chunk-*.json") if path.name in before}
    assert kept == before  # none is computed twice
    assert driver.wait(timeout=300) == 0
    assert target.read_bytes() == (tmp_path / "local.npz").read_bytes()


def test_a_collection_in_memory_is_embedded_on_the_cluster(two_workers, tmp_path):
    """No file of the graphs or of the model exists: both are sent."""
    from graphsc.data.readers import open_collection
    from graphsc.training.embed_io import embed_to_file
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    graphs = open_collection("motifs:300")
    trained = train(graphs, settings={"encoder.width": 4}, training=TrainSettings(epochs=1)).model
    embed_to_file(trained, graphs, tmp_path / "local.npz", chunk=32)
    assert (
        embed_to_file(trained, graphs, tmp_path / "there.npz", chunk=32, cluster=two_workers.address) == 300
    )
    assert (tmp_path / "there.npz").read_bytes() == (tmp_path / "local.npz").read_bytes()


def test_a_shared_value_reaches_each_worker_once_also_one_that_joins_later(cluster):
    def asked(shared, number):  # defined here, because workers cannot import this module
        import os

        value = shared.get()
        return number * int(value.sum()), os.getpid(), id(value)

    first = cluster.add_worker()

    def save(value, folder):
        np.save(folder / "array.npy", value)

    def load(folder):
        import numpy

        return numpy.load(folder / "array.npy")

    value = parallel.Sendable(np.arange(100_000), save, load)
    expected = [number * 4_999_950_000 for number in range(8)]
    workers = set()
    with parallel.use_cluster(cluster.address), parallel.share(value, None) as shared:
        assert len(pytest.importorskip("cloudpickle").dumps(shared)) < 2000  # what goes with each piece
        for worker in (first, cluster.add_worker()):
            if worker is not first:
                first.kill()
            with parallel.run_parallel(partial(asked, shared), range(8)) as results:
                found = sorted(results)
            assert [product for product, _, _ in found] == expected
            workers |= {(process, identity) for _, process, identity in found}
    assert len(workers) == len({process for process, _ in workers})  # read once per process
    assert {process for process, _ in workers} <= {worker.pid for worker in cluster.workers}
    assert cluster.workers[1].pid in {process for process, _ in workers}


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    pytest.importorskip("rdkit")
    from graphsc.finetuning.dataset import read_dataset
    from graphsc.finetuning.finetune import FineTuneSettings, finetune

    folder = tmp_path_factory.mktemp("predictor")
    smiles = ["C" * k + end for k in range(1, 11) for end in ("O", "N", "c1ccccc1")]
    lines = ["smiles,nitrogen", *(f"{text},{int('N' in text)}" for text in smiles)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    finetune(
        read_dataset(folder / "labels.csv", labels="nitrogen"), out=folder / "run", seeds=[0, 1],
        settings=FineTuneSettings(epochs=1, batch_size=16), split="random",
        encoder_settings={"width": 8, "depth": 2}, device="cpu",
    )  # fmt: skip
    return folder / "run"


def test_predictions_on_the_cluster_are_those_of_a_local_run(two_workers, predictor, tmp_path):
    from graphsc.finetuning.predict import predict_table

    write_molecules(tmp_path / "m.smi", 600)
    predict_table(predictor, tmp_path / "m.smi", tmp_path / "local.csv", chunk=64)
    done = predict_table(
        predictor, tmp_path / "m.smi", tmp_path / "there.csv", chunk=64, cluster=two_workers.address
    )
    assert (done.rows, done.rejected) == (600, 7)
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_many_files_on_the_cluster_are_those_of_a_local_run(two_workers, model, tmp_path, capsys):
    """Rows of tables are sent to workers, and a saved collection as a whole; they write no file."""
    from graphsc.data.readers import open_collection

    (tmp_path / "parts").mkdir()
    open_collection(["CCO", "CCN", "c1ccccc1"]).save(tmp_path / "parts" / "saved.safetensors")
    for part in range(4):
        write_molecules(tmp_path / "parts" / f"p{part}.smi", 150 + part)
    (tmp_path / "parts" / "bad.csv").write_text("smiles\n")
    for out, options in (("local", ()), ("there", ("--cluster", two_workers.address))):
        arguments = ("embed", model, tmp_path / "parts", "--out", tmp_path / out, "--format", "npz", *options)
        assert run(*arguments) == 2
        assert f"{tmp_path / 'parts' / 'bad.csv'}: failed" in capsys.readouterr().err
    for name in ("saved.npz", *(f"p{part}.npz" for part in range(4))):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
