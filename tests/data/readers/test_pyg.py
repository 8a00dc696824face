"""PyG's Data to a collection and back: what numbers mean, what is kept, what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

from graphsc.core.config import check_arguments
from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers import READERS
from graphsc.data.readers.pyg import accepts_pyg, read_pyg, to_pyg


def pair(*edges: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()


def rows_of(data: Data) -> list[tuple[object, ...]]:
    """Edges with their attributes as a sorted multiset."""
    columns = [data.edge_index.t().tolist()]
    if data.edge_attr is not None:
        columns.append(data.edge_attr.tolist())
    return sorted(tuple(map(tuple, row)) for row in zip(*columns, strict=True))


def test_integer_x_becomes_columns_and_edges_are_sorted_by_destination() -> None:
    graph = Data(
        x=torch.tensor([[6, 0], [8, 1], [6, 0]]),
        edge_index=pair((2, 1), (1, 2), (0, 1), (1, 0), (1, 1), (0, 1)),
        y=torch.tensor([1]),
    )
    collection = read_pyg([graph])
    collection.check()
    assert collection.edge_index.tolist() == [[1, 0, 0, 1, 2, 1], [0, 1, 1, 1, 1, 2]]
    assert collection.nodes.columns == (Column("x0", 3, ("6", "7", "8")), Column("x1", 2, ("0", "1")))
    assert collection.nodes.codes.tolist() == [[0, 0], [2, 1], [0, 0]]
    assert collection.labels is not None
    assert collection.labels.tolist() == [[1.0]]
    assert not collection.undirected  # 0 -> 1 is listed twice, 1 -> 0 once


def test_bool_x_is_two_categories() -> None:
    collection = read_pyg([Data(x=torch.tensor([[True], [False]]))])
    assert collection.nodes.columns == (Column("x0", 2, ("0", "1")),)
    assert collection.nodes.codes.tolist() == [[1], [0]]


ONE_HOT = [
    Data(x=torch.tensor([[1.0, 0, 0], [0, 0, 1.0]]), edge_index=pair((0, 1), (1, 0))),
    Data(x=torch.tensor([[0.0, 1, 0]])),
]


def test_one_hot_x_becomes_one_column_and_is_exported_unchanged() -> None:
    collection = read_pyg(ONE_HOT)
    assert collection.nodes.columns == (Column("one_hot", 3),)
    assert collection.nodes.codes.tolist() == [[0], [2], [1]]
    assert collection.features.width == 3
    out = to_pyg(collection)
    assert torch.equal(out[0].x, ONE_HOT[0].x)
    assert torch.equal(out[1].x, ONE_HOT[1].x)


def test_one_hot_x_can_be_kept_as_floats() -> None:
    collection = read_pyg(ONE_HOT, one_hot="keep")
    assert collection.nodes.columns == ()
    assert collection.nodes.float_names == ("x0", "x1", "x2")
    assert collection == read_pyg(to_pyg(collection))


@pytest.mark.parametrize("last", [[1.0, 1.0], [0.0, 0.0], [0.5, 0.5], [2.0, 0.0], [-1.0, 1.0]], ids=str)
def test_one_row_that_is_not_one_hot_makes_all_floats(last: list[float]) -> None:
    collection = read_pyg([Data(x=torch.tensor([[1.0, 0.0]])), Data(x=torch.tensor([last]))])
    assert collection.nodes.floats.tolist() == [[1.0, 0.0], last]


def test_a_single_column_of_ones_is_not_one_hot() -> None:
    assert read_pyg([Data(x=torch.ones(2, 1))]).nodes.float_names == ("x0",)


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (torch.tensor(2), [[2.0]]),
        (torch.tensor([2.5]), [[2.5]]),
        (torch.tensor([[1.0, float("nan")]]), [[1.0, float("nan")]]),
        (torch.tensor([3, 4]), [[3.0, 4.0]]),
        (7, [[7.0]]),
    ],
    ids=["scalar", "one", "row", "flat", "number"],
)
def test_shapes_of_y(y: object, expected: list[list[float]]) -> None:
    labels = read_pyg([Data(num_nodes=1, y=y)]).labels
    assert labels is not None
    np.testing.assert_array_equal(labels, np.array(expected))


def test_y_missing_in_some_graphs_is_nan_and_in_all_graphs_is_no_label() -> None:
    labels = read_pyg([Data(num_nodes=1), Data(num_nodes=1, y=torch.tensor([[1, 0]]))]).labels
    assert labels is not None
    np.testing.assert_array_equal(labels, [[np.nan, np.nan], [1, 0]])
    assert read_pyg([Data(num_nodes=1)]).labels is None


def test_a_label_that_no_float_equals_is_refused() -> None:
    edges = torch.zeros(2, 0, dtype=torch.long)
    graphs = [Data(edge_index=edges, num_nodes=1, y=torch.tensor([2**53 + k])) for k in range(2)]
    with pytest.raises(DataError, match="y of graph 1 is a whole number that no float equals"):
        read_pyg(graphs)


def test_integer_labels_are_exported_as_integers_and_others_as_floats() -> None:
    whole = to_pyg(read_pyg([Data(num_nodes=1, y=torch.tensor(3))]))[0].y
    assert whole.dtype == torch.long
    assert whole.tolist() == [3]
    huge = to_pyg(read_pyg([Data(num_nodes=1, y=torch.tensor(1e30))]))[0].y
    assert torch.equal(huge, torch.tensor([[1e30]]))
    missing = to_pyg(read_pyg([Data(num_nodes=1, y=torch.tensor(3)), Data(num_nodes=1)]))
    assert missing[0].y.tolist() == [[3.0]]
    assert torch.isnan(missing[1].y).all()


def test_nodes_are_counted_by_x_else_num_nodes_else_pos_else_edges() -> None:
    graphs = [
        Data(num_nodes=5, edge_index=pair((0, 1))),
        Data(edge_index=pair((0, 3))),
        Data(pos=torch.zeros(4, 3), edge_index=pair((0, 1))),
    ]
    assert np.diff(read_pyg(graphs).node_ptr).tolist() == [5, 4, 4]
    assert np.diff(read_pyg([Data(x=torch.ones(3, 1), edge_index=pair((0, 1)))]).node_ptr).tolist() == [3]


class Three(InMemoryDataset):
    def __init__(self) -> None:
        super().__init__()
        self.data, self.slices = self.collate([Data(num_nodes=n, y=torch.tensor([n])) for n in (1, 2, 3)])


@pytest.mark.parametrize(
    "source",
    [
        Three(),
        Batch.from_data_list([Data(num_nodes=n, y=torch.tensor([n])) for n in (1, 2, 3)]),
        tuple(Data(num_nodes=n, y=torch.tensor([n])) for n in (1, 2, 3)),
        torch.utils.data.Subset(Three(), [0, 1, 2]),
    ],
    ids=["dataset", "batch", "tuple", "subset"],
)
def test_every_container_of_graphs_is_accepted_and_read(source: object) -> None:
    assert accepts_pyg(source)
    collection = READERS.get("pyg").read(source)
    assert np.diff(collection.node_ptr).tolist() == [1, 2, 3]
    assert collection.labels is not None
    assert collection.labels.ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "source",
    [[], "motifs", None, [1], object(), {"x": 1}, np.zeros(3)],
    ids=["empty list", "word", "none", "list of numbers", "object", "dict", "array"],
)
def test_other_things_are_not_accepted(source: object) -> None:
    assert not accepts_pyg(source)


def test_asking_whether_a_source_is_accepted_imports_no_torch() -> None:
    code = (
        "import sys; from graphsc.data.readers import pyg, networkx, edge_list, synthetic\n"
        "for accepts in (pyg.accepts_pyg, networkx.accepts_networkx, edge_list.accepts_edges,\n"
        "             synthetic.accepts_motifs, synthetic.accepts_molecule_like):\n"
        "    accepts([1]); accepts('x.csv'); accepts('motifs:3')\n"
        "print([m for m in ('torch', 'networkx', 'pyarrow', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_options_are_checkable() -> None:
    check_arguments(read_pyg, {"one_hot": "keep", "allow_empty": True, "name": "a"}, "pyg")
    with pytest.raises(Exception, match="one_hot"):
        check_arguments(read_pyg, {"one_hot": "no"}, "pyg")


GOOD = Data(x=torch.rand(2, 3), edge_index=pair((0, 1)), edge_attr=torch.rand(1, 2))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Data(num_nodes=0), ["graph 1", "no nodes"]),
        (Data(), ["graph 1", "no nodes"]),
        (Data(x=torch.full((2, 3), float("nan"))), ["graph 1", "x0", "finite"]),
        (Data(x=torch.full((2, 3), float("inf"))), ["graph 1", "x0", "finite"]),
        (Data(x=torch.full((2, 3), 1e300, dtype=torch.float64)), ["graph 1", "x0", "finite"]),
        (Data(x=torch.rand(2, 4)), ["x of graph 1", "4 wide", "3"]),
        (Data(x=torch.zeros(2, 3, dtype=torch.long)), ["x of graph 1", "int64", "float32"]),
        (Data(x=torch.zeros(2, 3, dtype=torch.cfloat)), ["x of graph 1", "complex64"]),
        (Data(x=torch.zeros(2, 3, 1)), ["x of graph 1", "3 dimensions"]),
        (Data(x=[[1.0, 2, 3]], num_nodes=1), ["x of graph 1", "list"]),
        (Data(num_nodes=2), ["graph 1 has no x"]),
        (Data(x=torch.rand(2, 3), num_nodes=3), ["x of graph 1", "2 rows", "3 nodes"]),
        (
            Data(x=torch.rand(2, 3), edge_index=pair((0, 2)), edge_attr=torch.rand(1, 2)),
            ["edge_index", "node 2", "graph 1"],
        ),
        (
            Data(x=torch.rand(2, 3), edge_index=pair((-1, 0)), edge_attr=torch.rand(1, 2)),
            ["edge_index", "node -1", "graph 1"],
        ),
        (Data(x=torch.rand(2, 3), edge_index=torch.rand(2, 1)), ["edge_index of graph 1", "float32"]),
        (Data(x=torch.rand(2, 3), edge_index=torch.ones(2, 1) > 0), ["edge_index of graph 1", "bool"]),
        (
            Data(x=torch.rand(2, 3), edge_index=torch.zeros(3, 2).long()),
            ["edge_index of graph 1", "(3, 2)"],
        ),
        (Data(x=torch.rand(2, 3), edge_index=[[0], [1]]), ["edge_index of graph 1", "tensor"]),
        (Data(x=torch.rand(2, 3), adj_t=torch.eye(2)), ["graph 1", "adj_t"]),
        (Data(x=torch.rand(2, 3), edge_index=pair((0, 1))), ["graph 1 has no edge_attr"]),
        (
            Data(x=torch.rand(2, 3), edge_index=pair((0, 1)), edge_attr=torch.rand(2, 2)),
            ["edge_attr of graph 1", "2 rows", "1 edges"],
        ),
        (
            Data(x=torch.rand(2, 3), edge_index=pair((0, 1)), edge_attr=torch.full((1, 2), float("nan"))),
            ["graph 1", "edge_attr0"],
        ),
        (Data(x=torch.rand(2, 3), y=torch.tensor(float("inf"))), ["y of graph 1", "infinite"]),
        (Data(x=torch.rand(2, 3), y=torch.rand(3, 2)), ["y of graph 1", "(3, 2)"]),
        (Data(x=torch.rand(2, 3), y="toxic"), ["y of graph 1", "numbers"]),
        (Data(x=torch.rand(2, 3), num_nodes="two"), ["num_nodes of graph 1"]),
        (Data(x=torch.rand(2, 3), graphsc_about="{}"), ["graphsc_about of graph 1"]),
        (HeteroData(), ["graph 1", "HeteroData"]),
        ("CCO", ["graph 1", "str"]),
        (None, ["graph 1", "NoneType"]),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_errors_name_the_graph(bad: object, words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_pyg([GOOD, bad])
    for word in words:
        assert word in str(caught.value)


def test_y_of_differing_widths_is_refused() -> None:
    graphs = [Data(num_nodes=1, y=torch.rand(1, 2)), Data(num_nodes=3, y=torch.rand(3))]
    with pytest.raises(DataError, match="y of graph 1 has 3 values, that of graph 0 2"):
        read_pyg(graphs)


def test_no_graphs_is_an_error() -> None:
    with pytest.raises(DataError, match="no graph"):
        read_pyg([])


def test_a_data_set_that_breaks_is_one_error_with_the_index() -> None:
    def broken() -> object:
        yield GOOD
        raise ZeroDivisionError("division by zero")

    with pytest.raises(DataError, match="graph 1 could not be read: ZeroDivisionError"):
        read_pyg(broken())


def test_damaged_metadata_is_refused() -> None:
    with pytest.raises(DataError, match="graphsc_about of graph 0 is damaged"):
        read_pyg([Data(num_nodes=1, graphsc_about='{"tables": 3}')])


def test_graphs_of_two_collections_with_other_codes_are_not_mixed() -> None:
    def named(values: tuple[str, ...]) -> list[Data]:
        nodes = FeatureTable.of(1, np.array([[0]]), [Column("atom", 2, values)])
        none = np.zeros(0, np.int64)
        return to_pyg(
            build_collection(
                node_counts=np.array([1]),
                edge_counts=np.array([0]),
                source=none,
                destination=none,
                nodes=nodes,
            )
        )

    with pytest.raises(DataError, match="graph 1"):
        read_pyg(named(("C", "N")) + named(("N", "C")))


def test_empty_graphs_are_kept_where_allowed() -> None:
    collection = read_pyg([Data(num_nodes=0), GOOD, Data(x=torch.rand(0, 3))], allow_empty=True)
    collection.check()
    assert np.diff(collection.node_ptr).tolist() == [0, 2, 0]
    assert read_pyg(to_pyg(collection), allow_empty=True) == collection


def test_edgeless_graph_may_have_any_empty_edge_index_and_attributes() -> None:
    empties = [torch.tensor([[], []]), torch.tensor([]), torch.zeros(2, 0).long(), None]
    graphs = [Data(x=torch.rand(1, 3), edge_index=empty) for empty in empties]
    graphs.append(Data(x=torch.rand(1, 3), edge_attr=torch.zeros(0)))
    collection = read_pyg([GOOD, *graphs])
    collection.check()
    assert np.diff(collection.edge_ptr).tolist() == [1, 0, 0, 0, 0, 0]
    assert collection.edges.float_names == ("edge_attr0", "edge_attr1")


def test_x_changed_after_export_is_read_as_it_is() -> None:
    out = to_pyg(read_pyg([Data(x=torch.tensor([[6], [8]]))]))
    out[0].x = torch.tensor([[0.25, 0.5], [0.5, 1.0]])
    assert read_pyg(out).nodes.floats.tolist() == [[0.25, 0.5], [0.5, 1.0]]
    out[0].x = torch.tensor([[6], [99]])
    assert read_pyg(out).nodes.columns[0].cardinality == 94


def rich_collection(seed: int, directed: bool, kinds: str) -> GraphCollection:
    """Random graphs with loops, duplicates, single nodes, words, numbers, floats, missing labels."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 7, size=6)
    counts, source, destination = [], [], []
    for size in sizes:
        ends = random.integers(0, size, size=(2, int(random.integers(0, 8))))
        ends = ends if directed else np.concatenate([ends, ends[::-1]], axis=1)
        counts.append(ends.shape[1])
        source.append(ends[0])
        destination.append(ends[1])

    def table(rows: int) -> FeatureTable:
        columns = [
            Column("word", 3, ("N", "C", "O")),
            Column("whole", 3, ("5", "-1", "70000001")),
            Column("code", 4),
        ]
        codes = random.integers(0, 3, size=(rows, 3))
        floats = random.normal(size=(rows, 2))
        return FeatureTable.of(
            rows,
            codes if "c" in kinds else None,
            columns if "c" in kinds else (),
            floats if "f" in kinds else None,
            ("q", "r") if "f" in kinds else (),
        )

    labels = random.normal(size=(6, 2)) if seed % 2 else random.integers(0, 2, size=(6, 1)).astype(float)
    labels[random.random(labels.shape) < 0.3] = np.nan
    return build_collection(
        node_counts=sizes,
        edge_counts=np.array(counts),
        source=np.concatenate(source),
        destination=np.concatenate(destination),
        nodes=table(int(sizes.sum())),
        edges=table(sum(counts)),
        labels=None if seed % 5 == 0 else labels,
        tasks=() if seed % 5 == 0 else (("a", "b") if seed % 2 else ("toxic",)),
        classes={"toxic": ("no", "yes")} if seed % 2 == 0 and seed % 5 else {},
        ids=Strings.of(f"graph {i} é" for i in range(6)) if seed % 3 == 0 else random.permutation(90)[:6],
        features="degree:7" if seed % 7 == 0 else "auto",
    )


