"""Exit codes, one-line errors, and a start that loads nothing heavy."""

import signal
import subprocess
import sys

import pytest
import typer

from graphsc import __version__
from graphsc.cli import main as entry


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr("sys.argv", ["graphsc", *arguments])
    with pytest.raises(SystemExit) as stop:
        entry.main()
    return stop.value.code or 0, *capsys.readouterr()


def test_version(monkeypatch, capsys):
    assert run(monkeypatch, capsys, "--version") == (0, f"graphsc {__version__}\n", "")


def test_unknown_verb_is_usage_error(monkeypatch, capsys):
    code, _, err = run(monkeypatch, capsys, "frobnicate")
    assert code == 2
    assert "frobnicate" in err


def failing_with(action):
    failing = typer.Typer()
    failing.command()(action)
    return lambda: failing(args=[])


def test_internal_error_is_one_line_and_exit_1(monkeypatch, capsys):
    monkeypatch.delenv("GRAPHSC_DEBUG", raising=False)

    def fail():
        raise RuntimeError("boom\nline two")

    monkeypatch.setattr(entry, "app", failing_with(fail))
    code, out, err = run(monkeypatch, capsys)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: internal error: RuntimeError: boom line two")


def test_interrupt_ends_with_130(monkeypatch, capsys):
    monkeypatch.setattr(entry, "app", failing_with(lambda: signal.raise_signal(signal.SIGINT)))
    assert run(monkeypatch, capsys) == (130, "", "stopped\n")


def test_debug_shows_the_traceback(monkeypatch, capsys):
    monkeypatch.setenv("GRAPHSC_DEBUG", "1")
    code, _, err = run(monkeypatch, capsys, "data", "check", "mutga")
    assert code == 2
    assert "Traceback" in err


def test_checking_data_imports_neither_torch_nor_scipy():
    code = (
        "import sys; sys.argv = ['graphsc', 'data', 'check', 'motifs:10']\n"
        "from graphsc.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'matplotlib', 'networkx'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
