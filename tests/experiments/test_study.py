"""Studies on every kind of storage: cells are queued once, owned by one, and their results are read back."""

import json
import threading
import time

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DamagedFileError, MissingExtraError, NotFoundError
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.journal import cut_torn_line
from graphsc.experiments.owners import HeartbeatOwners
from graphsc.experiments.runner import run_trial
from graphsc.experiments.storage import StorageError, open_storage
from graphsc.experiments.result import ResultStore
from graphsc.experiments.study import Study
from graphsc.experiments.trial import ProbeTrial

pytest.importorskip("optuna")
FEW = Protocol(folds=3, inner_folds=2, grid=(1.0,))


def trial(**changes):
    return ProbeTrial(**({"data": "motifs:40", "method": "raw", "protocol": FEW} | changes))


def trials(count):
    return [trial(seed=seed) for seed in range(count)]


@pytest.fixture
def opened(url):
    """`opened()` is the study as one more worker sees it: a connection of its own."""

    def make(name="t", **times):
        return Study(open_storage(url, create=True), name, create=True, **times)

    return make


def states(study):
    return [cell.state for cell in study.cells()]


def test_cells_are_queued_once(opened):
    assert opened().enqueue(trials(3)) == 3
    assert opened().enqueue(trials(4)) == 1
    assert states(opened()) == ["waiting"] * 4


def test_a_cell_queued_by_two_at_once_is_one_cell(opened):
    one, other = opened(), opened()
    for study in (one, other):
        study.queue({}, {"cell": trial().key(), "trial": trial().to_json()})
    assert [cell.number for cell in opened().cells()] == [0]
    one.take().done(0.5)
    assert other.take() is None


def test_a_cell_has_one_owner(opened):
    opened().enqueue(trials(2))
    first, second = opened().take(), opened().take()
    assert {first.cell.number, second.cell.number} == {0, 1}
    assert opened().take() is None
    assert states(opened()) == ["running", "running"]


