"""`graphsc explore`: a run or a file of vectors as an interactive map."""

import base64
import json

import numpy as np
import pytest

from graphsc.cli import main
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "r"
    assert main.run(["train", "motifs:24", "--epochs", "1", "--out", str(folder)]) == 0
    return folder


def page_data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def titles(page):
    return [column["title"] for column in page["colourings"]]


def names(column):
    return [column["names"][code] for code in np.frombuffer(base64.b64decode(column["codes"]), "<u2")]


def test_a_run_becomes_a_map_with_drawings(run, trained, tmp_path):
    code, out, _ = run("explore", trained, "--out", tmp_path / "m.html", "--json")
    assert code == 0
    assert json.loads(out)["drawn"] == 24
    page = page_data(tmp_path / "m.html")
    assert page["title"] == "motifs, graphsc"
    assert page["k"] == 8
    assert titles(page) == ["motif", "nodes", "edges", "mean degree"]
    collection = open_collection("motifs:24")
    expected = [collection.classes["motif"][int(label)] for label in collection.labels[:, 0]]
    assert names(page["colourings"][0]) == expected


def test_an_evaluated_run_can_be_coloured_by_prediction(run, trained, tmp_path):
    code, _, _ = run("explore", trained, "--judge", "--map", "pca", "--out", tmp_path / "m.html")
    assert code == 0
    page = page_data(tmp_path / "m.html")
    assert titles(page)[:3] == ["motif", "prediction", "right or wrong"]
    label, predicted, right = map(names, page["colourings"][:3])
    assert [
        "right" if true == other else "wrong" for true, other in zip(label, predicted, strict=True)
    ] == right


def test_vectors_alone_make_a_map_without_drawings(run, trained, tmp_path):
    run("embed", trained, "motifs:24", "--out", tmp_path / "v.csv")
    code, _, _ = run("explore", tmp_path / "v.csv", "--map", "pca", "--out", tmp_path / "m.html")
    assert code == 0
    page = page_data(tmp_path / "m.html")
    assert page["drawings"] is None
    assert page["colourings"] == []
    assert [str(one) for one in page["ids"]] == [str(one) for one in open_collection("motifs:24").ids]


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_vectors_of_a_table_with_a_bad_row_make_a_map_without_it(run, tmp_path, ring_molecules, ending):
    """Such a file was refused: "not a file of embeddings", or NaN."""
    table = tmp_path / "messy.csv"
    lines = ring_molecules.read_text().splitlines()
    table.write_text("\n".join([*lines[:5], "C1CC,0", *lines[5:], "nonsense,1", ""]))
    vectors = tmp_path / f"v{ending}"
    code, out, _ = run("embed", "graphsc-moses", table, "--out", vectors)
    facts = dict(line.split("\t") for line in out.splitlines())
    assert code == 0
    assert (facts["read"], facts["used"], facts["rejected"]) == ("34", "32", "2")
    assert facts["reasons"] == "not a SMILES string (2)"
    code, out, _ = run("explore", vectors, "--data", table, "--map", "pca", "--out", tmp_path / "m.html")
    assert code == 0
    assert "left out\t2" in out
    page = page_data(tmp_path / "m.html")
    assert [int(identity) for identity in page["ids"]] == [row for row in range(34) if row not in (4, 33)]
    assert "2 of 34 rows have no embedding and are left out: not a SMILES string (2)." in (
        (tmp_path / "m.html").read_text()
    )


def test_vectors_find_their_graphs_by_id(run, tmp_path):
    collection = open_collection("motifs:12")
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    ids = [int(collection.ids[position]) for position in (7, 2, 5)]
    np.savez(tmp_path / "v.npz", vectors=rows, ids=np.array(ids))
    code, _, _ = run("explore", tmp_path / "v.npz", "--data", "motifs:12", "--out", tmp_path / "m.html")
    assert code == 0
    page = page_data(tmp_path / "m.html")
    assert page["ids"] == ids
    sizes = np.frombuffer(base64.b64decode(page["sizes"]), "<u4").reshape(-1, 2)[:, 0]
    assert sizes.tolist() == np.diff(collection.node_ptr)[[7, 2, 5]].tolist()


