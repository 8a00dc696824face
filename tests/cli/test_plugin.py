"""Methods, views and encoders from a file, on every verb and in worker processes."""

import json
import os

import pytest

from graphsc.cli import main
from graphsc.core.errors import ConfigError
from graphsc.core.registry import load_plugin

PLUGIN = """
import torch
from torch import nn

from graphsc.encoders import ENCODERS, Gin
from graphsc.methods import METHODS, MethodEntry, TrainedMethod
from graphsc.views import VIEWS, DropNodes


@VIEWS.register("drop-some")
class DropSome(DropNodes):
    pass


class Agree(TrainedMethod):
    def __init__(self, encoder: nn.Module, *, rate: float = 0.2) -> None:
        super().__init__(encoder)
        self.rate = rate
        self.view = VIEWS.get("drop-some")()

    def views(self, batch, generator):
        return {"anchor": batch, "positive": self.view(batch, self.rate, generator)}

    def objective(self, encoded, player="model"):
        return {"agree": (encoded["anchor"] - encoded["positive"]).square().mean()}


@ENCODERS.register("tiny")
class Tiny(Gin):
    def __init__(self, features, *, width: int = 4) -> None:
        super().__init__(features, width=width, depth=1)


METHODS.register("file-agree")(MethodEntry(Agree, "this file", 2025, "two views agree"))
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "agree.py"
    path.write_text(PLUGIN)
    return path


def test_verbs_use_what_a_file_registers(graphsc, plugin, tmp_path):
    asked = ("--method", "file-agree", "--encoder", "tiny", "--epochs", 1, "--out", "run")
    done = graphsc(tmp_path, "train", "motifs:24", *asked, "--plugin", plugin)
    assert done.code == 0, done.err
    done = graphsc(tmp_path, "embed", "run", "motifs:6", "--out", "six.csv", "--plugin", plugin)
    assert done.code == 0, done.err
    assert len((tmp_path / "six.csv").read_text().splitlines()) == 7
    # Without the file the model cannot be built.
    done = graphsc(tmp_path, "embed", "run", "motifs:6", "--out", "again.csv")
    assert done.code == 2
    assert "this model has the method 'file-agree', which is not known here" in done.err
    assert "--plugin FILE.py" in done.err


def test_workers_of_a_comparison_load_it_too(graphsc, plugin, tmp_path):
    asked = ("--methods", "file-agree,graphcl", "--set", "training.epochs=1", "--encoder", "tiny")
    size = ("--seeds", 1, "--folds", 3, "--jobs", 2, "--json")
    done = graphsc(tmp_path, "compare", "motifs:24", *asked, *size, "--plugin", plugin)
    assert done.code == 0, done.err
    assert [cell["method"] for cell in json.loads(done.out)["cells"]] == ["file-agree", "graphcl"]


def test_methods_lists_it(graphsc, plugin, tmp_path):
    assert "file-agree" in graphsc(tmp_path, "methods", "--plugin", plugin).out
    assert "file-agree" not in graphsc(tmp_path, "methods").out


def test_every_verb_takes_it(plugin, capsys):
    verbs = [name for name in main.app if not name.startswith("-")]
    assert len(verbs) > 15
    for verb in verbs:
        assert main.run([verb, "--plugin", str(plugin), "--help"]) == 0, verb
        assert main.run([verb, f"--plugin={plugin}", "--help"]) == 0, verb
    assert "--plugin" in (main.run(["--help"]), capsys.readouterr().out)[1]


def test_the_environment_is_as_before(plugin, monkeypatch):
    monkeypatch.delenv("GRAPHSC_PLUGINS", raising=False)
    assert main.run(["methods", "--plugin", str(plugin)]) == 0
    assert "GRAPHSC_PLUGINS" not in os.environ


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("missing.py", "there is no such plug-in"),
        ("no_such_module", "No module named 'no_such_module'"),
        ("broken.py", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("exits.py", "cannot be loaded"),
    ],
)
def test_one_that_cannot_be_loaded_is_named(source, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("raise RuntimeError('no')\n")
    assert main.run(["methods", "--plugin", source]) == 2
    assert sentence in capsys.readouterr().err


def test_an_option_without_a_file_is_refused(capsys):
    assert main.run(["methods", "--plugin"]) == 2
    assert main.run(["methods", "--plugin", "--json"]) == 2
    assert "--plugin needs a Python file or a module" in capsys.readouterr().err


def test_a_file_is_loaded_once_and_two_of_one_name_are_two(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(
            f"import time\nplace, when = {folder!r}, time.monotonic()\n"
        )
    first, second = (load_plugin(tmp_path / folder / "same.py") for folder in ("a", "b"))
    assert (first.place, second.place) == ("a", "b")
    assert load_plugin(tmp_path / "a" / "same.py") is first
    with pytest.raises(ConfigError, match="no such plug-in"):
        load_plugin(tmp_path / "c.py")
