"""Exit codes, one-line errors, help, and imports at start."""

import signal
import subprocess
import sys

import pytest

from graphsc import __version__
from graphsc.cli import main


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.delenv("GRAPHSC_DEBUG", raising=False)


def test_version(capsys, plain):
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"graphsc {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["frobnicate"], "frobnicate"),
        (["data", "check"], "SOURCE"),
        (["data", "check", "mutag", "--colour"], "colour"),
        (["train", "motifs:10", "--epochs", "many"], "many"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(capsys, plain, arguments, named):
    assert main.run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert named in err


def test_help_lists_every_verb(capsys, plain):
    assert main.run(["--help"]) == 0
    out = capsys.readouterr().out
    assert [verb for verb in main.app if f" {verb} " not in out and f"({verb})" not in out] == []


def test_internal_error_is_one_line_and_exit_1(monkeypatch, capsys, plain):
    def fail(_):
        raise RuntimeError("boom\nline two")

    monkeypatch.setattr(main, "app", fail)
    assert main.run([]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: internal error: RuntimeError: boom line two")


def test_interrupt_ends_with_130(monkeypatch, capsys, plain):
    monkeypatch.setattr(main, "app", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as stop:
        main.run([])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.parametrize(
    "arguments", [["--debug", "data", "check", "mutga"], ["data", "check", "mutga", "--debug"]]
)
def test_debug_shows_the_traceback(capsys, plain, arguments):
    assert main.run(arguments) == 2
    assert "Traceback" in capsys.readouterr().err


def test_checking_data_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from graphsc.cli.main import run\n"
        "assert run(['data', 'check', 'motifs:10']) == 0\n"
        "heavy = {'torch', 'scipy', 'sklearn', 'matplotlib', 'networkx', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


HEAVY = (
    "scipy.stats",
    "sklearn",
    "matplotlib",
    "pandas",
    "networkx",
    "torch_geometric",
    "joblib",
    "torch._dynamo",
)
COMPILER = ["torch._dynamo"]  # torch imports it for any optimiser


def imported_by(arguments, folder):
    """The heavy packages that a command line imports until it ends."""
    code = (
        "import sys\n"
        "from graphsc.cli.main import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        f"print('', *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1].split()


def test_fine_tuning_and_predicting_import_what_they_use(ring_molecules, tmp_path):
    """Not scikit-learn or SciPy's statistics, and torch's compiler only for training: a second each.

    The simple models of an ensemble, and those that fine-tuning is compared with, are fitted by scikit-learn,
    so they are left out here. Predicting needs none of it, not even for an ensemble.
    """
    pytest.importorskip("rdkit")
    small = ["--epochs", 1, "--seeds", 1, "--set", "encoder.width=8", "--split", "random", "--no-baselines"]
    encoder = ["finetune", "none", ring_molecules, *small, "--model", "encoder", "--with", "none"]
    assert imported_by([*encoder, "--out", "run"], tmp_path) == COMPILER
    assert imported_by(["predict", "run", ring_molecules, "--out", "out.csv"], tmp_path) == []
    ensemble = ["finetune", "none", ring_molecules, *small, "--out", tmp_path / "ensemble"]
    assert main.run([str(argument) for argument in ensemble]) == 0
    assert imported_by(["predict", "ensemble", ring_molecules, "--out", "all.csv"], tmp_path) == []


def test_training_and_embedding_import_what_they_use(tmp_path):
    train = ["train", "motifs:10", "--method", "untrained", "--epochs", 1, "--out", "run"]
    assert imported_by(train, tmp_path) == COMPILER
    assert imported_by(["embed", "run", "motifs:10", "--out", "rows.npz"], tmp_path) == []


def test_a_narrow_terminal_cuts_no_cell_of_a_table(capsys, monkeypatch):
    """Two models were both 'a forest on fingerprin...'."""
    from graphsc.cli.output import print_table

    monkeypatch.setenv("COLUMNS", "24")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table("t", ["name", "score"], [["fingerprints-of-any-radius", "0.5 (0.4 to 0.6)"]])
    out = capsys.readouterr().out
    assert "…" not in out
    assert "".join(line.split("│")[1].strip() for line in out.splitlines() if "│" in line) == (
        "fingerprints-of-any-radius"
    )