@pytest.mark.parametrize("kinds", ["", "c", "f", "cf"])
@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("seed", range(8))
def test_exported_collection_is_read_back_equal(seed: int, directed: bool, kinds: str) -> None:
    collection = rich_collection(seed, directed, kinds)
    collection.check()
    out = to_pyg(collection)
    back = read_pyg(out)
    back.check()
    assert back == collection
    assert read_pyg(Batch.from_data_list(out)) == collection
    part = read_pyg(out[2:5])
    assert part == collection[2:5]
    assert part.ids[0] == collection.ids[2]


def test_part_of_a_directed_collection_stays_directed() -> None:
    directed = read_pyg([Data(edge_index=pair((0, 1))), Data(edge_index=pair((0, 1), (1, 0)))])
    part = directed[1:]
    assert not part.undirected
    assert read_pyg(to_pyg(part)) == part


def random_data(draw: st.DrawFn, kind: str, edge_kind: str, y: int) -> Data:
    size = draw(st.integers(1, 5))
    ends = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=8))

    def numbers(what: str, rows: int) -> torch.Tensor | None:
        if what == "none":
            return None
        if what == "int":
            cells = draw(st.lists(st.integers(-2000, 2000), min_size=2 * rows, max_size=2 * rows))
            return torch.tensor(cells, dtype=torch.long).reshape(rows, 2)
        if what == "one-hot":
            cells = draw(st.lists(st.integers(0, 2), min_size=rows, max_size=rows))
            return torch.eye(3)[torch.tensor(cells, dtype=torch.long)]
        floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
        cells = draw(st.lists(floats, min_size=rows, max_size=rows))
        return torch.tensor(cells, dtype=torch.float32).reshape(rows, 1)

    label = draw(st.lists(st.floats(width=32, allow_infinity=False), min_size=y, max_size=y))
    return Data(
        x=numbers(kind, size),
        edge_index=pair(*ends),
        edge_attr=numbers(edge_kind, len(ends)),
        y=torch.tensor([label]) if y else None,
        num_nodes=size,
    )


