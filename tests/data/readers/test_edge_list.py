"""Edge lists from CSV and Parquet: what is read, in which order, and which line is wrong."""

from __future__ import annotations

import gzip
import lzma
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, DataError, GraphscError, MissingExtraError
from graphsc.data.arrays import Strings
from graphsc.data.columns import Column
from graphsc.data.readers import READERS
from graphsc.data.readers.edge_list import accepts_edges, read_edges

PLAIN = "graph_id,source,target\n5,10,9\n5,9,2\n3,1,1\n"


def put(folder: Path, text: str, name: str = "edges.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_nodes_are_sorted_as_numbers_and_graphs_in_order_of_appearance(tmp_path: Path) -> None:
    collection = read_edges(put(tmp_path, PLAIN))
    collection.check()
    assert collection.name == "edges"
    assert collection.ids.tolist() == [5, 3]
    assert np.diff(collection.node_ptr).tolist() == [3, 1]
    # Graph 5 has the nodes 2, 9, 10: edges 10-9 and 9-2 are 2-1 and 1-0. Graph 3 is a loop, once.
    assert collection.edge_index.tolist() == [[1, 0, 2, 1, 0], [0, 1, 1, 2, 0]]
    assert collection.edge_ptr.tolist() == [0, 4, 5]
    assert collection.undirected


def test_words_sort_as_words_and_stay_local_to_their_graph(tmp_path: Path) -> None:
    text = "graph,src,dst\na,x,10\nb,x,y\na,10,9\n"
    collection = read_edges(put(tmp_path, text))
    collection.check()
    assert collection.ids == Strings.of(["a", "b"])
    # In graph a the words "10" < "9" < "x"; rows of one graph need not lie together.
    assert collection.edge_index.tolist() == [[1, 2, 0, 0, 1, 0], [0, 0, 1, 2, 0, 1]]


def test_directed_rows_stay_as_they_are(tmp_path: Path) -> None:
    text = "gid,from,to\n1,a,b\n1,a,b\n1,b,b\n"
    collection = read_edges(put(tmp_path, text), directed=True)
    assert collection.edge_index.tolist() == [[0, 0, 1], [1, 1, 1]]
    assert not collection.undirected


def test_an_edge_listed_both_ways_counts_once_and_the_first_row_wins(tmp_path: Path) -> None:
    text = "graph_id,source,target,weight\n1,a,b,0.5\n1,b,a,0.25\n1,b,c,2\n"
    collection = read_edges(put(tmp_path, text))
    assert collection.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert collection.edges.floats.ravel().tolist() == [0.5, 0.5, 2.0, 2.0]
    words = "the first row's columns count (merge=first)"
    assert collection.notes == (f"1 of 3 rows repeat an edge, 1 of them in the other direction; {words}",)


REPEATED = "graph_id,source,target,weight,times,kind\n" + "".join(
    (
        "1,a,b,0.5,2,x\n",
        "1,b,a,0.25,4,y\n",
        "1,b,c,2,1,x\n",
        "1,a,b,3,3,z\n",
        "2,a,a,1.5,7,x\n",
        "2,a,a,1,1,y\n",
    )
)


@pytest.mark.parametrize(
    ("merge", "weights", "times"),
    [
        ("first", [0.5, 2, 1.5], None),
        ("sum", [3.75, 2, 2.5], [9, 1, 8]),
        ("mean", [1.25, 2, 1.25], [3, 1, 4]),
        ("max", [3, 2, 1.5], [4, 1, 7]),
    ],
)
def test_repeated_rows_are_merged_as_asked_and_counted_once(tmp_path: Path, merge, weights, times) -> None:
    """The note counted both directions of an edge, and only the first row's columns survived."""
    collection = read_edges(put(tmp_path, REPEATED), merge=merge)
    collection.check()
    # Graph 1 has the edges a-b and b-c, both ways; graph 2 a loop.
    assert collection.edge_index.tolist() == [[1, 0, 2, 1, 0], [0, 1, 1, 2, 0]]
    expected = [weights[0], weights[0], weights[1], weights[1], weights[2]]
    assert collection.edges.floats[:, 0].tolist() == expected
    if times is not None:
        assert collection.edges.float_names == ("weight", "times")
        assert collection.edges.floats[:, 1].tolist() == [times[0], times[0], times[1], times[1], times[2]]
    assert collection.edges.columns[0 if times else 1].name == "kind"
    (note,) = collection.notes
    assert note.startswith("3 of 6 rows repeat an edge, 1 of them in the other direction;")
    assert f"(merge={merge})" in note


def test_directed_rows_are_merged_only_if_asked_and_by_direction(tmp_path: Path) -> None:
    path = put(tmp_path, REPEATED)
    assert read_edges(path, directed=True).num_edges == 6
    merged = read_edges(path, directed=True, merge="sum")
    assert merged.num_edges == 4
    assert merged.edges.floats[:, 0].tolist() == [0.25, 3.5, 2, 2.5]
    assert merged.notes[0].startswith("2 of 6 rows repeat an edge; numbers are merged by their sum")


def test_malformed_rows_are_left_out_listed_and_counted(tmp_path: Path) -> None:
    rows = ["1,a,b,0.5", "1,b", "1,,b,2.5", "1,b,c,x", "=2,b,c,1,9", "2,a,b,1.5", "2,b,c,2"]
    path = put(tmp_path, "graph_id,source,target,w\n" + "\n".join(rows) + "\n")
    collection = read_edges(path, rejected=tmp_path / "lost.csv")
    assert collection.ids.tolist() == [1, 2]
    assert [row.line for row in collection.rejected_edges] == [3, 4, 5, 6]
    assert collection.notes == (
        "4 of 7 rows are malformed and were left out, the first on line 3: 2 cells where the header has 4",
    )
    assert (tmp_path / "lost.csv").read_text().splitlines() == [
        "line,cells,reason",
        '3,"1,b",2 cells where the header has 4',
        "4,\"1, , b, 2.5\",cell of 'source' is empty",
        "5,\"1, b, c, x\",'x' in 'w' is not a number",
        '6,"\'=2,b,c,1,9",5 cells where the header has 4',
    ]


def test_edges_of_nodes_that_are_not_listed_are_left_out(tmp_path: Path) -> None:
    nodes = put(tmp_path, "graph_id,node\n5,10\n5,9\n3,1\n", "nodes.csv")
    collection = read_edges(put(tmp_path, PLAIN), nodes=nodes)
    assert collection.num_edges == 3
    assert [row.reason for row in collection.rejected_edges] == ["node '2' of graph '5' is not in nodes.csv"]


def test_a_table_of_malformed_rows_alone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no row is a usable edge; the first: cell of 'source' is empty"):
        read_edges(put(tmp_path, "graph_id,source,target\n1,,2\n1,,3\n"))
    with pytest.raises(DataError, match=r"no row is well-formed; the first: 2 cells .*line 2"):
        read_edges(put(tmp_path, "graph_id,source,target\n1,2\n"))


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_and_decimal_commas_are_detected(tmp_path: Path, separator: str) -> None:
    plain = "graph_id,source,target,w\n1,a,b,0.5\n1,b,c,12.25\n2,a,b,3\n"
    other = plain.replace(",", separator).replace(".", ",")
    path = put(tmp_path, other, "other.csv")
    assert accepts_edges(path)
    assert read_edges(path) == read_edges(put(tmp_path, plain))
    named = "tab" if separator == "\t" else separator
    assert read_edges(path, separator=named, decimal=",") == read_edges(path)


def test_a_comma_that_may_separate_thousands_is_asked_about(tmp_path: Path) -> None:
    path = put(tmp_path, "graph_id;source;target;w\n1;a;b;1,250\n1;b;c;2,500\n")
    with pytest.raises(DataError, match=r"'1,250' in 'w' may be a decimal number or thousands.*set decimal"):
        read_edges(path)
    assert read_edges(path, decimal=",").edges.floats.ravel().tolist() == [1.25, 1.25, 2.5, 2.5]
    with pytest.raises(ConfigError, match="separator is 'ab'"):
        read_edges(path, separator="ab")


def test_other_columns_are_categories_or_attributes(tmp_path: Path) -> None:
    text = "graph_id,source,target,kind,order,length,code\n1,a,b,single,1,1.5,007\n1,b,c,,3,-2,7\n"
    collection = read_edges(put(tmp_path, text), directed=True)
    assert collection.edges.columns == (
        Column("kind", 2, ("", "single")),
        Column("order", 3, ("1", "2", "3")),
        Column("code", 2, ("007", "7")),
    )
    assert collection.edges.codes.tolist() == [[1, 0, 0], [0, 2, 1]]
    assert collection.edges.float_names == ("length",)
    assert collection.edges.floats.tolist() == [[1.5], [-2.0]]


def test_all_three_tables(tmp_path: Path) -> None:
    nodes = "Graph,Node,atom,charge\n3,z,C,0.5\n5,9,N,1\n5,10,C,-1.5\n3,a,O,0\n5,2,C,2\n"
    graphs = "graph_id,toxic,mass\n7,yes,\n3,,1.5\n5,no,2\n"
    collection = read_edges(
        put(tmp_path, "graph_id,source,target\n5,10,9\n5,9,2\n3,z,z\n"),
        nodes=put(tmp_path, nodes, "nodes.csv"),
        graphs=put(tmp_path, graphs, "graphs.csv"),
        allow_empty=True,
        name="three",
    )
    collection.check()
    assert collection.name == "three"
    assert collection.ids.tolist() == [7, 3, 5]
    assert np.diff(collection.node_ptr).tolist() == [0, 2, 3]
    # Nodes in the order of their table: z, a in graph 3 and 9, 10, 2 in graph 5.
    assert collection.nodes.columns == (Column("atom", 3, ("C", "N", "O")),)
    assert collection.nodes.codes.ravel().tolist() == [0, 2, 1, 0, 0]
    assert collection.nodes.floats.ravel().tolist() == [0.5, 0.0, 1.0, -1.5, 2.0]
    assert collection.edge_ptr.tolist() == [0, 0, 1, 5]
    assert collection.edge_index.tolist() == [[0, 1, 2, 0, 0], [0, 0, 0, 1, 2]]
    assert collection.tasks == ("toxic", "mass")
    assert collection.classes == {"toxic": ("no", "yes")}
    assert collection.labels is not None
    np.testing.assert_array_equal(collection.labels, [[1, np.nan], [np.nan, 1.5], [0, 2]])


def test_label_columns_can_be_chosen_and_graphs_outside_the_table_have_none(tmp_path: Path) -> None:
    graphs = put(tmp_path, "graph_id,note,y\n5,hello,1\n", "graphs.csv")
    collection = read_edges(put(tmp_path, PLAIN), graphs=graphs, label_columns=("y",))
    assert collection.tasks == ("y",)
    assert collection.labels is not None
    np.testing.assert_array_equal(collection.labels, [[1], [np.nan]])
    assert collection.notes == ("1 graphs are not in graphs.csv and have no label",)
    assert read_edges(put(tmp_path, PLAIN), graphs=graphs, label_columns=()).labels is None


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN + "\n\n  \n",
        PLAIN.rstrip("\n"),
        '"graph_id","source","target"\n"5","10","9"\n5,"9",2\n3,1,1\n',
        " graph_id , source , target \n5, 10, 9\n5 ,9,2\n3,1,1\n",
        "TARGET,Graph,Source\n9,5,10\n2,5,9\n1,3,1\n",
        "v,gid,u\n9,5,10\n2,5,9\n1,3,1\n",
    ],
    ids=["bom", "crlf", "cr", "blank lines", "no last end", "quotes", "spaces", "case", "synonyms"],
)
def test_ways_of_writing_the_same(tmp_path: Path, text: str) -> None:
    path = put(tmp_path, text)
    assert accepts_edges(path)
    assert read_edges(path) == read_edges(put(tmp_path, PLAIN, "plain.csv"))


