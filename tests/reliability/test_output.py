"""Standard output that is closed, full, or of a poor encoding: no traceback, and nothing lost in silence."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphsc.data.readers import open_collection

CODE = "import sys; from graphsc.cli.main import main; main()"
VERBS = [("--version",), ("--help",), ("methods",), ("data", "check", "motifs:9"), ("methods", "--json")]


def call(redirection, *arguments, cwd=None, **variables):
    """Exit code and stderr of a command whose standard output a shell redirects."""
    done = subprocess.run(
        ["sh", "-c", f'"$0" "$@" {redirection}', sys.executable, "-c", CODE, *map(str, arguments)],
        capture_output=True, cwd=cwd, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


@pytest.mark.parametrize("arguments", VERBS)
@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        pytest.param(
            ">/dev/full", "No space left on device",
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full"),
        ),
        (">&-", "standard output is closed"),
    ],
)  # fmt: skip
def test_lost_output_is_one_line_and_exit_2(arguments, redirection, message):
    code, _, err = call(redirection, *arguments)
    assert code == 2, err
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_closed_output_does_no_harm_to_the_files_of_a_command_that_prints_nothing_there(graphsc, tmp_path):
    """Without care, the first file that is opened becomes standard output."""
    train = ("train", "motifs:9", "--method", "untrained", "--epochs", 1, "--set", "encoder.width=4")
    code, _, err = call(">&- <&-", *train, "--out", "run", cwd=tmp_path)
    assert "Traceback" not in err
    assert code == 0 or err.splitlines()[-1].startswith("error: standard output is closed")
    done = graphsc(tmp_path, "embed", "run", "motifs:9", "--out", "x.npz")
    assert done.code == 0, done.err


def test_closed_stderr_keeps_the_exit_code():
    assert call("2>&-", "data", "check", "mutga")[0] == 2
    assert call(">&- 2>&-", "--version")[0] == 2


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_names_that_the_encoding_lacks_are_replaced(tmp_path, variables):
    collection = open_collection("motifs:9")
    classes = dict.fromkeys(collection.classes, ("x日本", "y"))
    dataclasses.replace(collection, classes=classes).save(tmp_path / "日本.safetensors")
    code, out, err = call("", "data", "check", "日本.safetensors", cwd=tmp_path, **variables)
    assert (code, err) == (0, "")
    shown = "x日本" if variables == {"LC_ALL": "C"} else "x??"  # Python itself takes UTF-8 for the locale C
    assert f"5 of {shown} / 4 of y" in out.decode("utf-8")
    code, _, err = call("", "data", "check", "no-日本.safetensors", cwd=tmp_path, **variables)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
