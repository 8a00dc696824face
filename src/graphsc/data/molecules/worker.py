"""A worker process: chunks of rows in on stdin, finished parts on disk, a word on stdout for each.

Run as a program of its own and not by forking or spawning the caller: that works from any script and
notebook, and a worker whose caller is gone finds its input closed and ends. Lines are JSON: first
`[folder, plan]`, then `[index, rows]` for each chunk, answered by `[index, rows, rejected]`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO, cast

from graphsc.core.errors import GraphscError
from graphsc.data.molecules.conversion import Parts, Plan, chunk_to_collection
from graphsc.data.molecules.rows import Packed, unpack


def serve(requests: TextIO, answers: TextIO) -> None:
    """Work until the input ends."""
    folder, stored = json.loads(requests.readline())
    classes = {task: tuple(names) for task, names in stored.pop("classes").items()}
    plan = Plan(**stored | {"tasks": tuple(stored["tasks"]), "classes": classes})
    parts = Parts(Path(folder))
    caller = os.getppid()
    for line in requests:
        index, packed = cast(tuple[int, Packed], json.loads(line))
        try:
            collection, outcome = chunk_to_collection(unpack(packed), plan)
            if os.getppid() != caller:
                return  # nobody waits for this any more, and another may be at work in the folder
            parts.keep(index, collection, outcome)
            answer: list[object] = [index, outcome.rows, len(outcome.rejected)]
        except (GraphscError, OSError) as error:
            answer = [index, str(error)]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
