"""Suspicious SMILES strings are tried in a child process before RDKit parses them here.

RDKit finds rings in a time and memory that grow fast with their number: 600 atoms with six bonds each,
14,000 characters of text, take gigabytes. In the child, such a text meets a limit of rings, of memory and of
time, and a crash ends the child alone. A text that passes is parsed again by the caller, at the same cost.

The limit of rings is the one that decides in practice, because it is the same on every machine. Random graphs
at the limit take about a second and 350 MB.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess  # nosec B404
import sys
import threading
from contextlib import suppress
from types import ModuleType, TracebackType

from graphsc.core.errors import GraphscError
from graphsc.core.registry import require

SHORT = 1_000  # characters; any text up to here takes RDKit less than 0.1 seconds
LONG = 5_000  # characters; any longer text is suspicious
CLOSURES = 200  # ring-closure labels; with more, a text between SHORT and LONG is suspicious
MAX_RINGS = 600  # independent rings; a fullerene of 1,000 atoms has 501
MEMORY = 2**30  # bytes that the child may allocate
SECONDS = 30.0  # for one text
START = 120.0  # seconds for the child to start

_LABEL = re.compile(r"\[[^\]]*\]|(%\([0-9]+\)|%[0-9][0-9]|[0-9])")


def is_suspicious(text: str) -> bool:
    """Whether RDKit may need much time or memory for a text."""
    if len(text) <= SHORT:
        return False
    return len(text) > LONG or sum(map(bool, _LABEL.findall(text))) > CLOSURES


class ParserGuard:
    """Tries texts in a child process, which is started for the first one and ends with the `with` block."""

    def __init__(self, *, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        self.memory, self.seconds = memory, seconds
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> ParserGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def refuse(self, text: str, max_atoms: int) -> str | None:
        """Why a text is rejected, or None if this process can parse it."""
        message = json.dumps([text, max_atoms])
        for _ in range(2):  # again, in case someone else killed the child
            if self._child is None:
                self._child = self._start()
            answer, late = self._ask(self._child, message)
            if answer is not None:
                reason: str | None = json.loads(answer)
                return reason
            self._end()
            if late:
                return f"RDKit takes more than {self.seconds:g} seconds"
        return f"RDKit fails within {self.memory // 2**20:,} MB of memory"

    def _start(self) -> subprocess.Popen[str]:
        paths = os.pathsep.join(path for path in sys.path if path)
        child = subprocess.Popen(  # noqa: S603  # nosec B603
            [sys.executable, "-P", "-m", __name__, str(self.memory), str(self.seconds)],
            env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C stops the caller, not the child of which it expects an answer
        )
        if _answer(child, START)[0] is None:
            child.kill()
            child.communicate()
            raise GraphscError(
                "the process that tries suspicious SMILES does not start",
                hint="is there enough memory? use fewer jobs",
            )
        return child

    def _ask(self, child: subprocess.Popen[str], message: str) -> tuple[str | None, bool]:
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        with suppress(BrokenPipeError):
            child.stdin.write(message + "\n")
            child.stdin.flush()
        return _answer(child, self.seconds)

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            with suppress(BrokenPipeError):
                self._child.communicate()
            self._child = None


def _answer(child: subprocess.Popen[str], seconds: float) -> tuple[str | None, bool]:
    """The next line of a child, None if it died; and whether it was killed because it took too long."""
    assert child.stdout is not None  # noqa: S101 - it is a pipe
    late = threading.Event()

    def end() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    line = child.stdout.readline()
    timer.cancel()
    return line if line.endswith("\n") else None, late.is_set()


# The child


def _serve(memory: int, seconds: float) -> None:
    """Answer a text per line with null or the reason why it is rejected, until the input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the caller ends this process, or its end does
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        _limit_memory(memory)
        _say("ready")
        for line in sys.stdin:
            _limit_time(seconds)
            text, max_atoms = json.loads(line)
            try:
                reason = _try(chem, text, max_atoms)
            except MemoryError:
                os._exit(1)  # like a crash, which is how most of RDKit takes a lack of memory
            except Exception:
                reason = None  # the caller meets the same error, and names it
            _say(json.dumps(reason))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _try(chem: ModuleType, text: str, max_atoms: int) -> str | None:
    """Parse a text, first without rings; only a reason that concerns size is returned."""
    raw = chem.MolFromSmiles(text, sanitize=False)
    if raw is None:
        return None
    heavy = sum(atom.GetAtomicNum() != 1 for atom in raw.GetAtoms())
    if heavy > max_atoms:
        return f"{heavy:,} atoms, at most {max_atoms:,} are taken"
    rings = raw.GetNumBonds() - raw.GetNumAtoms() + len(chem.GetMolFrags(raw))
    if rings > MAX_RINGS:
        return f"{rings:,} rings, at most {MAX_RINGS:,} are taken"
    if chem.MolFromSmiles(text) is None:
        chem.DetectChemistryProblems(raw)
    return None


def _limit_memory(size: int) -> None:
    """Limit the memory to what is in use now and `size` bytes more, where the system can do it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + size, used + size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_time(seconds: float) -> None:
    """Let the system end this process if its caller is gone and cannot."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 5, hard))


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]))