def test_compressed_tab_separated_and_parquet_files(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as arrow

    expected = read_edges(put(tmp_path, PLAIN))
    paths = [tmp_path / name for name in ("a.csv.gz", "a.csv.xz", "a.tsv", "a.parquet")]
    paths[0].write_bytes(gzip.compress(PLAIN.encode()))
    paths[1].write_bytes(lzma.compress(PLAIN.encode()))
    paths[2].write_text(PLAIN.replace(",", "\t"))
    table = {"graph_id": [5, 5, 3], "source": [10, 9, 1], "target": [9, 2, 1]}
    parquet.write_table(arrow.table(table), paths[3])
    for path in paths:
        assert accepts_edges(str(path))
        collection = READERS.get("edges").read(str(path))
        assert collection == expected
        assert collection.name == "a"


def test_parquet_types_are_kept_and_null_is_missing(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as arrow

    edges = {
        "graph_id": arrow.array(["a", "a", "b"]).dictionary_encode(),
        "source": ["x", "y", "x"],
        "target": ["y", "z", "y"],
        "w": [1.0, 2.0, 3.5],
        "ok": [True, False, True],
    }
    graphs = {"graph_id": ["b", "a"], "y": [None, 2], "z": [float("nan"), 0.5]}
    parquet.write_table(arrow.table(edges), tmp_path / "edges.parquet")
    parquet.write_table(arrow.table(graphs), tmp_path / "graphs.parquet")
    collection = read_edges(tmp_path / "edges.parquet", graphs=tmp_path / "graphs.parquet", directed=True)
    collection.check()
    assert collection.ids == Strings.of(["b", "a"])
    assert collection.edges.floats.ravel().tolist() == [3.5, 1.0, 2.0]
    assert collection.edges.columns == (Column("ok", 2, ("False", "True")),)
    assert collection.labels is not None
    np.testing.assert_array_equal(collection.labels, [[np.nan, np.nan], [2, 0.5]])


def test_parquet_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as arrow

    path = tmp_path / "edges.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"not a Parquet file.*edges\.parquet"):
        read_edges(path)
    parquet.write_table(arrow.table({"graph_id": [1], "source": [[1]], "target": [2]}), path)
    with pytest.raises(DataError, match="'source'"):
        read_edges(path)
    parquet.write_table(arrow.table({"graph_id": [1, None], "source": [1, 1], "target": [2, 1]}), path)
    with pytest.raises(DataError, match=r"'graph_id' is empty .*edges\.parquet, line 2"):
        read_edges(path, strict=True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"graphsc\[parquet\]"):
        read_edges(path)


HEAD = "graph_id,source,target\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no header", "line 1"]),
        ("\n1,2,3\n", ["no header", "line 1"]),
        (HEAD, ["no rows", "edges.csv"]),
        ("graph_id,source,source\n1,2,3\n", ["'source' appears twice", "line 1"]),
        ("graph_id,source,target,\n1,2,3,4\n", ["column 4", "line 1"]),
        ("graph_id,source,target,(degree)\n1,2,3,4\n", ["'(degree)'", "line 1"]),
        (HEAD + "1,2\n", ["2 cells", "line 2"]),
        (HEAD + "1,2,3\n\n1,2,3,4\n", ["4 cells", "line 4"]),
        (HEAD + "1,2,3\n1,,3\n", ["'source' is empty", "line 3"]),
        (HEAD + "1,2,3\n1,2,\n", ["'target' is empty", "line 3"]),
        (HEAD + ",2,3\n", ["'graph_id' is empty", "line 2"]),
        (HEAD + "1,2,3\n1,\0,3\n", ["NUL", "line 3"]),
        (HEAD + '1,"a\nb",3\n1,2\n', ["2 cells", "line 4"]),
        (HEAD + '1,"2,3\n', ["not a table", "line 2"]),
        (HEAD + "1,2," + "3" * 200_000 + "\n", ["field", "line 2"]),
        (HEAD + "1,2," + "3" * 2_000_000 + "\n", ["longer", "line 2"]),
        ("graph_id,source,target,w\n1,2,3,0.5\n1,2,4,abc\n", ["'abc'", "'w'", "line 3"]),
        ("graph_id,source,target,w\n1,2,3,0.5\n1,2,4,nan\n", ["'nan'", "'w'", "line 3"]),
        ("graph_id,source,target,w\n1,2,3,0.5\n1,2,4,\n", ["'w' is empty", "line 3"]),
        ("graph_id,source,target,w\n1,2,3,5\n1,2,4,\n", ["'w' is empty", "line 3"]),
        ("graph_id,source,target,w\n1,2,3,1e99\n", ["'1e99'", "'w'", "line 2"]),
        ("id,source,target\n1,2,3\n", ["the graph", "columns: id, source, target"]),
        ("graph_id,a,target\n1,2,3\n", ["the source", "columns: graph_id, a, target"]),
        ("graph_id,source,b\n1,2,3\n", ["the target", "columns: graph_id, source, b"]),
        ("graph_id,source,src,target\n1,2,3,4\n", ["source and src", "source_column"]),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else "",
)
def test_errors_name_the_line(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_edges(put(tmp_path, text), strict=True)
    for word in words:
        assert word in str(caught.value)


def test_ambiguous_columns_can_be_named(tmp_path: Path) -> None:
    path = put(tmp_path, "graph,gid,a,b\n1,9,2,3\n")
    collection = read_edges(path, graph_column="gid", source_column="a", target_column="b")
    assert collection.ids.tolist() == [9]
    assert collection.edges.columns == (Column("graph", 1, ("1",)),)
    with pytest.raises(DataError, match=r"no column 'c'.*columns: graph, gid, a, b"):
        read_edges(path, graph_column="gid", source_column="c", target_column="b")


@pytest.mark.parametrize(
    ("nodes", "graphs", "words"),
    [
        (
            "graph_id,node\n5,10\n5,9\n3,1\n",
            None,
            ["node '2' of graph '5'", "nodes.csv", "edges.csv, line 3"],
        ),
        ("graph_id,node\n5,10\n5,9\n3,2\n3,1\n", None, ["node '2' of graph '5'", "edges.csv, line 3"]),
        (
            "graph_id,node\n5,10\n5,9\n5,2\n5,9\n3,1\n",
            None,
            ["node '9' of graph '5'", "twice", "nodes.csv, line 5"],
        ),
        ("graph_id,node\n5,10\n5,\n", None, ["'node' is empty", "nodes.csv, line 3"]),
        ("graph_id,atom\n5,C\n", None, ["the node", "nodes.csv", "columns: graph_id, atom"]),
        (None, "graph_id,y\n5,1\n3,0\n5,1\n", ["graph '5'", "twice", "graphs.csv, line 4"]),
        (None, "graph_id,y\n5,1\n3,0\n8,1\n", ["graph '8' has no nodes", "graphs.csv", "allow_empty"]),
        (None, "graph_id,y\n5,0.5\n3,high\n", ["'high'", "'y'", "graphs.csv, line 3"]),
        (None, "number,y\n5,1\n", ["the graph", "graphs.csv", "columns: number, y"]),
    ],
)
def test_errors_in_the_other_tables(
    tmp_path: Path, nodes: str | None, graphs: str | None, words: list[str]
) -> None:
    with pytest.raises(DataError) as caught:
        read_edges(
            put(tmp_path, PLAIN),
            nodes=nodes and put(tmp_path, nodes, "nodes.csv"),
            graphs=graphs and put(tmp_path, graphs, "graphs.csv"),
            strict=True,
        )
    for word in words:
        assert word in str(caught.value)


def test_files_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No such file.*none\.csv"):
        read_edges(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"edges\.txt is not a table"):
        read_edges(put(tmp_path, PLAIN, "edges.txt"))
    with pytest.raises(DataError, match="embedded null"):
        read_edges("a\0.csv")
    with pytest.raises(DataError, match="list"):
        read_edges([1])  # type: ignore[arg-type]
    latin = tmp_path / "latin.csv"
    latin.write_bytes(HEAD.encode() + "1,é,3\n".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_edges(latin)
    for name, data in (
        ("cut.csv.gz", gzip.compress(PLAIN.encode())),
        ("cut.csv.xz", lzma.compress(PLAIN.encode())),
    ):
        (tmp_path / name).write_bytes(data[:-12])
        with pytest.raises(DataError, match=f"{name}"):
            read_edges(tmp_path / name)
        (tmp_path / name).write_bytes(b"not compressed")
        with pytest.raises(DataError, match=f"{name}"):
            read_edges(tmp_path / name)


def test_only_tables_of_edges_are_accepted(tmp_path: Path) -> None:
    assert accepts_edges(put(tmp_path, PLAIN))
    assert not accepts_edges(put(tmp_path, "smiles,y\nCC,1\n"))
    assert not accepts_edges(put(tmp_path, PLAIN, "edges.txt"))
    assert not accepts_edges(put(tmp_path, PLAIN, "broken.csv.gz"))
    for other in (tmp_path / "none.csv", tmp_path, "mutag", "a\0.csv", None, [PLAIN], b"x.csv"):
        assert not accepts_edges(other)


def test_options_are_checkable() -> None:
    options = {"nodes": "n.csv", "label_columns": ["y"], "directed": True, "graph_column": "g"}
    check_arguments(read_edges, options, "edges")
    with pytest.raises(GraphscError, match="directed"):
        check_arguments(read_edges, {"directed": "yes"}, "edges")


cells = st.sampled_from(["0", "1", "2", "10", "a", "", "1.5", '"', "\0", "é", " 3", "-1", "007"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(cells, min_size=3, max_size=5), max_size=6),
    header=st.sampled_from([HEAD, "graph_id,source,target,w\n", "source,graph,target\n"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    directed=st.booleans(),
)
def test_any_table_gives_a_whole_collection_or_one_data_error(
    tmp_path: Path, rows: list[list[str]], header: str, end: str, directed: bool
) -> None:
    text = header + "".join(",".join(row) + "\n" for row in rows)
    try:
        collection = read_edges(put(tmp_path, text.replace("\n", end)), directed=directed)
    except DataError:
        return
    collection.check()
    column = 1 if header.startswith("source") else 0
    if '"' not in text and not collection.rejected_edges:  # a quoted cell may hold its line and the next
        assert len(collection) == len({row[column].strip() for row in rows})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 12), st.integers(-3, 12)), min_size=1, max_size=12)
)
def test_graphs_are_those_a_plain_loop_finds(tmp_path: Path, rows: list[tuple[int, int, int]]) -> None:
    collection = read_edges(put(tmp_path, HEAD + "".join(f"{g},{u},{v}\n" for g, u, v in rows)))
    graphs = list(dict.fromkeys(g for g, _, _ in rows))
    assert collection.ids.tolist() == graphs
    for index, graph in enumerate(graphs):
        nodes = sorted({end for g, *ends in rows if g == graph for end in ends})
        edges = {(nodes.index(u), nodes.index(v)) for g, u, v in rows if g == graph}
        one = collection.graph(index)
        assert one.num_nodes == len(nodes)
        assert set(map(tuple, one.edge_index.T.tolist())) == edges | {(v, u) for u, v in edges}
