"""Kill a command at every file it writes: run as a program, because it forks.

Usage: python killed_writes.py BEGIN WHOLE KILLED ARGUMENTS... The command runs undisturbed in WHOLE, then
again and again in KILLED, both copies of BEGIN. Each time it kills itself with SIGKILL at the next file that
has not been died at yet: once just before it takes its final name and once just after. Prints the number of
kills.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

import torch

from graphsc.cli.main import run

torch.set_num_threads(1)


def die_at_a_new_file(known: Path) -> None:
    """From now on, the next renaming that `known` does not list is the last thing that this process does."""
    replace, listed = Path.replace, known.read_text().splitlines()

    def die_once(moment: str) -> None:
        if moment not in listed:
            with open(known, "a") as file:
                file.write(f"{moment}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    def deadly(self: Path, target: Path) -> Path:
        die_once(f"before {target}")
        found = replace(self, target)
        die_once(f"after {target}")
        return found

    Path.replace = deadly


def main() -> None:
    begin, whole, killed = map(Path, sys.argv[1:4])
    arguments = sys.argv[4:]
    for folder in (whole, killed):
        shutil.copytree(begin, folder)
    os.chdir(whole)
    if run(arguments):
        sys.exit("the undisturbed call did not end well")
    os.chdir(killed)
    known = killed.with_name("known.txt")
    known.touch()
    status = -1
    while status:
        pid = os.fork()
        if pid == 0:
            die_at_a_new_file(known)
            os._exit(run(arguments))
        _, status = os.waitpid(pid, 0)
        if status and not os.WIFSIGNALED(status):
            sys.exit(f"exit code {os.waitstatus_to_exitcode(status)}, killed at:\n{known.read_text()}")
    sys.stdout.write(f"\n{len(known.read_text().splitlines())}\n")


main()
