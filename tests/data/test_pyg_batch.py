"""PyG batches under a feature scheme: of one width, and equal to the batches of the collection."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphsc import GraphBatch, GraphCollection, open_collection
from graphsc.core.errors import DataError
from graphsc.data import pyg_batch
from graphsc.data.batch import GraphBatch as BatchOfGraphs
from graphsc.data.columns import Column
from graphsc.encoders import Gin

FIELDS = (
    "codes",
    "floats",
    "rowptr",
    "source",
    "ptr",
    "edge_codes",
    "edge_floats",
    "edge_weight",
    "pos",
    "y",
)


def assert_equal(ours: BatchOfGraphs, theirs: BatchOfGraphs, fields=FIELDS) -> None:
    for name in fields:
        left, right = getattr(ours, name), getattr(theirs, name)
        assert (left is None) == (right is None), name
        if left is not None:
            torch.testing.assert_close(left, right, check_dtype=name not in ("y",))
    assert ours.undirected == theirs.undirected
    assert ours.features == theirs.features


@pytest.fixture(scope="module")
def mixed():
    """Integer and float features of nodes and edges, weights and positions."""
    rng = np.random.default_rng(0)
    graphs = []
    for nodes in (4, 7, 5, 6):
        edges = torch.from_numpy(rng.integers(0, nodes, (2, 9)))
        graphs.append(
            Data(
                x=torch.from_numpy(rng.integers(3, 9, (nodes, 2))),
                edge_index=edges,
                edge_attr=torch.from_numpy(rng.integers(0, 4, (9, 1))),
                edge_weight=torch.from_numpy(rng.random(9)).float(),
                pos=torch.from_numpy(rng.random((nodes, 3))).float(),
                y=torch.tensor([nodes]),
            )
        )
    return open_collection(graphs)


@pytest.mark.parametrize("scheme", ["labels", "degree:3", "labels+degree", "constant", "labels+edges"])
def test_a_batch_under_a_scheme_is_that_of_the_collection(mixed, scheme):
    collection = mixed.with_features(scheme)
    rows = np.array([2, 0, 3])
    pyg = Batch.from_data_list([collection.to_pyg()[row] for row in rows])
    assert_equal(GraphBatch.from_pyg(pyg, collection.features), GraphBatch.gather(collection, rows))


def test_mutag_and_its_one_hot_and_float_forms(mutag_like):
    collection, data = mutag_like
    for form in (lambda x: x, lambda x: torch.nn.functional.one_hot(x[:, 0], 7).float()):
        batch = Batch.from_data_list([Data(x=form(g.x), edge_index=g.edge_index) for g in data])
        ours = GraphBatch.from_pyg(batch, collection.features)
        assert_equal(ours, GraphBatch.of(collection), ("codes", "floats", "rowptr", "source", "ptr"))


@pytest.fixture(scope="module")
def mutag_like():
    collection = open_collection("mutag")
    return collection, collection.to_pyg()


def test_every_batch_of_a_loader_has_the_width_of_the_encoder(mutag_like):
    collection, data = mutag_like
    encoder = Gin(collection.features).eval()
    widths = set()
    for start in range(0, 188, 20):
        batch = GraphBatch.from_pyg(Batch.from_data_list(data[start : start + 20]), collection.features)
        widths.add(batch.dense_x().shape[1])
        encoder(batch)
    assert widths == {7}


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (torch.tensor([[3], [9]]), "the value 9, which the column 'x0' does not know"),
        (torch.tensor([[3.5], [4.0]]), "the value 3.5"),
        (torch.ones(2, 2, dtype=torch.int64), r"shape \(2, 2\), not \(2, 1\)"),
        (torch.full((2, 6), 0.5), "not one-hot"),
        (None, "have no x"),
    ],
)
def test_other_features_than_the_scheme_has_are_refused(x, sentence):
    features = open_collection([Data(x=torch.arange(3, 9)[:, None])]).features
    with pytest.raises(DataError, match=sentence):
        GraphBatch.from_pyg(Data(x=x, num_nodes=2), features)


COLUMNS = (
    Column("consecutive", 3, ("1", "2", "3")),
    Column("any order, negative", 4, ("5", "-2", "9", "0")),
    Column("far apart", 2, ("-9000000000000000000", "9000000000000000000")),
    Column("words", 2, ("carbon", "oxygen")),  # which PyG knows by their codes
)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[:2], COLUMNS[1:2], COLUMNS[3:]])
def test_integers_are_the_codes_of_their_columns_and_back(columns, loops, monkeypatch):
    monkeypatch.setattr(pyg_batch, "use_compiled", lambda: loops)
    numbers = [[1, 2, 3], [5, -2, 9, 0], [-9 * 10**18, 9 * 10**18], [0, 1]]
    numbers = [numbers[COLUMNS.index(column)] for column in columns]
    expected = np.random.default_rng(0).integers(0, [len(of) for of in numbers], (30, len(columns)))
    values = torch.tensor([[of[code] for of, code in zip(numbers, row, strict=True)] for row in expected])
    for x in (values, values.T.contiguous().T):
        codes, floats = pyg_batch.decode("x", x, columns, (), 30, torch.device("cpu"))
        assert codes.tolist() == expected.tolist()
        assert floats.shape == (30, 0)
    assert torch.equal(pyg_batch.encode(torch.from_numpy(expected), columns, None), values)


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(
    ("column", "value"),
    [(0, 0), (0, 4), (0, 2**63 - 1), (0, -(2**63)), (1, 1), (1, -3), (1, -(2**63)), (2, 0), (3, 2), (3, -1)],
)
def test_an_integer_that_a_column_does_not_know_is_named(column, value, loops, monkeypatch):
    monkeypatch.setattr(pyg_batch, "use_compiled", lambda: loops)
    x = torch.tensor([[1, 9, 9 * 10**18, 1]] * 5)
    x[3, column] = value
    x = x[:, : max(column + 1, 2)]
    columns = COLUMNS[: x.shape[1]]
    with pytest.raises(DataError, match=f"has the value {value}, which the column '{COLUMNS[column].name}'"):
        pyg_batch.decode("x", x, columns, (), 5, torch.device("cpu"))


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("code", [3, 4])
def test_a_code_that_a_column_does_not_have_is_no_number(code, loops, monkeypatch):
    monkeypatch.setattr(pyg_batch, "use_compiled", lambda: loops)
    with pytest.raises(IndexError):
        pyg_batch.encode(torch.tensor([[0, 0], [code, 0]]), COLUMNS[:2], None)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8, torch.float64])
def test_integers_of_any_type_have_the_same_codes(dtype):
    x = torch.tensor([[3], [1], [2]], dtype=dtype)
    codes, _ = pyg_batch.decode("x", x, (*COLUMNS[:1],), (), 3, torch.device("cpu"))
    assert codes.tolist() == [[2], [0], [1]]


def test_a_batch_and_its_collection_agree_on_pyg(mixed):
    for collection in (mixed, open_collection("mutag"), open_collection("motifs:6"), regression()):
        rows = np.array([3, 0, 2, 1])
        batch = GraphBatch.gather(collection, rows).to_pyg()
        for ours, theirs in zip(
            batch.to_data_list(), (collection.to_pyg()[row] for row in rows), strict=True
        ):
            del theirs["graphsc_id"], theirs["graphsc_about"]
            assert set(ours.keys()) == set(theirs.keys())
            for key in theirs.keys():  # noqa: SIM118
                if key == "num_nodes":
                    assert ours.num_nodes == theirs.num_nodes
                else:
                    assert torch.equal(ours[key], theirs[key]), key
                    assert ours[key].dtype == theirs[key].dtype, key


def regression() -> GraphCollection:
    """Labels that look like classes in some batches."""
    labels = (1.0, 2.0, 0.5, 3.0)
    return open_collection([Data(x=torch.rand(3, 2), y=torch.tensor([[y, 1.0]])) for y in labels])


def test_dense_features_are_those_that_an_encoder_sees(mixed):
    batch = GraphBatch.of(mixed.with_features("labels+degree"))
    torch.testing.assert_close(batch.to_pyg(dense=True).x, batch.dense_x())
    assert torch.equal(batch.to_pyg(dense=True).edge_index, batch.edge_index)


def test_a_data_without_edges_and_a_batch_without_pointer():
    features = open_collection([Data(num_nodes=3)]).features
    assert GraphBatch.from_pyg(Data(num_nodes=3), features).num_edges == 0
    data = Data(edge_index=torch.tensor([[0, 2], [1, 3]]), num_nodes=4, batch=torch.tensor([0, 0, 1, 1]))
    assert GraphBatch.from_pyg(data, features).ptr.tolist() == [0, 2, 4]


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("sorted_by", ["nothing", "source", "destination"])
def test_edges_in_any_order_are_sorted_and_their_reverses_found(sorted_by, loops, monkeypatch):
    """Against NumPy's sort and Python's lists, over many small graphs with loops and parallel edges."""
    monkeypatch.setattr(pyg_batch, "use_compiled", lambda: loops)
    rng = np.random.default_rng(0)
    both = 0
    for number in range(200):
        nodes = int(rng.integers(1, 7))
        source, destination = rng.integers(0, nodes, (2, int(rng.integers(0, 10))))
        if number % 2:
            source, destination = np.append(source, destination), np.append(destination, source)
        keys = {"nothing": (), "source": (destination, source), "destination": (source, destination)}
        if keys[sorted_by]:
            order = np.lexsort(keys[sorted_by])
            source, destination = source[order], destination[order]
        edges = torch.from_numpy(np.stack([source, destination]))
        rowptr, sources, order, undirected = pyg_batch.sorted_edges(edges, nodes)
        expected = np.lexsort((np.arange(len(source)), source, destination))
        assert order.tolist() == expected.tolist()
        assert sources.tolist() == source[expected].tolist()
        assert rowptr.tolist() == [int((destination < node).sum()) for node in range(nodes + 1)]
        pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
        assert undirected == (sorted(pairs) == sorted((end, start) for start, end in pairs))
        both += undirected
    assert 100 <= both < 200