def test_of_many_workers_that_want_one_cell_one_gets_it(opened):
    opened().enqueue(trials(1))
    studies = [opened() for _ in range(6)]
    found = []
    gate = threading.Barrier(len(studies))

    def want(study):
        gate.wait()
        found.append(study.take())

    threads = [threading.Thread(target=want, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(held is not None for held in found) == 1


def test_a_cell_given_back_waits_for_anybody(opened):
    opened().enqueue(trials(1))
    opened().take().give_back()
    assert states(opened()) == ["waiting"]
    again = opened().take()
    assert again is not None
    assert again.before is None


def test_a_result_is_read_back_as_it_was_made_on_a_machine_without_it(opened, tmp_path):
    store, asked = ResultStore(tmp_path / "here"), trial()
    made = run_trial(asked, runs=tmp_path / "runs", store=store)
    study = opened()
    study.enqueue([asked])
    assert study.take().done(made.inner_accuracy, result=made.to_json())
    elsewhere = ResultStore(tmp_path / "there")
    assert opened().fetch(elsewhere.folder) == 1
    found = elsewhere.get(asked)
    np.testing.assert_array_equal(found.predictions, made.predictions)
    assert found.to_json() == store.get(asked).to_json()
    assert opened().fetch(elsewhere.folder) == 0


def test_what_the_store_has_is_done_when_it_is_queued(opened, tmp_path):
    store = ResultStore(tmp_path / "results")
    run_trial(trial(), runs=tmp_path / "runs", store=store)
    opened().enqueue(trials(2), store.folder)
    assert states(opened()) == ["done", "waiting"]
    assert list(opened().results()) == [trial().key()]


def test_a_failed_cell_has_its_reason_and_is_queued_again_only_when_asked(opened):
    study = opened()
    study.enqueue(trials(1))
    study.take().failed("the loss is nan")
    assert opened().cells()[0].reason == "the loss is nan"
    assert opened().enqueue(trials(1)) == 0
    assert opened().enqueue(trials(1), retry_failed=True) == 1
    assert states(opened()) == ["waiting"]


def test_a_result_that_was_altered_on_the_way_is_refused(opened, tmp_path):
    made = run_trial(trial(), runs=tmp_path / "runs").to_json()
    study = opened()
    study.enqueue([trial()])
    study.take().done(0.5, result={**made, "accuracy": 99.0})
    with pytest.raises(DamagedFileError, match="cell 0"):
        opened().results()


def test_a_study_that_is_not_there_is_named_with_the_nearest(opened, url):
    opened("plan")
    with pytest.raises(NotFoundError, match="did you mean 'plan'"):
        Study(open_storage(url), "plam")


def test_a_journal_s_cell_whose_owner_is_gone_is_taken_over(tmp_path):
    storage = str(tmp_path / "s.journal")
    one = Study(open_storage(storage, create=True), "t", create=True)
    one.enqueue(trials(1))
    held = one.take()
    other = Study(open_storage(storage), "t")
    assert other.take() is None
    held._claim.let_go()  # what the system does when a process dies
    again = other.take()
    assert again.before == one.worker
    assert not held.done(0.1)  # it has lost the cell
    assert again.done(0.7)
    assert other.cells()[0].value == 0.7


def test_a_database_s_cell_is_taken_over_only_when_its_heart_has_stopped(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    one = Study(open_storage(storage, create=True), "t", create=True, beat=0.3, grace=2)
    one.enqueue(trials(1))
    held = one.take()
    others = [Study(open_storage(storage), "t") for _ in range(3)]
    time.sleep(3.2)
    assert [other.take() for other in others] == [None, None, None]  # it still beats
    held._claim.let_go()
    time.sleep(3.2)
    found = [other.take() for other in others]
    assert [again is not None for again in found] == [True, False, False]
    assert found[0].before == one.worker


def test_all_workers_mean_the_same_by_dead(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    Study(open_storage(storage, create=True), "t", create=True, beat=3, grace=7)
    owners = Study(open_storage(storage), "t", beat=1, grace=2).owners
    assert isinstance(owners, HeartbeatOwners)
    assert (owners.beat, owners.grace) == (3, 7)


def test_a_line_left_half_written_is_cut_off_and_the_journal_goes_on(tmp_path):
    path = tmp_path / "s.journal"
    Study(open_storage(str(path), create=True), "t", create=True).enqueue(trials(2))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":6,"worker_id":"x')
    Study(open_storage(str(path)), "t").enqueue(trials(3))
    assert path.read_bytes().startswith(whole)
    assert all(json.loads(line) for line in path.read_text().splitlines())
    assert len(Study(open_storage(str(path)), "t").cells()) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b""), (b"ab", b""), (b"a\n", b"a\n"), (b"a\nb", b"a\n"), (b"a\n" + b"b" * 200_000, b"a\n")],
)
def test_what_stands_behind_the_last_line_is_cut(tmp_path, before, after):
    path = tmp_path / "j"
    path.write_bytes(before)
    cut_torn_line(path)
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("mysql://me:secret@host/x", ConfigError, "unknown kind of storage 'mysql'"),
        ("results", ConfigError, "FILE.journal"),
        ("sqlite:///:memory:", ConfigError, "no other workers"),
        ("postgresql://me:secret@127.0.0.1:1/x", StorageError, "does not answer"),
        ("postgresql://me:secret@[::1/x", ConfigError, "address"),
        ("nowhere/x.journal", NotFoundError, "no such storage"),
        ("sqlite:///nowhere/x.db", NotFoundError, "no such storage"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_refused_in_a_sentence_without_its_password(address, error, said):
    with pytest.raises(error, match=said) as caught:
        open_storage(address)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "x.journal"
    path.write_text('{"a": 1}\n')
    with pytest.raises(ConfigError, match="not a journal"):
        open_storage(str(path))


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"graphsc\[sweep\]"):
        open_storage(str(tmp_path / "x.journal"), create=True)


def test_a_trial_comes_back_from_json_as_itself():
    asked = trial(
        method="graphsc", settings={"operations": ["drop-nodes"]}, training={"epochs": 2}, fold_seed=4
    )
    again = ProbeTrial.from_json(json.loads(json.dumps(asked.to_json())))
    assert again.key() == asked.key()
    assert again.run_name() == asked.run_name()
    with pytest.raises(ConfigError, match="did you mean 'method'"):
        ProbeTrial.from_json({**asked.to_json(), "methid": "x"})
