"""Pieces of work in worker processes: every result once, errors in one sentence, no process left behind."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError, GraphscError, GraphscWarning
from graphsc.core.files import StoppedError
from graphsc.core.parallel import Sendable, available_jobs, run_parallel, share

# Workers cannot import a test module. Functions defined inside a function are sent to them by value.


def square():
    return lambda number: (number, number * number, os.getpid())


def results_of(function, pieces, **options):
    with run_parallel(function, pieces, **options) as results:
        return list(results)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_piece_has_one_result(jobs):
    results = results_of(square(), range(30), jobs=jobs)
    assert sorted((number, squared) for number, squared, _ in results) == [(k, k * k) for k in range(30)]


def test_one_job_runs_here_and_in_order_without_joblib(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    results = results_of(square(), range(5), jobs=1)
    assert results == [(k, k * k, os.getpid()) for k in range(5)]


def test_two_jobs_run_in_two_other_processes():
    def slow(number):
        import time

        time.sleep(0.2)
        return os.getpid()

    workers = set(results_of(slow, range(6), jobs=2))
    assert len(workers) == 2
    assert os.getpid() not in workers


def test_results_come_as_they_complete():
    def sleep(seconds):
        import time

        time.sleep(seconds)
        return seconds

    results_of(sleep, [0, 0], jobs=2)  # start the workers
    assert results_of(sleep, [1.5, 0.0, 0.1], jobs=2) == [0.0, 0.1, 1.5]


def test_pieces_are_read_a_few_at_a_time():
    read = []

    def pieces():
        for number in range(200):
            read.append(number)
            yield number

    with run_parallel(square(), pieces(), jobs=2) as results:
        next(results)
        first = len(read)
        assert len(list(results)) == 199
    assert first < 30


def test_no_pieces_have_no_results():
    assert results_of(square(), [], jobs=2) == []


def test_workers_use_one_thread():
    def threads(_):
        import os

        import numpy  # noqa: F401
        from threadpoolctl import threadpool_info

        return os.environ["OMP_NUM_THREADS"], [pool["num_threads"] for pool in threadpool_info()]

    for variable, pools in results_of(threads, range(4), jobs=2):
        assert variable == "1"
        assert set(pools) <= {1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_piece_keeps_its_class_and_sentence(jobs):
    def fail(number):
        if number == 3:
            raise DataError("row 3 is wrong", where="m.csv", hint="mend it")
        return number

    with pytest.raises(DataError, match=r"^row 3 is wrong \(m.csv\); mend it$"):
        results_of(fail, range(20), jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_while_pieces_are_read_is_raised(jobs):
    def pieces():
        yield from range(12)
        raise ConfigError("the source ends here")

    with pytest.raises(ConfigError, match="the source ends here"):
        results_of(square(), pieces(), jobs=jobs)


def test_a_piece_that_kills_its_worker_each_time_is_one_sentence(tmp_path):
    def die(folder):
        import os
        from pathlib import Path

        (Path(folder) / str(os.getpid())).touch()
        os._exit(9)

    expected = r"worker processes died 3 times with the same piece of work \(m.csv\); is there enough memory"
    with pytest.warns(GraphscWarning), pytest.raises(GraphscError, match=expected):
        results_of(die, [tmp_path], jobs=2, where="m.csv")
    assert len(list(tmp_path.iterdir())) == 3
    assert len(results_of(square(), range(4), jobs=2)) == 4  # the next call has new workers


def test_pieces_of_a_worker_that_dies_run_again_and_have_one_result_each(tmp_path):
    def die_once(number):
        import os

        if number in (3, 11):
            try:
                (tmp_path / str(number)).mkdir()
            except FileExistsError:
                return number
            os._exit(9)
        return number

    said = r"a worker process died \(m.csv\); its work is run again by another one"
    with pytest.warns(GraphscWarning, match=said) as warned:
        results = results_of(die_once, iter(range(20)), jobs=2, where="m.csv")
    assert sorted(results) == list(range(20))
    assert len(warned) <= 2  # both may die at once


def test_the_caller_s_backend_is_used():
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert available_jobs() >= 1
        results = results_of(square(), range(8))
    assert {process for _, _, process in results} == {os.getpid()}


def test_the_caller_s_number_of_jobs_is_used():
    with joblib.parallel_config(n_jobs=2):
        results = results_of(square(), range(20))
    assert len({process for _, _, process in results} - {os.getpid()}) <= 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_signal_handlers_are_restored(jobs):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    results_of(square(), range(4), jobs=jobs)
    with suppress(RuntimeError), run_parallel(square(), range(50), jobs=jobs) as results:
        next(results)
        raise RuntimeError
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_leaving_early_cancels_the_rest_without_a_warning(recwarn):
    def slow(number):
        import time

        time.sleep(0.05 if number == 0 else 30)
        return number

    began = time.monotonic()
    with run_parallel(slow, range(4), jobs=2) as results:
        assert next(results) == 0
    assert time.monotonic() - began < 15
    assert not [warning for warning in recwarn if "tasks" in str(warning.message)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_stop_between_results_is_an_error_that_says_where(jobs, number):
    taken = []

    def consume():
        with run_parallel(square(), range(30), jobs=jobs, where="m.csv") as results:
            for result in results:
                taken.append(result)
                signal.raise_signal(number)

    with pytest.raises(StoppedError, match=rf"stopped by {number.name} \(m.csv\)") as stop:
        consume()
    assert stop.value.exit_code == 128 + number
    assert len(taken) == 1


def test_a_stop_does_not_wait_for_the_pieces_at_hand():
    def sleep(seconds):
        import time

        time.sleep(seconds)
        return seconds

    results_of(sleep, [0, 0], jobs=2)  # start the workers
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        results_of(sleep, [60, 60], jobs=2, where="m.csv")
    assert time.monotonic() - began < 20


def test_stop_signals_do_not_reach_workers():
    def signalled(number):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return number

    assert sorted(results_of(signalled, range(4), jobs=2)) == [0, 1, 2, 3]


def test_works_in_a_thread_that_cannot_set_signal_handlers():
    found = []
    thread = threading.Thread(target=lambda: found.extend(results_of(square(), range(6), jobs=2)))
    thread.start()
    thread.join()
    assert len(found) == 6


# A program whose pieces say which process they run in, then take a minute.
PROGRAM = """
import os, sys, time
from pathlib import Path
from graphsc.core.parallel import run_parallel

