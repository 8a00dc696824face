"""Workers come, go and die; every cell is run once, and a killed training goes on where it was."""

import os
import signal
import threading
from collections import Counter
from dataclasses import replace

import pytest

from graphsc.cli import main
from graphsc.core.files import StoppedError, file_lock
from graphsc.core.run_folder import RunFolder
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.run import run_trial
from graphsc.experiments.storage import open_storage
from graphsc.experiments.store import ResultStore
from graphsc.experiments.study import Study
from graphsc.experiments.trial import Trial
from graphsc.experiments.worker import OtherMachineError, Worker

pytest.importorskip("optuna")
FEW = Protocol(folds=3, inner_folds=2, grid=(1.0,))


def trial(**changes):
    return Trial(**({"data": "motifs:40", "method": "raw", "protocol": FEW} | changes))


def trained(seed, epochs=25, **training):
    """Long enough to be killed in the middle of."""
    return trial(method="graphsc", seed=seed, training={"epochs": epochs, "batch_size": 40, **training})


@pytest.fixture
def journal(tmp_path):
    return str(tmp_path / "study.journal")


def study_of(url, **times):
    return Study(open_storage(url, create=True), "t", create=True, **times)


@pytest.fixture
def worker_of(tmp_path):
    """A worker in this process, and the lines it said."""

    def make(study, poll=0.05, **changes):
        said = []
        worker = Worker(study, tmp_path / "runs", tmp_path / "results", said.append, poll)
        return replace(worker, **changes), said

    return make


def finished(study):
    """How often each cell has been recorded as done, over all Optuna trials, doubles included."""
    done = [one for one in study.optuna.get_trials() if one.state.name == "COMPLETE"]
    return Counter(one.user_attrs["cell"] for one in done)


def lines_of(processes):
    """What all workers said of cells that they brought to an end."""
    said = "".join(process.said.read_text() for process in processes)
    return [line for line in said.splitlines() if line.startswith("[")]


def run_whole_table(url, count, kills, start_worker, kill_in_training, tmp_path, **times):
    """Two workers on one storage, one of them killed so often; gives the study, kills and workers."""
    study = study_of(url, **times)
    asked = [trained(seed) for seed in range(count)]
    study.enqueue(asked)
    places = ("--runs", tmp_path / "runs", "--results", tmp_path / "results")
    workers = [start_worker(url, *places)]
    killed = []
    for _ in range(kills):
        workers.append(start_worker(url, *places))
        killed.append(kill_in_training(workers[-1], study, tmp_path / "runs"))
    if kills:
        workers.append(start_worker(url, *places))
    for process in (workers[0], workers[-1]):
        assert process.wait(900) == 0, process.said.read_text()
    return study, asked, killed, workers


def check_whole_table(study, asked, killed, workers, tmp_path):
    assert finished(study) == {one.key(): 1 for one in asked}
    assert set(study.results()) == {one.key() for one in asked}
    assert len(ResultStore(tmp_path / "results").all()) == len(asked)
    if workers:
        assert len(lines_of(workers)) == len(asked)
    for folder, before in killed:
        # Resumed: epochs from before the kill are there with their own seconds, which a restart would change.
        # The last of them may have been noted and not yet saved, and is then made again.
        kept = "".join(before.splitlines(keepends=True)[:-1])
        assert kept.count("\n") > 1
        assert (folder / "metrics.csv").read_text().startswith(kept)
    for one in asked:
        rows = (tmp_path / "runs" / one.run_name() / "metrics.csv").read_text().splitlines()
        assert len(rows) == 1 + one.loop().epochs


def test_a_killed_worker_s_cell_is_resumed_by_another(
    journal, start_worker, kill_in_training, worker_of, tmp_path
):
    study = study_of(journal)
    asked = trained(0)
    study.enqueue([asked])
    process = start_worker(journal, "--runs", tmp_path / "runs", "--results", tmp_path / "results")
    killed = [kill_in_training(process, study, tmp_path / "runs")]
    worker, said = worker_of(study_of(journal))
    assert worker.work() == 1
    assert f":{process.pid}:" in said[0]
    assert "which is gone; going on with it" in said[0]
    check_whole_table(study, [asked], killed, [], tmp_path)


@pytest.mark.slow
def test_twelve_runs_with_two_kills_on_a_journal(journal, start_worker, kill_in_training, tmp_path):
    found = run_whole_table(journal, 12, 2, start_worker, kill_in_training, tmp_path)
    check_whole_table(*found, tmp_path)