@st.composite
def data_lists(draw: st.DrawFn) -> list[Data]:
    kinds = st.sampled_from(["none", "int", "one-hot", "float"])
    kind, edge_kind, y = draw(kinds), draw(kinds), draw(st.integers(0, 3))
    return [random_data(draw, kind, edge_kind, y) for _ in range(draw(st.integers(1, 4)))]


@settings(max_examples=80, deadline=None)
@given(data_lists())
def test_read_graphs_are_exported_unchanged(graphs: list[Data]) -> None:
    collection = read_pyg(graphs)
    collection.check()
    out = to_pyg(collection)
    assert len(out) == len(graphs)
    for before, after in zip(graphs, out, strict=True):
        assert after.num_nodes == before.num_nodes
        assert (after.x is None) == (before.x is None)
        assert before.x is None or torch.equal(before.x, after.x)
        assert rows_of(before) == rows_of(after)
        if before.y is None:
            assert after.y is None
        else:
            same = after.y.reshape(1, -1).double(), before.y.double()
            assert torch.equal(torch.nan_to_num(same[0], 7.5), torch.nan_to_num(same[1], 7.5))


@st.composite
def hostile_data(draw: st.DrawFn) -> Data:
    """Data of any shape and dtype, most of it wrong."""
    dtype = st.sampled_from([torch.float32, torch.int64, torch.bool, torch.float64, torch.uint8])
    data = Data()
    for key in ("x", "edge_index", "edge_attr", "y"):
        if draw(st.booleans()):
            shape = draw(st.lists(st.integers(0, 3), max_size=3))
            cells = draw(st.lists(st.sampled_from([0, 1, -1, 2, float("nan")]), min_size=27, max_size=27))
            values = torch.tensor(cells)[: int(np.prod(shape))].reshape(shape)
            data[key] = torch.nan_to_num(values).to(draw(dtype)) if draw(st.booleans()) else values
    if draw(st.booleans()):
        data.num_nodes = draw(st.integers(-1, 4))
    return data


@settings(max_examples=200, deadline=None)
@given(st.lists(hostile_data(), max_size=3), st.booleans())
def test_any_data_gives_a_whole_collection_or_one_data_error(graphs: list[Data], allow_empty: bool) -> None:
    try:
        collection = read_pyg(graphs, allow_empty=allow_empty)
    except DataError:
        return
    collection.check()
    assert len(collection) == len(graphs)
