"""Workers as processes of their own, and a real PostgreSQL server on loopback."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest


@pytest.fixture
def start_worker(tmp_path):
    """`start_worker(url)` gives a process that runs `graphsc worker`; what is left of them is ended after."""
    started = []

    def start(url, *options, where=tmp_path):
        said = tmp_path / f"worker-{len(started)}.txt"
        command = [sys.executable, "-m", "graphsc", "worker", "--storage", url, *map(str, options)]
        with said.open("wb") as file:
            process = subprocess.Popen(
                command, cwd=where, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
        process.said = said
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def wait_for():
    """`wait_for(condition)` polls until it holds, and fails after `seconds`."""

    def wait(condition, seconds=400.0):
        until = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < until, "waited too long"
            time.sleep(0.05)
        return found

    return wait


@pytest.fixture
def kill_in_training(wait_for):
    """SIGKILL a worker in the middle of a training; gives the run's folder and the metrics it had by then."""

    def kill(process, study, runs, epochs=2):
        from graphsc.experiments.trial import ProbeTrial

        def deep_in():
            for cell in study.cells():
                if cell.state == "running" and f":{process.pid}:" in str(cell.attributes.get("owner")):
                    folder = runs / ProbeTrial.from_json(cell.attributes["trial"]).run_name()
                    metrics = folder / "metrics.csv"
                    if metrics.exists() and metrics.read_text().count("\n") > epochs:
                        return folder
            assert process.poll() is None, process.said.read_text()
            return None

        folder = wait_for(deep_in)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        return folder, (folder / "metrics.csv").read_text()

    return kill


@pytest.fixture(scope="session")
def postgres():
    """The address of an empty database on a server of our own, which dies with the tests."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *filter(None, [_config_folder()])]
    found = [Path(folder) for folder in folders if (Path(folder) / "initdb").exists()]
    if not found:
        pytest.skip("no PostgreSQL server on this machine (initdb was not found)")
    pytest.importorskip("psycopg")
    programs = found[-1]
    home = Path(tempfile.mkdtemp(prefix="graphsc-postgres-"))
    change = []
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((name for name in ("postgres", "nobody") if _exists(name)), None)
        if user is None or shutil.which("setpriv") is None:
            shutil.rmtree(home)
            pytest.skip("PostgreSQL refuses to run as root, and there is no other user to be")
        shutil.chown(home, user)
        change = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = home / "data"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    start = [programs / "initdb", "-D", data, "-U", "graphsc", "-A", "trust", "-N", "-E", "UTF8"]
    subprocess.run([*change, *start], **quiet)
    # Durability is not what is tested: without fsync a test takes seconds less.
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    control = [*change, programs / "pg_ctl", "-D", data]
    subprocess.run([*control, "-l", home / "log", "-w", "-o", options, "start"], **quiet)
    try:
        yield f"postgresql://graphsc@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
        shutil.rmtree(home, ignore_errors=True)


def _config_folder():
    program = shutil.which("pg_config")
    if program is None:
        return None
    return subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False).stdout.strip()


def _exists(user):
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


@pytest.fixture(params=["journal", "postgresql"])
def url(request, tmp_path):
    """An empty storage of each kind: owners by lock, and by heartbeat."""
    if request.param == "journal":
        return str(tmp_path / "study.journal")
    address = request.getfixturevalue("postgres")
    import psycopg

    name = f"test_{abs(hash(str(tmp_path)))}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{address.removesuffix('postgres')}{name}"
