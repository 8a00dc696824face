"""Commands in forks of this process, in whose memory the modules already are; a program of its own.

A process that trains pays seconds of work for its imports. Here they are paid once, and each command still
has a process of its own, in which nothing has been registered or cached.

Reads lines of JSON, [folder, arguments]. Answers each with the exit code, the output, the errors, the seconds
of work and the peak of memory in kB.
"""

import json
import os
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from graphsc.cli.main import run

STATUS = Path("/proc/self/status")


def work(folder: str, arguments: list[str], notes: Path) -> None:
    code = 70
    try:
        os.chdir(folder)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(notes / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        # The maximum that the system reports to a parent begins at the parent's own size.
        peak = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
        (notes / "peak").write_text(peak[1] if peak else "0")
    finally:
        os._exit(code)


def main() -> None:
    for name in ("torch", "lightning_fabric", "sklearn.svm"):
        import_module(name)
    with tempfile.TemporaryDirectory() as notes:
        for line in sys.stdin:
            folder, arguments = json.loads(line)
            child = os.fork()
            if child == 0:
                work(folder, arguments, Path(notes))
            _, status, usage = os.wait4(child, 0)
            out, err, peak = (Path(notes, name).read_text("utf-8") for name in ("out", "err", "peak"))
            code, seconds = os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
            print(json.dumps([code, out, err, seconds, int(peak)]), flush=True)


main()
