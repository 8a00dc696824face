"""TU folders and zips: optional files, odd but legal input, and one clear error for each wrong input."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError, UnsafeArchiveError
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import tu
from graphsc.data.readers.tu import read_float_table, read_integer_blocks, read_integer_table, read_tu

# Two graphs: a path 1-2-3 and an edge 4-5, plus an isolated node 6 in the second.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n",
    "graph_labels": "-1\n1\n",
    "node_labels": "3\n5\n3\n3\n6\n5\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, -6e-1\n",
    "edge_labels": "0\n0\n1\n1\n2\n2\n",
    "edge_attributes": "0.1\n0.2\n0.3\n0.4\n0.5\n0.6\n",
}


def write(folder: Path, files: dict[str, str], name: str = "TINY") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in files.items():
        (folder / f"{name}_{part}.txt").write_bytes(text.encode())
    return folder


def with_file(part: str, text: str) -> dict[str, str]:
    return {**FILES, part: text}


def test_reads_every_optional_file(tmp_path):
    collection = read_tu(write(tmp_path / "TINY", FILES))
    collection.check()
    assert collection.name == "TINY"
    assert np.diff(collection.node_ptr).tolist() == [3, 3]
    assert collection.undirected
    first = collection.graph(0)
    edges = {
        (int(s), int(d)): (int(code), round(float(value), 3))
        for s, d, code, value in zip(
            *first.edge_index, first.edges.codes[:, 0], first.edges.floats[:, 0], strict=True
        )
    }
    assert edges == {(0, 1): (0, 0.1), (1, 0): (0, 0.2), (1, 2): (1, 0.3), (2, 1): (1, 0.4)}
    assert first.nodes.codes[:, 0].tolist() == [0, 2, 0]  # labels 3, 5, 3 of the range 3 to 6
    column = collection.nodes.columns[0]
    assert (column.cardinality, column.values) == (4, ("3", "4", "5", "6"))
    assert collection.nodes.floats[5].tolist() == pytest.approx([5.5, -0.6])
    assert collection.labels is not None
    assert collection.labels.tolist() == [[-1.0], [1.0]]


def test_zip_gives_the_same_as_the_folder(tmp_path):
    folder = write(tmp_path / "TINY", FILES)
    with zipfile.ZipFile(tmp_path / "TINY.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"TINY/{path.name}")
    assert read_tu(tmp_path / "TINY.zip") == read_tu(folder)


def test_only_the_two_needed_files(tmp_path):
    files = {part: FILES[part] for part in ("A", "graph_indicator")}
    collection = read_tu(write(tmp_path / "TINY", files))
    assert collection.labels is None
    assert len(collection) == 2
    assert collection.features.name == "degree"


def test_crlf_and_trailing_blank_lines_are_accepted(tmp_path):
    odd = {part: text.replace("\n", "\r\n") + "\r\n\n  \n" for part, text in FILES.items()}
    assert read_tu(write(tmp_path / "b" / "TINY", odd)) == read_tu(write(tmp_path / "a" / "TINY", FILES))


def test_missing_space_and_missing_last_newline_are_accepted(tmp_path):
    odd = with_file("A", FILES["A"].replace(", ", ",").rstrip())
    assert read_tu(write(tmp_path / "b" / "TINY", odd)) == read_tu(write(tmp_path / "a" / "TINY", FILES))


def test_doubled_edges_are_merged_and_loops_kept(tmp_path):
    files = {"A": "1,2\n2,1\n1,2\n2,1\n1,1\n", "graph_indicator": "1\n1\n"}
    collection = read_tu(write(tmp_path / "TINY", files))
    assert collection.edge_index.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert collection.notes == ("2 edges were listed more than once and merged",)


def test_unsorted_indicator_gives_the_same_graphs(tmp_path):
    # Nodes shuffled; edges renamed with them.
    new_of_old = {1: 4, 2: 1, 3: 6, 4: 2, 5: 5, 6: 3}
    old_of_new = {new: old for old, new in new_of_old.items()}

    def rows(part):
        lines = FILES[part].splitlines()
        return "\n".join(lines[old_of_new[new] - 1] for new in range(1, 7)) + "\n"

    pairs = [tuple(map(int, line.split(","))) for line in FILES["A"].splitlines()]
    shuffled = {
        **FILES,
        "A": "".join(f"{new_of_old[a]}, {new_of_old[b]}\n" for a, b in pairs),
        **{part: rows(part) for part in ("graph_indicator", "node_labels", "node_attributes")},
    }
    ours = read_tu(write(tmp_path / "b" / "TINY", shuffled))
    ours.check()
    # Within a graph the order of the shuffled file stands: graph 0 has old nodes 2, 1, 3.
    assert ours.nodes.floats[:3, 0].tolist() == [1.5, 0.5, 2.5]
    first = {tuple(pair) for pair in ours.graph(0).edge_index.T.tolist()}
    assert first == {(0, 1), (1, 0), (0, 2), (2, 0)}
    assert ours.graph(1).nodes.floats[:, 0].tolist() == [3.5, 5.5, 4.5]


def test_edges_not_grouped_by_graph_keep_their_labels(tmp_path):
    files = {
        **with_file("A", "4, 5\n1, 2\n2, 1\n5, 4\n2, 3\n3, 2\n"),
        "edge_labels": "2\n0\n0\n2\n1\n1\n",
        "edge_attributes": "0.5\n0.1\n0.2\n0.6\n0.3\n0.4\n",
    }
    assert read_tu(write(tmp_path / "b" / "TINY", files)) == read_tu(write(tmp_path / "a" / "TINY", FILES))


def test_one_way_edges_make_a_directed_collection(tmp_path):
    collection = read_tu(write(tmp_path / "TINY", {"A": "1,2\n", "graph_indicator": "1\n1\n"}))
    assert not collection.undirected
    assert collection.edge_index.tolist() == [[0], [1]]


def test_graph_attributes_are_labels_where_there_are_no_graph_labels(tmp_path):
    files = {part: FILES[part] for part in ("A", "graph_indicator")}
    files["graph_attributes"] = "0.25, 7\n-1.5, 8\n"
    collection = read_tu(write(tmp_path / "TINY", files))
    assert collection.labels is not None
    assert collection.labels.tolist() == [[0.25, 7.0], [-1.5, 8.0]]
    assert collection.tasks == ("task0", "task1")


def test_graph_labels_that_floats_would_merge_are_classes(tmp_path):
    files = with_file("graph_labels", f"{2**53 + 1}, {2**53}\n{2**53}, 3\n")
    collection = read_tu(write(tmp_path, files))
    assert collection.classes == {"task0": ("9007199254740992", "9007199254740993")}
    np.testing.assert_array_equal(collection.labels, [[1, 2.0**53], [0, 3]])


def test_graph_without_nodes_is_refused_by_number_or_allowed(tmp_path):
    files = {"A": "1,2\n2,1\n", "graph_indicator": "1\n1\n3\n", "graph_labels": "0\n1\n0\n"}
    folder = write(tmp_path / "TINY", files)
    with pytest.raises(DataError, match="graph 1 has no nodes"):
        read_tu(folder)
    assert np.diff(read_tu(folder, allow_empty=True).node_ptr).tolist() == [2, 0, 1]


WRONG = {
    "edge to node 0": (with_file("A", "1, 2\n0, 1\n"), r"node 0.*TINY_A.txt, line 2"),
    "edge beyond the last node": (with_file("A", "1, 2\n2, 1\n2, 7\n"), r"node 7.*TINY_A.txt, line 3"),
    "edge across graphs": (with_file("A", "1, 2\n3, 4\n"), r"graph 1 and graph 2 \(.*line 2"),
    "negative node": (with_file("A", "1, -2\n"), r"node -2.*line 1"),
    "word in the edges": (with_file("A", "1, 2\nfoo, 1\n"), r"'foo, 1' is not a whole number.*line 2"),
    "float in the edges": (with_file("A", "1, 2\n1.5, 1\n"), r"not a whole number.*line 2"),
    "three cells": (with_file("A", "1, 2\n1, 2, 3\n"), r"3 cells where 2 are expected.*line 2"),
    "one cell": (with_file("A", "1, 2\n12\n"), r"1 cells where 2 are expected.*line 2"),
    "two numbers in a cell": (with_file("A", "1 2, 3\n"), r"not a whole number.*line 1"),
    "blank line inside": (with_file("A", "1, 2\n\n2, 1\n"), r"blank line.*line 2"),
    "huge number": (with_file("A", "1, 99999999999999999999\n"), r"too large.*line 1"),
    "graph 0 in the indicator": (with_file("graph_indicator", "1\n1\n0\n2\n2\n2\n"), r"graph 0.*line 3"),
    "graph beyond the labels": (with_file("graph_indicator", "1\n1\n1\n2\n2\n9\n"), r"graph 9.*line 6"),
    "too few node labels": (with_file("node_labels", "1\n2\n"), r"2 rows for 6 nodes.*labels.txt, line 3"),
    "too many edge labels": (with_file("edge_labels", "1\n" * 9), r"9 rows for 6 edges.*edge_labels"),
    "a word in the attributes": (
        with_file("node_attributes", "1, 1\n1, x\n" + "1, 1\n" * 4),
        r"not a number.*node_attributes.txt, line 2",
    ),
    "NaN in the attributes": (
        with_file("node_attributes", "1, 1\n" * 3 + "1, nan\n" + "1, 1\n" * 2),
        r"attribute1.*graph 1, node 0",
    ),
    "a word in the labels": (with_file("graph_labels", "1\nyes\n"), r"not a number.*labels.txt, line 2"),
    "no indicator": ({"A": "1, 2\n"}, r"TINY_graph_indicator.txt is missing"),
    "no graphs": ({"A": "", "graph_indicator": ""}, r"no graph"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_error_that_names_the_place(tmp_path, case):
    files, pattern = WRONG[case]
    with pytest.raises(DataError, match=pattern):
        read_tu(write(tmp_path / "TINY", files))


def test_missing_adjacency_is_named(tmp_path):
    folder = write(tmp_path / "TINY", {"graph_indicator": "1\n"})
    with pytest.raises(DataError, match="no NAME_A"):
        read_tu(folder)


def test_missing_path_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="nowhere"):
        read_tu(tmp_path / "nowhere")


def test_archive_with_a_path_outside_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("../TINY_A.txt", "1,2\n")
    with pytest.raises(UnsafeArchiveError, match="unsafe archive member"):
        read_tu(tmp_path / "x.zip")


def test_an_archive_that_unpacks_to_many_times_its_size_is_refused(tmp_path):
    """It would take gigabytes of memory: this one is 700 times its size, those of the literature up to 8."""
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("T_graph_indicator.txt", "1\n1\n")
        with archive.open("T_A.txt", "w") as file:
            for _ in range(70):
                file.write(b"1, 2\n2, 1\n" * 100_000)
    with pytest.raises(
        UnsafeArchiveError, match=r"'T_A.txt' takes the unpacked size beyond 67,108,864 bytes"
    ):
        read_tu(tmp_path / "t.zip")


def test_edges_listed_far_more_often_than_there_are_pairs_are_refused(tmp_path, monkeypatch):
    """Graphs of 3 nodes each have 9 pairs, so 72 edges in all are the most."""
    monkeypatch.setattr(tu, "ALWAYS_LISTED", 10)
    listed = [*FILES["A"].splitlines(keepends=True)] * 12
    parts = {"A": "".join(listed), **{part: FILES[part] for part in ("graph_indicator", "graph_labels")}}
    assert read_tu(write(tmp_path / "most", parts)).num_edges == 6
    parts["A"] += "1, 2\n"
    with pytest.raises(DataError, match=r"more than 72 edges for graphs with 18 pairs of nodes \(TINY_A.txt"):
        read_tu(write(tmp_path / "more", parts))


def test_truncated_archive_is_called_damaged(tmp_path):
    folder = write(tmp_path / "TINY", FILES)
    path = tmp_path / "TINY.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, f"TINY/{file.name}")
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-30])
    with pytest.raises(DamagedFileError):
        read_tu(path)


def test_flipped_bytes_in_an_archive_never_escape_as_another_error(tmp_path):
    folder = write(tmp_path / "TINY", FILES)
    path = tmp_path / "TINY.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"TINY/{file.name}")
    good = read_tu(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(content), 200):
        flipped = bytearray(content)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            collection = read_tu(path)
        except (DataError, DamagedFileError, UnsafeArchiveError):
            continue
        collection.check()
        # Where it still reads, the flip hit a date, a flag or the name of an optional file.
        assert np.array_equal(collection.node_ptr, good.node_ptr)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    data=st.data(),
)
def test_any_edge_list_equals_a_loop(tmp_path_factory, sizes, data):
    offsets = np.cumsum([0, *sizes])
    expected = []
    lines = []
    for graph, size in enumerate(sizes):
        pairs = data.draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=8))
        expected.append(set(pairs))
        lines += [f"{offsets[graph] + s + 1}, {offsets[graph] + d + 1}" for s, d in pairs]
    lines = data.draw(st.permutations(lines))
    indicator = "".join(f"{graph + 1}\n" * size for graph, size in enumerate(sizes))
    folder = tmp_path_factory.mktemp("tu") / "T"
    text = "\n".join(lines)
    collection = read_tu(write(folder, {"A": text, "graph_indicator": indicator}))
    collection.check()
    for graph, pairs in enumerate(expected):
        assert {tuple(pair) for pair in collection.graph(graph).edge_index.T.tolist()} == pairs
    assert collection.undirected == all((d, s) in pairs for pairs in expected for s, d in pairs)


PRINTED = {
    # graphs, mean nodes, mean undirected edges, label ids, classes, isolated nodes, loops
    "MUTAG": (188, 17.93, 19.79, 7, [63, 125], 0, 0),
    "NCI1": (4110, 29.87, 32.30, 37, [2053, 2057], 428, 0),
    "PROTEINS": (1113, 39.06, 72.82, 3, [663, 450], None, 0),
    "DD": (1178, 284.32, 715.66, 89, [691, 487], None, 0),
    "IMDB-BINARY": (1000, 19.77, 96.53, None, [500, 500], 0, 0),
    "REDDIT-BINARY": (2000, 429.63, 497.75, None, [1000, 1000], 21, 0),
    "COLLAB": (5000, 74.49, 2457.78, None, [2600, 775, 1625], 0, 2837),
}


@pytest.mark.realdata
@pytest.mark.parametrize("title", PRINTED)
def test_real_archives_give_the_printed_statistics(title, real_data):
    found = read_tu(real_data(title)).describe()
    assert found.content_hash == NAMED[title.lower()].content_hash
    graphs, nodes, edges, ids, classes, isolated, loops = PRINTED[title]
    assert found.graphs == graphs
    assert round(found.nodes_mean, 2) == nodes
    assert round(found.edges_mean, 2) == edges
    assert (found.node_labels["label"]["ids"] if ids else found.node_labels) == (ids or {})
    assert list(found.classes.values()) == classes
    assert found.self_loops == loops
    assert found.undirected
    if isolated is not None:
        assert found.isolated_nodes == isolated
    if title == "DD":
        assert found.node_labels["label"]["in_use"] == 82
    if title == "PROTEINS":
        assert found.node_attributes == 1


# Parsing of number tables


integer_rows = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 10**17), min_size=width, max_size=width), min_size=1, max_size=30
    )
)


@given(
    rows=integer_rows,
    separator=st.sampled_from([",", ", ", " ,", ",\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_integers_read_back_as_written(rows, separator, end):
    text = end.join(separator.join(map(str, row)) for row in rows).encode()
    assert read_integer_table(io.BytesIO(text), "x").tolist() == rows


@given(rows=integer_rows, chunk=st.integers(1, 50))
def test_chunks_do_not_change_the_numbers_nor_the_line_numbers(rows, chunk):
    text = "\n".join(",".join(map(str, row)) for row in rows).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tu, "CHUNK", chunk)
        parts = list(read_integer_blocks(io.BytesIO(text), "x"))
    assert np.concatenate([part for _, part in parts]).tolist() == rows
    assert [line for line, _ in parts] == [
        1 + sum(len(part) for _, part in parts[:k]) for k in range(len(parts))
    ]


def test_fast_parser_accepts_plain_integers_only():
    assert tu._parse_fast(b"1, 2\n3,4", 2).tolist() == [[1, 2], [3, 4]]
    for text in (
        b"1,-2",
        b"1,2\n\n3,4",
        b"1,2,3\n4",
        b"1 2,\n3,4",
        b",1 2",
        b"1,2\n3",
        b"1.5,2",
        b"1,1" + b"0" * 30,
    ):
        assert tu._parse_fast(text, 2) is None


@pytest.mark.parametrize(
    ("text", "line"), [(b"1,2\n3,x", 2), (b"1,2\n3", 2), (b"1,2\n\n3,4", 2), (b"5,6\n7,8\n9,0x1", 3)]
)
def test_wrong_line_is_named_at_any_chunk_size(text, line):
    for chunk in (1, 3, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tu, "CHUNK", chunk)
            with pytest.raises(DataError, match=f"f.txt, line {line}"):
                read_integer_table(io.BytesIO(text), "f.txt", 2)


@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1)
)
def test_floats_read_back_as_written(table):
    text = "\n".join(",".join(map(repr, row)) for row in table).encode()
    assert read_float_table(io.BytesIO(text), "x").tolist() == table


def test_negative_integers_are_parsed_by_line():
    assert read_integer_table(io.BytesIO(b"-1\n1\n-1\n"), "x").tolist() == [[-1], [1], [-1]]


@given(st.binary(max_size=200))
def test_any_bytes_give_numbers_or_one_error(content):
    for read in (read_integer_table, read_float_table):
        try:
            table = read(io.BytesIO(content), "x")
        except DataError:
            continue
        assert table.ndim == 2


def test_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr(tu, "LONGEST_LINE", 100)
    monkeypatch.setattr(tu, "CHUNK", 50)
    with pytest.raises(DataError, match="longer than a megabyte"):
        read_integer_table(io.BytesIO(b"1" * 1000), "x")


def test_node_labels_that_change_over_time_can_be_left_out(tmp_path):
    files = {**FILES, "node_labels": "0, 3\n0, 5, 7, 6\n0, 3\n0, 3\n0, 6\n0, 5\n"}
    folder = write(tmp_path / "TINY", files)
    with pytest.raises(DataError, match="4 cells where 2 are expected"):
        read_tu(folder)
    graphs = read_tu(folder, node_labels=False)
    assert graphs.nodes.columns == ()
    assert "node labels were not read" in graphs.notes
