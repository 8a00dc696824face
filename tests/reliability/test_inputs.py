"""Rows 8 to 10, 12 to 14 and 17 to 19 as a person meets them: one line, exit 2, nothing half done."""

import csv
import zipfile

import networkx as nx
import numpy as np
import pytest
import torch
from hurt import error_of

from graphsc.core.errors import GraphscError
from graphsc.estimator import GraphEmbedder
from graphsc.methods import METHODS

TU = {"A": "1, 2\n2, 1\n3, 4\n4, 3\n", "graph_indicator": "1\n1\n2\n2\n", "graph_labels": "0\n1\n"}


def tu(folder, **changes):
    folder.mkdir(exist_ok=True)
    for part, text in {**TU, **changes}.items():
        if text is not None:
            (folder / f"T_{part}.txt").write_text(text, newline="")
    return folder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"A": None}, "no NAME_A.txt"),
        ({"A": "1, 0\n"}, "node 0"),
        ({"A": "1, 2\n1, 5\n"}, "T_A.txt, line 2"),
        ({"A": "1, 3\n"}, "edge joins graph 1 and graph 2"),
        ({"graph_labels": "1\n"}, "graph 2"),
        ({"A": "1, x\n"}, "is not a whole number (T_A.txt, line 1)"),
    ],
)
def test_wrong_tu_folder(run, tmp_path, changes, said):
    assert said in error_of(run("train", tu(tmp_path / "T", **changes), "--out", tmp_path / "r"))
    assert not (tmp_path / "r").exists()


def test_tu_folder_of_another_system(run, tmp_path):
    crlf = {part: text.replace("\n", "\r\n") + "\r\n\r\n" for part, text in TU.items()}
    one = run("data", "check", tu(tmp_path / "T"), "--json")
    assert one == run("data", "check", tu(tmp_path / "T", **crlf), "--json")


@pytest.mark.parametrize("name", ["../x_A.txt", "/tmp/x_A.txt", "T/../../x_A.txt"])
def test_unsafe_archive(run, tmp_path, name):
    (tmp_path / "in").mkdir()
    with zipfile.ZipFile(tmp_path / "in" / "T.zip", "w") as archive:
        archive.writestr(name, "1, 2\n")
    assert "unsafe archive member" in error_of(run("data", "check", tmp_path / "in" / "T.zip"))
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "T.zip"]


def cycle(nodes, **attributes):
    graph = nx.cycle_graph(nodes) if nodes > 2 else nx.empty_graph(nodes)
    nx.set_node_attributes(graph, {node: dict(attributes) for node in graph})
    return graph


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (cycle(0), "graph 2 has no nodes"),
        (cycle(3, mass=float("nan")), "graph 2"),
    ],
    ids=["no nodes", "NaN"],
)
def test_wrong_graph_is_named_before_training(bad, said):
    graphs = [cycle(4, mass=1.5), cycle(3, mass=0.5), bad]
    with pytest.raises(GraphscError, match=said):
        GraphEmbedder(epochs=1, features="attributes").fit(graphs)


@pytest.mark.parametrize("ends", [[[0, 3], [1, 0]], [[0, -1], [1, 0]], [[0.5, 1.0], [1.0, 0.0]]])
def test_edge_ids_that_are_none_are_named(ends):
    from torch_geometric.data import Data

    good = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(GraphscError, match="graph 1"):
        GraphEmbedder(epochs=1).fit([good, Data(edge_index=torch.tensor(ends), num_nodes=2)])


def test_differing_widths_are_named():
    from torch_geometric.data import Data

    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(GraphscError, match="graph 1"):
        GraphEmbedder(epochs=1).fit([Data(torch.rand(2, 3), edges), Data(torch.rand(2, 4), edges)])