@pytest.mark.slow
def test_twelve_runs_with_two_kills_on_postgresql(postgres, start_worker, kill_in_training, tmp_path):
    found = run_whole_table(postgres, 12, 2, start_worker, kill_in_training, tmp_path, beat=1, grace=15)
    check_whole_table(*found, tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_worker_asked_to_stop_saves_and_gives_its_cell_back(
    journal, wait_for, tmp_path, capsys, number, code
):
    study = study_of(journal)
    asked = trained(0, epochs=5000)
    study.enqueue([asked])
    folder = RunFolder(tmp_path / "runs" / asked.run_name())

    def ask():
        wait_for(lambda: folder.metrics.exists() and folder.metrics.read_text().count("\n") > 1)
        os.kill(os.getpid(), number)

    asking = threading.Thread(target=ask)
    asking.start()
    places = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"))
    assert main.run(["worker", "--storage", journal, *places]) == code
    asking.join()
    said = capsys.readouterr().err
    assert "cell 0 is given back" in said
    assert "stopped by" in said
    assert [cell.state for cell in study.cells()] == ["waiting"]
    assert list(folder.checkpoints.iterdir())


def test_a_worker_asked_to_stop_while_it_waits_for_others_stops(journal, worker_of):
    study = study_of(journal)
    study.enqueue([trial()])
    held = study.take()
    worker, _ = worker_of(study_of(journal), poll=60)
    asking = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    asking.start()
    with pytest.raises(StoppedError) as caught:
        worker.work()
    asking.join()
    assert caught.value.exit_code == 143
    assert [cell.state for cell in study.cells()] == ["running"]
    held.give_back()


def test_a_diverged_cell_is_failed_with_its_reason_and_the_others_go_on(journal, worker_of):
    study = study_of(journal)
    study.enqueue([trained(0, epochs=2, learning_rate=1e30), trial()])
    worker, said = worker_of(study)
    assert worker.work() == 2
    assert [cell.state for cell in study.cells()] == ["failed", "done"]
    assert "learning rate 1e+30" in study.cells()[0].reason
    assert "failed" in said[0]


def test_a_worker_stops_after_so_many_cells(journal, worker_of):
    study = study_of(journal)
    study.enqueue([trial(seed=seed) for seed in range(3)])
    worker, _ = worker_of(study)
    assert worker.work(2) == 2
    assert [cell.state for cell in study.cells()] == ["done", "done", "waiting"]
    assert worker.work() == 1
    assert worker.work() == 0


def test_what_the_local_store_has_is_recorded_and_not_run(journal, worker_of, tmp_path):
    run_trial(trial(), runs=tmp_path / "elsewhere", store=ResultStore(tmp_path / "results"))
    study = study_of(journal)
    study.enqueue([trial()])
    worker, _ = worker_of(study)
    assert worker.work() == 1
    assert not (tmp_path / "runs").exists()
    assert set(study.results()) == {trial().key()}


def test_a_result_whose_writer_died_before_the_end_is_not_made_again(journal, worker_of, tmp_path):
    made = run_trial(trial(), runs=tmp_path / "elsewhere")
    study = study_of(journal)
    study.enqueue([trial()])
    held = study.take()
    study.storage.optuna.set_trial_user_attr(held.trial_id, "result", made.to_json())
    held._claim.let_go()  # what the system does when a process dies
    worker, said = worker_of(study_of(journal))
    assert worker.work() == 1
    assert "was done already" in said[-1]
    assert not (tmp_path / "runs").exists()
    assert list(study.results()) == [trial().key()]


def test_a_cell_whose_run_folder_is_in_use_waits_and_the_others_go_first(journal, worker_of, tmp_path):
    study = study_of(journal)
    study.enqueue([trial(seed=0), trial(seed=1)])
    worker, _ = worker_of(study)
    with file_lock(tmp_path / "runs" / trial(seed=0).run_name() / ".trial"):
        assert worker.work(1) == 1
        assert [cell.state for cell in study.cells()] == ["waiting", "done"]
    assert worker.work() == 1


def test_a_machine_without_the_graphs_gives_the_cell_back_and_says_so(journal, worker_of):
    study = study_of(journal)
    study.enqueue([trial(data="nowhere/graphs.safetensors")])
    worker, _ = worker_of(study)
    with pytest.raises(Exception, match="nowhere"):
        worker.work()
    assert [cell.state for cell in study.cells()] == ["waiting"]


def test_a_machine_with_other_graphs_is_refused(journal, worker_of, tmp_path):
    study = study_of(journal)
    study.enqueue([trial(seed=0), trial(seed=1)])
    made = run_trial(trial(seed=0), runs=tmp_path / "elsewhere").to_json()
    data = {**made["config"]["data"], "content_hash": "of other graphs"}
    study.take().done(0.5, result={**made, "config": {**made["config"], "data": data}})
    worker, _ = worker_of(study)
    with pytest.raises(OtherMachineError, match="not the motifs:40 of the other workers"):
        worker.work()
    assert [cell.state for cell in study.cells()] == ["done", "waiting"]


def test_a_cell_that_means_something_else_here_is_left_to_others(journal, worker_of):
    study = study_of(journal)
    study.queue({}, {"cell": "0123456789ab", "trial": trial().to_json()})
    worker, _ = worker_of(study)
    with pytest.raises(OtherMachineError, match="same version"):
        worker.work()
    assert [cell.state for cell in study.cells()] == ["waiting"]
