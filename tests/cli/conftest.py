"""The command line's own function, in this process."""

import pytest

from graphsc.cli import main


@pytest.fixture
def run(capsys):
    """`run("data", "check", ...)` gives (exit code, stdout, stderr)."""

    def call(*arguments):
        code = main.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call
