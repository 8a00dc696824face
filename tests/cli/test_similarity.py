"""`graphsc similar`, `outliers` and `cluster`."""

import csv
import json

import pytest

from graphsc.cli import main


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "r"
    assert main.run(["train", "motifs:24", "--epochs", "1", "--out", str(folder)]) == 0
    return folder


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("verb", "columns", "rows"),
    [
        (("similar", "--to", "3,5", "-k", "4"), ["query", "rank", "id", "distance"], 8),
        (("outliers",), ["id", "score", "outlier", "nearest"], 24),
        (("cluster", "--clusters", "3"), ["id", "cluster", "distance"], 24),
    ],
    ids=["similar", "outliers", "cluster"],
)
def test_a_run_and_its_vectors_give_the_same_table_and_a_page(run, trained, tmp_path, verb, columns, rows):
    run("embed", trained, "motifs:24", "--out", tmp_path / "v.npz")
    tables = []
    for source, data in ((trained, ()), (tmp_path / "v.npz", ("--data", "motifs:24"))):
        where = ("--out", tmp_path / "p.html", "--table", tmp_path / "t.csv")
        code, _, err = run(verb[0], source, *data, *verb[1:], *where)
        assert code == 0, err
        assert "<img" in (tmp_path / "p.html").read_text()
        tables.append(rows_of(tmp_path / "t.csv"))
    assert len(tables[0]) == rows
    assert list(tables[0][0]) == columns
    words = [name for name in columns if name in ("query", "rank", "id", "outlier", "cluster")]
    assert [[row[c] for c in words] for row in tables[0]] == [[row[c] for c in words] for row in tables[1]]


def test_molecules_are_found_by_id_and_bad_rows_are_left_out(run, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("id,smiles\nA,CCO\nB,nonsense\nC,CCCO\nD,c1ccccc1\nE,CCCCO\n")
    (tmp_path / "q.csv").write_text("id,smiles\nQ,CCCCCO\n")
    model = ("graphsc-moses", "--data", tmp_path / "m.csv")
    where = ("--out", tmp_path / "p.html", "--table", tmp_path / "t.csv")
    code, out, err = run("similar", *model, "--to", "A", *where)
    assert code == 0, err
    assert "left out\t1" in out
    found = rows_of(tmp_path / "t.csv")
    assert [row["id"] for row in found if row["id"] != "D"] == ["C", "E"]
    assert all(float(row["distance"]) >= 0 for row in found)
    code, _, err = run("similar", *model, "--queries", tmp_path / "q.csv", *where)
    assert code == 0, err
    assert rows_of(tmp_path / "t.csv")[0]["query"] == "Q"
    assert rows_of(tmp_path / "t.csv")[0]["id"] == "E"


def test_json_has_the_rows_only_in_full(run, trained, tmp_path):
    for full in ((), ("--full",)):
        _, out, _ = run("outliers", trained, "--out", tmp_path / "p.html", "--json", *full)
        assert ("rows" in json.loads(out)) is bool(full)


def test_a_library_is_searched_by_query_and_top(run, tmp_path):
    pytest.importorskip("rdkit")
    library = tmp_path / "lib.csv"
    library.write_text("id,smiles\nA,CCO\nB,nonsense\nC,CCCO\nD,c1ccccc1\nE,CCCCO\n")
    (tmp_path / "q.csv").write_text("name,smiles\nQ,CCCO\nR,nonsense\n")
    where = ("--out", tmp_path / "p.html", "--table", tmp_path / "t.csv", "--top", "2")
    # A column that only one of the tables has is asked of that one alone.
    for query, name, ids in ((tmp_path / "q.csv", "Q", ("--id-column", "name")), ("OCCC", "OCCC", ())):
        code, out, err = run("similar", "graphsc-moses", query, library, *where, *ids)
        assert code == 0, err
        assert "library\t4\nleft out\t1\nqueries\t1\n" in out
        assert f"queries left out\t{int(name == 'Q')}" in out
        found = rows_of(tmp_path / "t.csv")
        assert [(row["query"], row["rank"]) for row in found] == [(name, "1"), (name, "2")]
        assert (found[0]["id"], found[0]["smiles"]) == ("C", "CCCO")
        assert (tmp_path / "p.html").read_text().count("<img") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("graphsc-moses", "CCO"), "which library"),
        (("graphsc-moses", "CCO", "missing.csv"), "missing.csv"),
        (("graphsc-moses", "missing.csv", "mutag"), "missing.csv"),
        (("graphsc-mosse", "CCO", "bbbp"), "did you mean 'graphsc-moses'"),
        (("graphsc-moses", "CCO", "bbbp", "--to", "1"), "takes the place"),
        (("graphsc-moses", "CCO", "bbbp", "--top", "0"), "--top is 0"),
    ],
)
def test_a_mistake_in_a_search_is_one_line_and_exit_2(run, arguments, message):
    code, _, err = run("similar", *arguments)
    assert code == 2
    assert message in err
    assert err.strip().splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("verb", ["similar", "outliers", "cluster", "explore", "report"])
def test_a_page_is_not_written_to_the_name_of_a_table(run, trained, tmp_path, verb):
    """`cluster --out clusters.csv` wrote HTML into it."""
    code, _, err = run(verb, trained, "--out", tmp_path / "found.csv")
    assert code == 2
    assert "cannot write a page to a .csv file" in err
    assert not (tmp_path / "found.csv").exists()


def test_an_id_without_an_embedding_is_not_said_to_be_unknown_alone(run, tmp_path):
    pytest.importorskip("rdkit")
    (tmp_path / "m.csv").write_text("id,smiles\nA,CCO\nB,nonsense\nC,CCCO\nD,c1ccccc1\n")
    model = ("graphsc-moses", "--data", tmp_path / "m.csv", "--out", tmp_path / "p.html")
    code, _, err = run("similar", *model, "--to", "B")
    assert code == 2
    assert "rows without an embedding are left out, here 1" in err


def test_a_query_without_a_library_is_told_how_to_name_a_graph_of_the_source(run, trained):
    code, _, err = run("similar", trained, "3")
    assert code == 2
    assert "--to 3" in err
