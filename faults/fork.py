"""Commands in forks of this process, in whose memory their modules already are.

A restart costs nothing, so that kills fall into the work and not into the start of Python.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

GRACE = 5.0  # seconds in which children must notice that their parent was killed


def start(arguments: tuple[str, ...], folder: Path) -> int:
    """The command in its folder, in silence, in a session of its own; gives the process's id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        os.chdir(folder)
        silent = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        from graphsc.cli.main import run

        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        folder.with_suffix(".modules").write_text("\n".join(sys.modules))
    finally:
        os._exit(code)


def wait(pid: int) -> None:
    """Until it has ended by itself, which must be well."""
    _, status = os.waitpid(pid, 0)
    if status:
        raise SystemExit(f"a command that nobody killed ended with status {status}")


def kill_after(pid: int, seconds: float) -> bool:
    """SIGKILL when the time is over; False where it was done before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            if status:
                raise SystemExit(f"a command that nobody killed ended with status {status}")
            return False
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def left_of(session: int) -> int:
    """How many processes of a killed command are alive after `GRACE` seconds; they are killed then."""
    until = time.monotonic() + GRACE
    while (left := _members(session)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(left)


def _members(session: int) -> list[int]:
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            state, _, _, number = path.read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state != "Z":
                members.append(int(path.parent.name))
    return members


def learn_modules(folder: Path) -> None:
    """Import here what the command that ended in this folder had imported, for all that come after it."""
    for name in folder.with_suffix(".modules").read_text().split("\n"):
        if name not in sys.modules and not name.startswith("__"):
            with suppress(Exception):  # some modules are made on the way and cannot be imported
                importlib.import_module(name)