def test_odd_graphs_have_rows_like_any_other():
    loops = nx.MultiGraph([(0, 0), (0, 1), (0, 1), (1, 2)])
    graphs = [nx.empty_graph(1), nx.empty_graph(3), nx.cycle_graph(5), nx.path_graph(2)]
    rows = GraphEmbedder(epochs=1, batch_size=2).fit_transform(graphs)
    assert rows.shape[0] == 4
    assert np.isfinite(rows).all()
    assert np.isfinite(GraphEmbedder(epochs=1).fit_transform([loops, loops])).all()


TRAINED = sorted(
    name for name in METHODS if METHODS.get(name).kind == "trained" and not name.startswith("toy")
)


@pytest.mark.parametrize("method", TRAINED)
@pytest.mark.parametrize(
    "graphs",
    [
        [nx.cycle_graph(4)], [nx.cycle_graph(4)] * 3, [nx.empty_graph(1)], [nx.empty_graph(1)] * 3,
        [nx.path_graph(2)], [nx.empty_graph(1), nx.cycle_graph(4), nx.empty_graph(1)],
    ],
    ids=["one graph", "equal graphs", "one node", "single nodes", "two nodes", "nodes and a graph"],
)  # fmt: skip
@pytest.mark.parametrize("batch_size", [1, 2])
def test_nothing_to_contrast_is_finite(method, graphs, batch_size):
    """The trainer also refuses gradients and weights that are not finite."""
    small = {"encoder.width": 4, "encoder.depth": 2}
    model = GraphEmbedder(method, epochs=2, batch_size=batch_size, settings=small).fit(graphs)
    assert np.isfinite(model.transform(graphs)).all()
    for row in model.metrics_:
        assert all(np.isfinite(value) for name, value in row.items() if name.startswith("loss")), row


@pytest.mark.parametrize("method", TRAINED)
def test_molecules_of_one_atom_are_finite(method):
    pytest.importorskip("rdkit")
    small = {"encoder.width": 4, "encoder.depth": 2}
    graphs = ["[Na+]", "C", "CC"]
    model = GraphEmbedder(method, epochs=2, batch_size=1, settings=small).fit(graphs)
    assert np.isfinite(model.transform(graphs)).all()
    for row in model.metrics_:
        assert all(np.isfinite(value) for name, value in row.items() if name.startswith("loss")), row


def test_every_row_of_a_hostile_table_comes_back(run, tmp_path):
    pytest.importorskip("rdkit")
    rows = [
        "CCO", "nonsense", "", '"=HYPERLINK(""http://x"")"', "C" * 1_000_000, "C" * 5_000, "C\0C", "CCN",
        "-1+1",
        "@x",
    ]  # fmt: skip
    table = tmp_path / "m.csv"
    table.write_text("\ufeffsmiles,y\n" + "".join(f"{smiles},1\n" for smiles in rows), encoding="utf-8")
    code, _, err = run("train", table, "--epochs", 1, "--set", "encoder.width=4", "--out", tmp_path / "r")
    assert code == 0, err
    with open(tmp_path / "r" / "rejected.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    assert [int(row["row"]) for row in listed] == [1, 2, 3, 4, 5, 6, 8, 9]
    assert all(row["reason"] for row in listed)
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in listed for cell in row.values())
    assert run("embed", tmp_path / "r", table, "--out", tmp_path / "v.csv")[0] == 0
    with open(tmp_path / "v.csv", newline="") as file:
        vectors = list(csv.DictReader(file))
    assert [row["id"] for row in vectors] == [str(number) for number in range(10)]
    assert [number for number, row in enumerate(vectors) if not row["reason"]] == [0, 7]
    assert [number for number, row in enumerate(vectors) if row["v0"] == "nan"] == [1, 2, 3, 4, 5, 6, 8, 9]
    assert "not a SMILES" in error_of(
        run("data", "convert", table, "--strict", "--out", tmp_path / "c.safetensors")
    )
    assert not (tmp_path / "c.safetensors").exists()


@pytest.mark.parametrize(("header", "said"), [("smiles,smiles", "smiles"), ("molecule,y", "molecule, y")])
def test_wrong_header_of_a_table(run, tmp_path, header, said):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text(f"{header}\nCCO,1\nCC,0\n")
    arguments = ("train", tmp_path / "m.csv", "--reader", "smiles", "--reader-set", "smiles_column=smiles")
    assert said in error_of(run(*arguments, "--out", tmp_path / "r"))


