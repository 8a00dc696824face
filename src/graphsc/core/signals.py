"""Being asked to stop: finish what is at hand, save, then go."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from graphsc.core.errors import GraphscError


class StoppedError(GraphscError):
    """Work was asked to stop and has saved what it did; the same call goes on from there."""

    def __init__(self, number: int, where: str) -> None:
        self.exit_code = 128 + number
        super().__init__(
            f"stopped by {signal.Signals(number).name}", where=where, hint="run the same command to go on"
        )


class StopRequest:
    """Which signal has asked us to stop, if any."""

    def __init__(self) -> None:
        self.number: int | None = None

    def check(self, where: str) -> None:
        """Stop here if that was asked for; `where` says how far the work has come."""
        if self.number is not None:
            raise StoppedError(self.number, where)


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Note SIGINT and SIGTERM instead of dying of them; a second SIGINT ends at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may set handlers
        return

    def note(number: int, _: FrameType | None) -> None:
        request.number = number
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
