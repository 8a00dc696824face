"""What no reader may do, watched while it reads: hang, eat memory, write, run or call out."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from types import FrameType

SECONDS = 10  # for one input of some kilobytes
MEMORY = 2 * 2**30

FORBIDDEN = {
    "pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect",
    "os.symlink", "os.link", "os.mkdir", "os.rename", "shutil.copyfile",
}  # fmt: skip


class HungError(BaseException):
    """It took too long; not an `Exception`, so that no reader takes it for an error of its input."""


class Guard:
    """Notes forbidden acts while it watches; the hook itself can never be taken out again."""

    def __init__(self) -> None:
        self.acts: list[str] = []
        self.watching = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, details: tuple[object, ...]) -> None:
        if not self.watching:
            return
        if event in FORBIDDEN:
            self.acts.append(f"{event} {details!r:.200}")
        elif event == "open" and len(details) > 2:
            flags = details[2]
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                self.acts.append(f"open for writing {details[0]!r:.200}")

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        self.acts = []
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        self.watching = True
        try:
            yield
        finally:
            self.watching = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def limit_memory() -> None:
    """No more than `MEMORY` beyond what the process has mapped by now."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, resource.RLIM_INFINITY))


def _too_long(_: int, __: FrameType | None) -> None:
    raise HungError(f"no end after {SECONDS} s")
