"""NetworkX graphs to a collection and back."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphsc.core.config import check_arguments
from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings
from graphsc.data.columns import Column
from graphsc.data.readers import READERS
from graphsc.data.readers.networkx import accepts_networkx, read_networkx, to_networkx


def water() -> nx.Graph:
    graph = nx.Graph(label="wet")
    graph.add_node("h1", atom="H", charge=0.5, number=1)
    graph.add_node("o", atom="O", charge=-1, number=8)
    graph.add_node("h2", atom="H", charge=0.5, number=1)
    graph.add_edge("o", "h1", length=0.96, order=1)
    graph.add_edge("o", "h2", length=0.97, order=1)
    graph.add_edge("o", "o", length=0.0, order=3)
    return graph


def test_undirected_graph_gives_both_directions_and_a_loop_once() -> None:
    collection = read_networkx([water()])
    collection.check()
    assert collection.edge_index.tolist() == [[1, 0, 1, 2, 1], [0, 1, 1, 1, 2]]
    assert collection.undirected
    np.testing.assert_array_equal(
        collection.edges.floats, np.array([[0.96], [0.96], [0.0], [0.97], [0.97]], np.float32)
    )
    assert collection.edges.columns == (Column("order", 3, ("1", "2", "3")),)
    assert collection.edges.codes.tolist() == [[0], [0], [2], [0], [0]]


def test_words_and_whole_numbers_are_categories_and_floats_attributes() -> None:
    collection = read_networkx([water()])
    assert collection.nodes.columns == (
        Column("atom", 2, ("H", "O")),
        Column("number", 8, ("1", "2", "3", "4", "5", "6", "7", "8")),
    )
    assert collection.nodes.codes.tolist() == [[0, 0], [1, 7], [0, 0]]
    assert collection.nodes.float_names == ("charge",)
    assert collection.nodes.floats.tolist() == [[0.5], [-1.0], [0.5]]


def test_bools_are_the_words_true_and_false() -> None:
    graph = nx.empty_graph(2)
    nx.set_node_attributes(graph, {0: True, 1: False}, "ring")
    collection = read_networkx([graph])
    assert collection.nodes.columns == (Column("ring", 2, ("False", "True")),)
    assert collection.nodes.codes.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("kind", "expected", "undirected"),
    [
        (nx.Graph, [[1, 0], [0, 1]], True),
        (nx.MultiGraph, [[1, 1, 0, 0], [0, 0, 1, 1]], True),
        (nx.DiGraph, [[0], [1]], False),
        (nx.MultiDiGraph, [[0, 0], [1, 1]], False),
    ],
)
def test_the_four_kinds_of_graph(kind: type[nx.Graph], expected: list[list[int]], undirected: bool) -> None:
    graph = kind()
    graph.add_edge("a", "b")
    graph.add_edge("a", "b")
    collection = read_networkx([graph])
    collection.check()
    assert collection.edge_index.tolist() == expected
    assert collection.undirected is undirected


def test_columns_can_be_named() -> None:
    collection = read_networkx(
        [water()], node_labels="number", node_attributes=("charge",), edge_attributes=("order", "length")
    )
    assert [column.name for column in collection.nodes.columns] == ["number"]
    assert collection.nodes.float_names == ("charge",)
    assert collection.edges.columns == ()
    assert collection.edges.float_names == ("order", "length")
    assert read_networkx([water()], node_attributes=()).features.name == "degree"
    assert read_networkx([water()], edge_labels="order").edges.float_names == ()


def test_invalid_attributes_are_left_out_and_noted() -> None:
    graph = water()
    graph.nodes["o"]["lone_pairs"] = 2
    nx.set_node_attributes(graph, [1, 2], "place")
    collection = read_networkx([graph])
    assert [column.name for column in collection.nodes.columns] == ["atom", "number"]
    assert sorted(note for note in collection.notes if "left out" in note) == [
        "node attribute 'lone_pairs' is missing (graph 0, node 'h1') and was left out",
        "node attribute 'place' is [1, 2], not a number (graph 0, node 'h1') and was left out",
    ]


def test_word_labels_become_classes_and_a_missing_one_nan() -> None:
    dry = nx.path_graph(2)
    dry.graph["label"] = "dry"
    collection = read_networkx([water(), dry, nx.path_graph(3)], node_attributes=(), edge_attributes=())
    assert collection.classes == {"label": ("dry", "wet")}
    assert collection.labels is not None
    np.testing.assert_array_equal(collection.labels, [[1], [0], [np.nan]])


def test_large_labels_are_classes_and_the_words_nan_and_inf_are_not() -> None:
    graphs = [nx.path_graph(2) for _ in range(3)]
    for graph, label in zip(graphs, (2**53 + 1, 2**53, None), strict=True):
        graph.graph["label"] = label
    collection = read_networkx(graphs)
    assert collection.classes == {"label": ("9007199254740992", "9007199254740993")}
    np.testing.assert_array_equal(collection.labels, [[1], [0], [np.nan]])
    for graph, label in zip(graphs, ("wet", "dry", "nan"), strict=True):
        graph.graph["label"] = label
    collection = read_networkx(graphs)
    assert collection.classes == {"label": ("dry", "wet")}
    np.testing.assert_array_equal(collection.labels, [[1], [0], [np.nan]])
    graphs[2].graph["label"] = "inf"
    with pytest.raises(DataError, match=r"label is infinite \(graph 2"):
        read_networkx(graphs)


def test_number_labels_and_their_key() -> None:
    graphs = [nx.path_graph(2), nx.path_graph(3)]
    graphs[0].graph.update(y=1.5, energy=(1, 2))
    graphs[1].graph.update(y=np.float32(2.5), energy=[3, float("nan")])
    plain = read_networkx(graphs)
    assert plain.tasks == ("y",)
    assert plain.labels is not None
    assert plain.labels.tolist() == [[1.5], [2.5]]
    several = read_networkx(graphs, graph_label="energy")
    assert several.tasks == ("task0", "task1")
    assert several.labels is not None
    np.testing.assert_array_equal(several.labels, [[1, 2], [3, np.nan]])
    assert read_networkx([nx.path_graph(2)]).labels is None


def with_graph(**attributes: object) -> nx.Graph:
    graph = nx.path_graph(2)
    graph.graph.update(attributes)
    return graph


def test_ids_are_taken_where_every_graph_has_its_own() -> None:
    assert read_networkx([with_graph(id=7), with_graph(id=3)]).ids.tolist() == [7, 3]
    assert read_networkx([with_graph(name="b"), with_graph(name="a")]).ids == Strings.of(["b", "a"])
    assert read_networkx([with_graph(id=7), with_graph(id=3)]).notes == ()


@pytest.mark.parametrize(
    ("graphs", "ids", "note"),
    [
        ([{"id": 7}, {"id": 7}], [7, 7], "1 graphs share their id with another"),
        ([{"id": "a"}, {}, {"id": 2}], ["a", "1", "2"], "1 of 3 graphs have no 'id'"),
        ([{"id": "1"}, {}], ["1", "#1"], "1 of 2 graphs have no 'id'"),
        ([{"name": "x"}, {"name": "x"}], [0, 1], "1 graphs share their 'name' with another, so positions"),
        ([{"name": "x"}, {}], ["x", "1"], "1 of 2 graphs have no 'name'"),
    ],
)
def test_a_missing_or_repeated_id_takes_no_other_away(graphs, ids, note) -> None:
    """One missing or repeated id took all ids away, without a word."""
    collection = read_networkx([with_graph(**attributes) for attributes in graphs])
    assert list(collection.ids) == ids
    assert collection.notes[0].startswith(note)


def test_parallel_edges_are_kept_and_noted() -> None:
    graph = nx.MultiGraph([(0, 1), (1, 0), (1, 2), (2, 2), (2, 2)])
    directed = nx.MultiDiGraph([(0, 1), (1, 0), (0, 1)])
    assert read_networkx([graph]).notes == (
        "2 edges are parallel to another one and are kept as edges of their own",
    )
    assert read_networkx([directed]).notes[0].startswith("1 edges are parallel")
    assert read_networkx([nx.MultiGraph([(0, 1), (1, 2)])]).notes == ()


def test_a_list_of_directed_and_undirected_graphs_says_what_it_becomes() -> None:
    collection = read_networkx([nx.Graph([(0, 1)]), nx.DiGraph([(0, 1)]), nx.Graph([(0, 1)])])
    assert not collection.undirected
    assert np.diff(collection.edge_ptr).tolist() == [2, 1, 2]
    assert collection.notes[0].startswith("1 of 3 graphs are directed, so the collection is")


def bad(node: object = None, edge: object = None, **graph: object) -> nx.Graph:
    """Water with one value replaced, or taken away if it is `del`."""
    broken = water()
    broken.graph.update(graph)
    for values, value, key in (
        (broken.nodes["o"], node, "charge"),
        (broken.edges["o", "h2"], edge, "length"),
    ):
        if value == "del":
            del values[key]
        elif value is not None:
            values[key] = value
    return broken


@pytest.mark.parametrize(
    ("graph", "options", "words"),
    [
        (
            bad(node="del"),
            {"node_attributes": ("charge",)},
            ["graph 1", "node 'o'", "'charge'", "missing"],
        ),
        (bad(node="much"), {"node_labels": "charge"}, ["graph 0", "node 'h1'", "'charge'", "0.5"]),
        (
            bad(edge="del"),
            {"edge_attributes": ("length",)},
            ["graph 1", "'o'", "'h2'", "'length'", "missing"],
        ),
        (
            bad(node="much"),
            {"node_attributes": ("charge",)},
            ["graph 1", "node 'o'", "'much'", "number"],
        ),
        (bad(node=float("nan")), {}, ["graph 1", "node 1", "'charge'", "finite"]),
        (bad(edge=float("inf")), {}, ["graph 1", "edge", "'length'", "finite"]),
        (bad(label=3), {}, ["graph 0", "'label'", "'wet'"]),
        (bad(energy=float("inf")), {"graph_label": "energy"}, ["graph 1", "'energy'", "infinite"]),
        (bad(), {"graph_label": "colour"}, ["'colour'"]),
        (nx.Graph(), {}, ["graph 1", "no nodes"]),
        ("C", {}, ["graph 1", "str"]),
        (None, {}, ["graph 1", "NoneType"]),
    ],
    ids=str,
)
def test_errors_name_the_place(graph: object, options: dict[str, object], words: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_networkx([water(), graph], **options)  # type: ignore[arg-type]
    for word in words:
        assert word in str(caught.value)


def test_no_graphs_and_no_list_are_errors() -> None:
    with pytest.raises(DataError, match="no graph"):
        read_networkx([])
    with pytest.raises(DataError, match="int"):
        read_networkx(3)


def test_labels_of_differing_length_are_refused() -> None:
    with pytest.raises(DataError, match=r"label has 3 values, others have 2 \(graph 1"):
        read_networkx([with_graph(y=(1, 2)), with_graph(y=(1, 2, 3))])


def test_empty_graphs_are_kept_where_allowed() -> None:
    collection = read_networkx([nx.Graph(), nx.path_graph(2)], allow_empty=True)
    collection.check()
    assert np.diff(collection.node_ptr).tolist() == [0, 2]


def random_graph(kind: type[nx.Graph], seed: int) -> nx.Graph:
    random = np.random.default_rng(seed)
    graph = kind(id=seed + 100, label=["bad", "good"][seed % 2])
    for node in range(7):
        graph.add_node(node, atom="CNO"[node % 3], charge=float(np.float32(random.normal())))
    for one, other in random.integers(0, 7, size=(12, 2)).tolist():
        graph.add_edge(one, other, bond=int(random.integers(1, 4)), length=float(np.float32(random.random())))
    return graph


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_exported_collection_is_read_back_equal(kind: type[nx.Graph]) -> None:
    collection = read_networkx([random_graph(kind, seed) for seed in range(6)])
    collection.check()
    out = to_networkx(collection)
    assert [graph.is_directed() for graph in out] == [kind().is_directed()] * 6
    again = read_networkx(out)
    assert again == collection


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_read_graph_is_exported_unchanged(kind: type[nx.Graph]) -> None:
    before = random_graph(kind, 1)
    after = to_networkx(read_networkx([before]))[0]
    assert after.graph == before.graph
    assert dict(after.nodes(data=True)) == dict(before.nodes(data=True))

    def listed(graph: nx.Graph) -> list[tuple[object, ...]]:
        ends = ((u, v) if graph.is_directed() else (min(u, v), max(u, v)) for u, v in graph.edges())
        return sorted((*e, *d.values()) for e, (_, _, d) in zip(ends, graph.edges(data=True), strict=True))

    assert listed(after) == listed(before)


def test_edges_that_differ_by_direction_are_exported_as_directed() -> None:
    graph = nx.DiGraph()
    graph.add_edge(0, 1, w=0.25)
    graph.add_edge(1, 0, w=0.75)
    collection = read_networkx([graph])
    assert collection.undirected
    out = to_networkx(collection)[0]
    assert out.is_directed()
    assert out.edges[1, 0] == {"w": 0.75}
    assert read_networkx([out]).edges == collection.edges


def test_several_and_missing_labels_are_exported() -> None:
    graphs = [with_graph(y=(1, 2)), with_graph()]
    out = to_networkx(read_networkx(graphs))
    assert out[0].graph["label"] == (1.0, 2.0)
    assert read_networkx(out) == read_networkx(graphs)
    assert "label" not in to_networkx(read_networkx([with_graph(y=1), with_graph()]))[1].graph


def test_accepted_sources() -> None:
    assert accepts_networkx([nx.path_graph(2)])
    assert accepts_networkx((nx.MultiDiGraph(),))
    assert accepts_networkx(nx.path_graph(2))
    for other in ([], "mutag", None, [1], {}):
        assert not accepts_networkx(other)
    assert len(READERS.get("networkx").read(nx.path_graph(2))) == 1


def test_options_are_checkable() -> None:
    check_arguments(read_networkx, {"node_attributes": ["a"], "graph_label": "y"}, "networkx")
    with pytest.raises(Exception, match="node_labels"):
        check_arguments(read_networkx, {"node_labels": 3}, "networkx")