def wait(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(60)

if __name__ == "__main__":
    from graphsc.core.errors import GraphscError
    try:
        with run_parallel(wait, [sys.argv[1]] * 4, jobs=2, where="m.csv") as results:
            list(results)
    except GraphscError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code)
"""


def alive(pid):
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
@pytest.mark.parametrize(
    ("number", "to_group", "code"),
    [
        (signal.SIGINT, False, 130),
        (signal.SIGINT, True, 130),  # as Ctrl-C in a terminal
        (signal.SIGTERM, False, 143),
        (signal.SIGTERM, True, 143),  # as batch systems send it
        (signal.SIGKILL, False, -9),
    ],
)
def test_no_process_is_left_behind(tmp_path, number, to_group, code):
    folder = tmp_path / "pids"
    folder.mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    driver = subprocess.Popen(
        [sys.executable, tmp_path / "program.py", folder], stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2:
        assert driver.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    workers = [int(path.name) for path in folder.iterdir()]
    (os.killpg if to_group else os.kill)(driver.pid, number)
    if number != signal.SIGKILL:
        _, said = driver.communicate(timeout=30)
        assert said.startswith(f"error: stopped by {number.name} (m.csv)")
        assert said.count("\n") == 1
    assert driver.wait(30) == code
    driver.stderr.close()
    while any(map(alive, workers)):
        assert time.monotonic() < until + 30, "a worker is still there"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_a_worker_killed_while_it_sends_a_large_result_is_replaced(tmp_path):
    """A part of a message in a pipe would make this process wait for the rest for ever."""

    def make(number):
        def written():
            return int(Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0])

        def kill_while_sending(start):
            while written() < start + 10_000_000:
                pass
            os.kill(os.getpid(), signal.SIGKILL)

        if number == 1 and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            threading.Thread(target=kill_while_sending, args=(written(),), daemon=True).start()
        return bytes([number]) * 200_000_000

    with pytest.warns(GraphscWarning, match="a worker process died"):
        results = results_of(make, [1, 2], jobs=2)
    assert (tmp_path / "killed").exists()
    assert sorted((result[0], len(result)) for result in results) == [(1, 200_000_000), (2, 200_000_000)]


def test_large_pieces_and_results_arrive(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # others use the common folder at the same time
    pieces = [(k, bytes([k]) * 100_000) for k in range(12)]
    results = results_of(lambda piece: (piece[0], piece[1] + b"!"), pieces, jobs=2)
    assert sorted(results) == [(k, content + b"!") for k, content in pieces]
    assert list(tmp_path.glob("graphsc-*")) == []


def test_files_of_the_working_folder_are_not_imported_by_workers(tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit('imported by mistake')")
    code = (
        "from graphsc.core.parallel import run_parallel\n"
        "with run_parallel(abs, [-1, -2, -3], jobs=2) as results: print(sorted(results))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[1, 2, 3]\n", "")


def test_large_arrays_arrive_writable():
    def add(array):
        array += 1
        return float(array.sum())

    arrays = [np.zeros(500_000) for _ in range(3)]
    assert results_of(add, arrays, jobs=2) == [500_000.0] * 3


def product():
    def compute(shared, number):
        import os

        value = shared.get()
        return number * int(value.sum()), os.getpid(), id(value)

    return compute


def array(values):
    """An array that travels as an .npy file."""

    def save(value, folder):
        np.save(folder / "array.npy", value)

    def load(folder):
        import numpy

        return numpy.load(folder / "array.npy")

    return Sendable(np.array(values), save, load)


def as_sent(shared):
    cloudpickle = pytest.importorskip("cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(shared))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_shared_value_is_read_once_per_process(backend):
    with joblib.parallel_config(backend=backend), share(array(range(100_000)), 2) as shared:
        results = results_of(partial(product(), shared), range(1, 9), jobs=2)
    assert sorted(number for number, _, _ in results) == [k * 4_999_950_000 for k in range(1, 9)]
    processes = {process for _, process, _ in results}
    assert len({(process, identity) for _, process, identity in results}) == len(processes)


def test_a_shared_value_goes_to_local_processes_by_a_file_that_is_removed():
    with share(array(range(100_000)), 2) as shared:
        assert len(pytest.importorskip("cloudpickle").dumps(shared)) < 2000  # what goes with each piece
        (path,) = shared._folder.iterdir()
        assert path.stat().st_size > 800_000
    assert not path.parent.exists()


def test_a_shared_value_that_was_altered_or_lost_is_refused():
    with share(array([1, 2]), 2) as shared:
        sent = as_sent(shared)
        (shared._folder / "array.npy").write_bytes(b"other")
        with pytest.raises(GraphscError, match="did not receive the data"):
            sent.get()
    with pytest.raises(GraphscError, match="did not receive the data"):
        sent.get()


def test_other_backends_send_a_shared_value_with_every_piece():
    with joblib.parallel_config(backend="threading"), share(array([1, 2]), 2) as shared:
        sent = as_sent(shared)
    assert sent.get().tolist() == [1, 2]


def test_one_job_shares_the_value_itself():
    value = object()
    with share(Sendable(value, None, None), 1) as shared:  # nothing is saved or loaded
        assert shared.get() is value


def test_local_workers_are_spread_over_the_gpus(monkeypatch):
    def gpu(number):
        import os
        import time

        time.sleep(0.3)
        return os.getpid(), os.environ["CUDA_VISIBLE_DEVICES"]

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,7")
    of_worker = dict(results_of(gpu, range(6), jobs=2))
    assert sorted(of_worker.values()) == ["3", "7"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,7"


def test_the_place_of_a_worker_that_died_is_taken_again(tmp_path):
    from graphsc.core.parallel import _worker_number

    program = (
        "import sys; from pathlib import Path; from graphsc.core.parallel import _worker_number\n"
        "print(_worker_number(Path(sys.argv[1])), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    first = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline().strip() == "0"
    assert _worker_number(tmp_path) == 1
    first.kill()
    first.wait()
    again = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert again.stdout.strip() == "0"


def test_gpus_are_those_of_the_environment_or_of_torch(monkeypatch):
    from graphsc.core.parallel import visible_gpus

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", " GPU-1a, 2 ")
    assert visible_gpus() == ("GPU-1a", "2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == ()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert visible_gpus() == ()