def test_columns_of_a_table_can_be_coloured_by(run, trained, tmp_path):
    (tmp_path / "a.csv").write_text("id,mass,kind\n0,1.5,x\n1,2.5,y\n")
    arguments = ("--attributes", tmp_path / "a.csv", "--map", "pca", "--out", tmp_path / "m.html")
    code, _, _ = run("explore", trained, *arguments)
    assert code == 0
    mass, kind = page_data(tmp_path / "m.html")["colourings"][-2:]
    known = np.frombuffer(base64.b64decode(mass["numbers"]), "<f4")
    assert known[:2].tolist() == [1.5, 2.5]
    assert np.isnan(known[2:]).all()
    assert names(kind)[:3] == ["x", "y", "(missing)"]


def test_a_random_sample_of_many_graphs_is_shown(run, trained, tmp_path):
    code, _, _ = run("explore", trained, "--most", 10, "--out", tmp_path / "m.html")
    assert code == 0
    assert len(page_data(tmp_path / "m.html")["ids"]) == 10
    assert "A random sample: 10 of 24 graphs." in (tmp_path / "m.html").read_text(encoding="utf-8")


def test_hostile_ids_labels_and_columns_remain_data(run, tmp_path):
    from dataclasses import replace

    plain = open_collection("motifs:6")
    hostile = replace(
        plain, ids=Strings.of([f"{HOSTILE}{n}" for n in range(6)]), tasks=(HOSTILE,),
        classes={HOSTILE: (HOSTILE, f"{HOSTILE}2")}, name=HOSTILE,
    )  # fmt: skip
    hostile.save(tmp_path / "h.safetensors")
    assert GraphCollection.open(tmp_path / "h.safetensors").ids[0] == f"{HOSTILE}0"
    run("train", tmp_path / "h.safetensors", "--method", "untrained", "--out", tmp_path / "r")
    (tmp_path / "a.csv").write_text(f'id,"{HOSTILE}"\n"{HOSTILE}0","{HOSTILE}"\n')
    code, _, _ = run(
        "explore", tmp_path / "r", "--attributes", tmp_path / "a.csv", "--out", tmp_path / "m.html"
    )
    assert code == 0
    assert HOSTILE not in (tmp_path / "m.html").read_text(encoding="utf-8")
    page = page_data(tmp_path / "m.html")
    assert page["ids"][0] == f"{HOSTILE}0"
    assert titles(page)[0] == titles(page)[-1] == HOSTILE


def test_a_model_makes_a_map_of_graphs_it_has_not_seen(run, trained, ring_molecules, tmp_path):
    for source, data, graphs in ((trained, "motifs:5", 5), ("graphsc-moses", ring_molecules, 32)):
        code, _, err = run("explore", source, "--data", data, "--map", "pca", "--out", tmp_path / "m.html")
        assert code == 0, err
        page = page_data(tmp_path / "m.html")
        assert len(page["ids"]) == graphs
        assert page["drawings"] is not None


def test_the_run_of_a_kernel_has_a_map(run, tmp_path):
    run("train", "motifs:16", "--method", "wl", "--out", tmp_path / "wl")
    code, _, _ = run("explore", tmp_path / "wl", "--out", tmp_path / "m.html")
    assert code == 0
    assert len(page_data(tmp_path / "m.html")["ids"]) == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "no run folder, model file or model called 'nowhere'"),
        (("nowhere.npz",), "there is no such file"),
        (("graphsc-moses",), "graphsc-moses is a model, and a map needs graphs; name them with --data"),
        (("{tmp}",), "holds no run"),
        (("{run}", "--attributes", "{tmp}/none.csv"), "cannot read attributes"),
        (("{run}", "--most", "0"), "--most is 0"),
        (("{tmp}/other.npz", "--data", "motifs:5"), "ids are of no graph"),
    ],
)
def test_unusable_input_is_one_line_and_exit_2(run, trained, tmp_path, arguments, message):
    np.savez(tmp_path / "other.npz", vectors=np.ones((1, 2), np.float32), ids=np.array(["stranger"]))
    given = [argument.format(tmp=tmp_path, run=trained) for argument in arguments]
    code, _, err = run("explore", *given, "--out", tmp_path / "m.html")
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
