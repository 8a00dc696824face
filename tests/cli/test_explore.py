"""`graphsc explore`: a run or a file of vectors as an interactive map."""

import base64
import csv
import json

import numpy as np
import pytest

from graphsc.cli import main
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.encoders.inference import embed
from graphsc.experiments.explore import far_from_all

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
    assert titles(page) == ["motif", "nodes", "edges", "mean degree", "distance to nearest"]
    assert page["smiles"] is None
    collection = open_collection("motifs:24")
    expected = [collection.classes["motif"][int(label)] for label in collection.labels[:, 0]]
    assert names(page["colourings"][0]) == expected


def test_an_evaluated_run_can_be_coloured_by_prediction(run, trained, tmp_path):
    code, _, _ = run("explore", trained, "--evaluate", "--map", "pca", "--out", tmp_path / "m.html")
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
    assert titles(page) == ["distance to nearest"]
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
    mass, kind = page_data(tmp_path / "m.html")["colourings"][-3:-1]
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
    assert titles(page)[0] == titles(page)[-2] == HOSTILE


def test_other_graphs_are_embedded_with_the_model_of_a_run(run, trained, tmp_path):
    for source in (trained, trained / "model.safetensors"):
        code, _, err = run(
            "explore", source, "--data", "motifs:10", "--map", "pca", "--out", tmp_path / "m.html"
        )
        assert code == 0, err
        page = page_data(tmp_path / "m.html")
        assert page["title"] == "motifs, graphsc"
        assert len(page["ids"]) == 10
    text = "These are not the graphs that the run was trained on"
    code, _, _ = run("explore", trained, "--data", "motifs:10", "--map", "pca", "--out", tmp_path / "m.html")
    assert text in (tmp_path / "m.html").read_text()


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A fine-tuning run of two seeds on a table with ids and one broken row."""
    pytest.importorskip("rdkit")
    home = tmp_path_factory.mktemp("tuned")
    smiles = ["C" * n + ring for ring in ("c1ccccc1", "C1CCNCC1", "c1ccoc1") for n in range(8)]
    lines = [f"K-{n},{text},{n % 7}.5" for n, text in enumerate(smiles)]
    lines.insert(3, "K-bad,broken,1.5")
    (home / "t.csv").write_text("\n".join(["name,structure,y", *lines]) + "\n")
    code = main.run([
        "finetune", "none", str(home / "t.csv"), "--labels", "y", "--id-column", "name", "--out",
        str(home / "run"), "--set", "encoder.width=8", "--set", "encoder.depth=1", "--epochs", "1", "--seeds",
        "2", "--no-baselines",
    ])  # fmt: skip
    assert code == 0
    return home / "run"


def numbers(column):
    return np.frombuffer(base64.b64decode(column["numbers"]), "<f4")


def test_a_fine_tuning_run_is_a_map_of_its_molecules_with_predictions(run, tuned, tmp_path):
    code, _, err = run("explore", tuned, "--map", "pca", "--out", tmp_path / "m.html")
    assert code == 0, err
    page = page_data(tmp_path / "m.html")
    assert titles(page)[:3] == ["y", "predicted y", "spread of y"]
    assert page["ids"][:4] == ["K-0", "K-1", "K-2", "K-3"]
    assert page["smiles"][:4] == ["c1ccccc1", "Cc1ccccc1", "CCc1ccccc1", "CCCc1ccccc1"]
    assert numbers(page["colourings"][0])[:3].tolist() == [0.5, 1.5, 2.5]


def test_new_molecules_are_embedded_and_predicted_with_a_fine_tuned_model(run, tuned, tmp_path):
    """The map's predictions are those of `graphsc predict`; the embeddings those of `graphsc embed`."""
    (tmp_path / "new.csv").write_text("smiles\nCCO\nCC(=O)O\nc1ccccc1F\nCCCl\nCCN\n")
    code, _, err = run("explore", tuned, "--data", tmp_path / "new.csv", "--out", tmp_path / "m.html")
    assert code == 0, err
    page = page_data(tmp_path / "m.html")
    run("predict", tuned, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as file:
        predicted = [float(row["y_predicted"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(numbers(page["colourings"][0]), predicted, rtol=1e-4)
    assert page["smiles"][1] == "CC(=O)O"
    code, _, err = run("embed", tuned, tmp_path / "new.csv", "--out", tmp_path / "v.npz")
    assert code == 0, err
    from graphsc.finetuning.model import load_predictor
    from graphsc.training.model_files import model_file

    method = load_predictor(model_file(tuned / "seed-0")).method
    expected = embed(method.encoder, open_collection(tmp_path / "new.csv"))
    np.testing.assert_allclose(np.load(tmp_path / "v.npz")["vectors"], expected, rtol=1e-5, atol=1e-6)


def test_molecules_without_a_table_have_the_smiles_of_their_structures(run, tmp_path):
    pytest.importorskip("rdkit")
    texts = ["CCO", "c1ccncc1", "CC(=O)[O-]", "C[N+](C)(C)C", "c1cc[nH]c1", "CCl"]
    open_collection(texts).save(tmp_path / "m.safetensors")
    code, _, err = run(
        "explore", "graphsc-moses", "--data", tmp_path / "m.safetensors", "--map", "pca", "--out",
        tmp_path / "m.html",
    )  # fmt: skip
    assert code == 0, err
    assert page_data(tmp_path / "m.html")["smiles"] == texts


def test_graphs_far_from_all_others_are_flagged():
    """Ten rows at distances 1 to 2 and one at 9: the fence is the upper quartile plus three ranges."""
    distances = np.array([[1.0 + n / 10] * 3 for n in range(11)] + [[9.0] * 3])
    assert far_from_all(distances).tolist() == [11]
    assert far_from_all(distances[:11]).tolist() == []
    assert far_from_all(np.zeros((3, 0))).tolist() == []


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
        (("{run}", "--attributes", "{tmp}/none.csv"), "there is no file of attributes"),
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


def test_the_map_of_a_run_says_which_rows_of_its_table_it_leaves_out(run, tmp_path):
    """It said `left out 0`, where the map of a model with the same table said 1."""
    pytest.importorskip("rdkit")
    lines = [f"M-{k},{'C' * (k + 1)}O" for k in range(12)]
    (tmp_path / "m.csv").write_text("\n".join(["id,smiles", *lines, "M-x,C(C"]) + "\n")
    trained = (
        "train",
        tmp_path / "m.csv",
        "--epochs",
        1,
        "--set",
        "encoder.width=8",
        "--out",
        tmp_path / "r",
    )
    assert run(*trained)[0] == 0
    code, out, err = run("explore", tmp_path / "r", "--map", "pca", "--out", tmp_path / "r.html")
    assert code == 0, err
    assert "left out\t1" in out
    assert "1 of 13 rows" in (tmp_path / "r.html").read_text()


def test_attributes_may_have_semicolons_and_decimal_commas(tmp_path):
    from graphsc.experiments.explore import read_attributes

    (tmp_path / "a.csv").write_text("id;temp;mass;note\nA;1,5;1,250;hot\nB;2,25;3,500;n.d.\n")
    temp, mass, note = read_attributes(tmp_path / "a.csv", ["B", "A", "C"])
    np.testing.assert_array_equal(temp.numbers, [2.25, 1.5, np.nan])
    assert (mass.numbers, note.numbers) == (None, None)  # thousands, perhaps; and words


def test_attributes_of_one_id_must_agree(tmp_path):
    from graphsc.core.errors import DataError
    from graphsc.experiments.explore import read_attributes

    (tmp_path / "a.csv").write_text("id,mass\nA,1\nB,2\nA,1\n")
    assert len(read_attributes(tmp_path / "a.csv", ["A", "B"])) == 1
    (tmp_path / "b.csv").write_text("id,mass\nA,1\nB,2\nA,3\n")
    with pytest.raises(DataError, match="two rows of attributes have the id 'A'"):
        read_attributes(tmp_path / "b.csv", ["A", "B"])