@pytest.mark.parametrize(
    ("labels", "folds", "said"),
    [
        (["a"] * 8 + ["b"] * 2, 5, "class b has 2 graphs, 5 folds asked; use --folds 2"),
        (["a"] * 10, 5, "class"),
        (["a"] * 5 + [""] * 5, 2, "label"),
    ],
    ids=["small class", "one class", "missing"],
)
def test_labels_that_cannot_be_evaluated(run, tmp_path, labels, folds, said):
    edges = "".join(f"{graph},0,1\n{graph},1,2\n" for graph in range(len(labels)))
    (tmp_path / "e.csv").write_text("graph_id,source,target\n" + edges)
    (tmp_path / "g.csv").write_text("graph_id,y\n" + "".join(f"{k},{one}\n" for k, one in enumerate(labels)))
    given = ("--reader-set", f"graphs={tmp_path / 'g.csv'}")
    assert run("train", tmp_path / "e.csv", *given, "--method", "raw", "--out", tmp_path / "r")[0] == 0
    # The reader's options are the run's own; the saved collection stands for them.
    assert run("data", "convert", tmp_path / "e.csv", *given, "--out", tmp_path / "c.safetensors")[0] == 0
    outcome = run("evaluate", tmp_path / "r", tmp_path / "c.safetensors", "--folds", folds, "--jobs", 1)
    assert said in error_of(outcome)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables: {t: {title: T, trials: [{data: [mutag], methodes: [raw]}]}}", "did you mean 'methods'"),
        ("tables: {t: {title: T, trials: [{data: mutag, methods: [raw]}]}}", "'data'"),
        ("tables: {t: {title: T, trials: [{data: [mutag], methods: [raw], seeds: 0}]}}", "seeds is 0"),
        (
            "tables: {t: {title: T, trials: [{data: [mutag], methods: [raw], seeds: 99999999}]}}",
            "seeds is 99999999",
        ),
        ("tables: !!python/object/apply:os.mkdir [ran]", "not a valid config"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "aliases are not allowed"),
        ("a: " + "[" * 500, "not a valid config"),
        ("a: '" + "x" * 2_000_000 + "'", "larger than"),
    ],
    ids=[
        "unknown key",
        "wrong type",
        "out of range",
        "far out of range",
        "object",
        "aliases",
        "nesting",
        "size",
    ],
)
def test_wrong_config(run, tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(text)
    assert said in error_of(run("results", "run", "plan.yaml"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.yaml"]


@pytest.mark.parametrize(
    "setting",
    ["batch_size=0", "epochs=-1", "learning_rate=.nan", "margin=x", "width=8",
     "encoder.width=0", "encoder.width=-3", "encoder.depth=0", "encoder.depth=101",
     "seed=x"],
)  # fmt: skip
def test_wrong_setting_is_one_line_before_anything_is_made(run, tmp_path, setting):
    error_of(run("train", "motifs:8", "--set", setting, "--out", tmp_path / "r"))
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_device_is_no_fall_back_and_auto_says_what_it_picked(run, tmp_path):
    said = error_of(run("train", "motifs:8", "--device", "cuda", "--out", tmp_path / "r"))
    assert "no usable cuda device" in said
    _, _, err = run("train", "motifs:8", "--epochs", 1, "--set", "encoder.width=4", "--out", tmp_path / "r")
    assert "device cpu" in err or "device mps" in err


def test_no_network_says_where_it_looked_and_where_to_put_the_file(run, tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("graphsc.data.datasets.download.TIMEOUT", 2.0, raising=False)
    monkeypatch.setattr("urllib.request._opener", None)  # urllib keeps the proxy of its first call
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    said = error_of(run("data", "get", "proteins"))
    assert "PROTEINS" in said
    assert str(tmp_path) in said
