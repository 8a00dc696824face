"""Runs know how their graphs were read: every verb finds them again, from any folder."""

import json
import shutil

import pytest
import yaml

from graphsc.cli.checks import check_typed_ids
from graphsc.cli.data import ReaderOptions
from graphsc.core.errors import ConfigError

EDGES = ("program,caller,callee,times\n", "{g},main,parse,1\n", "{g},main,print,{n}\n", "{g},parse,x{m},3\n")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The current folder, with a table of edges whose columns have unusual names, and one of labels."""
    folder = tmp_path / "data"
    folder.mkdir()
    head, *rows = EDGES
    lines = [row.format(g=f"g{k}", n=2 + k % 2, m=k % 2) for k in range(24) for row in rows]
    lines += [f"g{k},x{k % 2},y,2\n" for k in range(0, 24, 2)]
    (folder / "calls.csv").write_text(head + "".join(lines))
    labels = [f"g{k},{'even' if k % 2 == 0 else 'odd'}\n" for k in range(24)]
    (folder / "kinds.csv").write_text("program,kind\n" + "".join(labels))
    monkeypatch.chdir(folder)
    return folder


READ = (
    "--reader", "edges", "--reader-set", "graph_column=program", "--reader-set", "source_column=caller",
    "--reader-set", "target_column=callee", "--reader-set", "graphs=kinds.csv", "--merge", "sum",
)  # fmt: skip


def ok(result):
    code, out, err = result
    assert code == 0, err
    return out


def test_verbs_on_a_run_read_its_graphs_as_it_did_from_any_folder(run, programs, tmp_path, monkeypatch):
    """They said that these were not the graphs the run was trained on."""
    ok(run("train", "calls.csv", *READ, "--epochs", 1, "--out", tmp_path / "r"))
    config = yaml.safe_load((tmp_path / "r" / "config.yaml").read_text())
    assert config["reading"] == {
        "source": "calls.csv",
        "reader": "edges",
        "path": str(programs / "calls.csv"),
        "options": {
            "graph_column": "program", "source_column": "caller", "target_column": "callee",
            "graphs": str(programs / "kinds.csv"), "merge": "sum",
        },
    }  # fmt: skip
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    evaluated = json.loads(ok(run("evaluate", tmp_path / "r", "--folds", 3, "--jobs", 1, "--json")))
    assert evaluated["classes"] == ["even", "odd"]
    ok(run("explore", tmp_path / "r", "--map", "pca", "--out", tmp_path / "m.html"))
    ok(run("report", tmp_path / "r", "--no-maps", "--jobs", 1, "--out", tmp_path / "report.html"))


def test_a_run_embeds_its_own_graphs_without_saying_again_how_they_are_read(run, programs, tmp_path):
    ok(run("train", "calls.csv", *READ, "--epochs", 1, "--out", tmp_path / "r"))
    ok(run("embed", tmp_path / "r", "calls.csv", *READ, "--out", tmp_path / "said.csv"))
    ok(run("embed", tmp_path / "r", programs / "calls.csv", "--out", tmp_path / "known.csv"))
    assert (tmp_path / "known.csv").read_text() == (tmp_path / "said.csv").read_text()
    shutil.copy("calls.csv", "other.csv")
    code, _, err = run("embed", tmp_path / "r", "other.csv", "--out", tmp_path / "other.vectors.csv")
    assert code == 2
    assert "--reader edges and --reader-set source_column=NAME" in err


@pytest.mark.parametrize("name", ["source", "reader"])
def test_a_reader_option_called_like_a_parameter_is_refused_in_a_sentence(run, programs, name):
    """It ended in an internal error."""
    code, _, err = run("data", "check", "calls.csv", "--reader", "edges", "--reader-set", f"{name}=caller")
    assert code == 2
    assert f"a reader has no setting '{name}'" in err
    assert "source_column" in err


def test_graphs_that_moved_are_read_as_before(run, programs, tmp_path):
    ok(run("train", "calls.csv", *READ, "--epochs", 1, "--out", tmp_path / "r"))
    shutil.move(programs / "calls.csv", tmp_path / "moved.csv")
    code, _, err = run("evaluate", tmp_path / "r", "--folds", 3, "--jobs", 1)
    assert code == 2
    assert "the run's graphs are not found" in err
    ok(run("evaluate", tmp_path / "r", tmp_path / "moved.csv", "--folds", 3, "--jobs", 1))


def test_graphs_that_changed_are_refused(run, programs, tmp_path):
    ok(run("train", "calls.csv", *READ, "--epochs", 1, "--out", tmp_path / "r"))
    with open("calls.csv", "a") as file:
        file.write("g0,a,b,1\n")
    code, _, err = run("evaluate", tmp_path / "r", "--folds", 3, "--jobs", 1)
    assert code == 2
    assert "the file holds other graphs than those the run was trained on" in err
    assert "calls.csv" in err


def test_compare_and_sweep_take_the_options_of_the_reader(run, programs, tmp_path):
    pytest.importorskip("optuna")
    few = ("--folds", 3, "--jobs", 1)
    out = ok(run("compare", "calls.csv", *READ, "--methods", "raw,untrained", "--seeds", 1, *few, "--json"))
    assert {cell["data"] for cell in json.loads(out)["cells"]} == {"calls"}
    (programs / "space.yaml").write_text("margin: [0.2, 0.4]\n")
    out = ok(
        run(
            "sweep",
            "calls.csv",
            *READ,
            "--space",
            "space.yaml",
            "--sampler",
            "grid",
            "--epochs",
            1,
            "--folds",
            3,
        )
    )
    assert "--reader edges --reader-set 'graph_column=\"program\"'" in out
    ok(run("results", "run", "sweeps/calls-graphsc/best.yaml", "--dry-run"))


def test_a_pretraining_run_finds_its_sample(run, ring_molecules, tmp_path, monkeypatch):
    table = tmp_path / "mols.csv"
    table.write_text(ring_molecules.read_text().replace("smiles", "structure text"))
    monkeypatch.chdir(tmp_path)
    ok(
        run("pretrain", "mols.csv", "--smiles-column", "structure text", "--molecules", 20, "--held-out", 3,
            "--epochs", 1, "--set", "encoder.width=16", "--set", "encoder.depth=2", "--out", tmp_path / "r")
    )  # fmt: skip
    monkeypatch.chdir("/")
    out = ok(run("explore", tmp_path / "r", "--map", "pca", "--out", tmp_path / "m.html", "--json"))
    assert json.loads(out)["graphs"] == 20


def test_malformed_rows_of_edges_are_counted_with_their_reasons(run, programs, tmp_path):
    with open("calls.csv", "a") as file:
        file.write("g1,main,,1\ng2,main\n")
    said = (
        "edge rows rejected\t2\nreasons\tcell of 'callee' is empty (1); 2 cells where the header has 4 (1)\n"
    )
    out = ok(run("train", "calls.csv", *READ, "--epochs", 1, "--out", tmp_path / "r"))
    assert f"{said}rejected rows\t{tmp_path / 'r' / 'rejected.csv'}\n" in out
    assert (tmp_path / "r" / "rejected.csv").read_text().count("\n") == 3
    assert said in ok(run("embed", tmp_path / "r", "calls.csv", *READ, "--out", tmp_path / "v.csv"))
    ok(run("report", tmp_path / "r", "--no-maps", "--jobs", 1, "--out", tmp_path / "report.html"))
    assert "2 rejected: cell of" in (tmp_path / "report.html").read_text()
    code, _, err = run("train", "calls.csv", *READ, "--strict", "--epochs", 1, "--out", tmp_path / "s")
    assert (code, "calls.csv, line 8" in err) == (2, True)


def test_the_separator_of_an_edge_list_can_be_named(run, tmp_path):
    """Its table was taken to hold molecules as soon as a separator was given."""
    rows = [f"{graph};{k};{(k + 1) % 4};0,5" for graph in "abcdef" for k in range(4)]
    (tmp_path / "e.csv").write_text("\n".join(["graph_id;source;target;weight", *rows]) + "\n")
    options = ("--separator", ";", "--decimal", ",", "--epochs", "1", "--out", tmp_path / "r")
    code, _, err = run("train", tmp_path / "e.csv", *options)
    assert code == 0, err


def test_a_wrong_id_of_an_edge_list_is_answered_before_its_graphs_are_read(run, programs, tmp_path):
    ok(run("train", "calls.csv", *READ, "--epochs", "1", "--out", tmp_path / "r"))
    check_typed_ids("g3,g7", tmp_path / "r", None, ReaderOptions())
    with pytest.raises(ConfigError, match="no graph has the id 'nowhere'; ids are g0"):
        check_typed_ids("nowhere", tmp_path / "r", None, ReaderOptions())
