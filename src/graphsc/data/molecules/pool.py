"""Several workers at once: chunks go to whoever is free, answers come back as they are done."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, cast

import graphsc
from graphsc.core.errors import DataError
from graphsc.core.extras import require
from graphsc.data.molecules.chunk import Plan
from graphsc.data.molecules.rows import Row, pack

POLL = 0.2  # seconds after which a caller may look whether it was asked to stop

Answer = tuple[int, int, int]  # chunk, rows, rows rejected


class Pool:
    """Worker processes that write finished chunks into one folder."""

    def __init__(self, workers: int, folder: Path, plan: Plan) -> None:
        require("rdkit")  # here, where a missing one is an error of one line
        root = str(Path(graphsc.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        self._children = [
            # Our own interpreter and module, and no shell.
            subprocess.Popen(  # nosec B603
                # -P: a file of the working folder must not stand in for a module of the same name.
                [sys.executable, "-P", "-m", "graphsc.data.molecules.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("GRAPHSC_DEBUG") else subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
                start_new_session=True,  # Ctrl-C is for us to hear, and to pass on in our own way
            )
            for _ in range(workers)
        ]
        self._selector = selectors.DefaultSelector()
        for child in self._children:
            self._selector.register(cast(IO[bytes], child.stdout), selectors.EVENT_READ, child)
            _send(child, [str(folder), plan.to_json()])

    def run(self, chunks: Iterable[tuple[int, list[Row]]]) -> Iterator[Answer | None]:
        """Answers in the order in which chunks are done, and None whenever a while has passed without."""
        waiting = iter(chunks)
        free = list(self._children)
        busy = 0
        following = next(waiting, None)
        while busy or following is not None:
            while free and following is not None:
                _send(free.pop(), [following[0], pack(following[1])])
                busy += 1
                following = next(waiting, None)  # read ahead while the workers work
            ready = self._selector.select(POLL)
            if not ready:
                yield None
            for key, _ in ready:
                child = cast("subprocess.Popen[bytes]", key.data)
                line = cast(IO[bytes], child.stdout).readline()
                if not line:
                    raise DataError(
                        f"a worker process ended with code {child.wait()}",
                        hint="is there enough memory? pass workers=1",
                    )
                answer = json.loads(line)
                if len(answer) == 2:
                    raise DataError(answer[1])
                free.append(child)
                busy -= 1
                yield cast(Answer, tuple(answer))

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for child in self._children:
            if error is not None:
                child.kill()
            with suppress(BrokenPipeError):
                cast(IO[bytes], child.stdin).close()
            cast(IO[bytes], child.stdout).close()
        for child in self._children:
            child.wait()


def _send(child: subprocess.Popen[bytes], message: object) -> None:
    pipe = cast(IO[bytes], child.stdin)
    with suppress(BrokenPipeError):  # it has died; reading its answer will say so
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()
