"""Planted motifs: the class is the motif, and nothing simpler gives it away."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, DataError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import READERS
from graphsc.data.readers.synthetic import MOTIFS, accepts_motifs, motifs, read_motifs


@pytest.fixture(scope="module")
def five() -> GraphCollection:
    return motifs(100, classes=5, seed=1)


def graphs_of(collection: GraphCollection) -> list[nx.Graph]:
    made = []
    for graph in collection.graphs():
        one = nx.empty_graph(graph.num_nodes)
        one.add_edges_from(graph.edge_index.T.tolist())
        made.append(one)
    return made


def test_graphs_are_simple_connected_and_undirected(five: GraphCollection) -> None:
    five.check()
    statistics = five.describe()
    assert five.undirected
    assert (statistics.self_loops, statistics.duplicate_edges) == (0, 0)
    assert all(nx.is_connected(graph) for graph in graphs_of(five))


def test_every_graph_holds_its_motif_hung_by_one_edge(five: GraphCollection) -> None:
    assert five.labels is not None
    assert five.classes == {"motif": ("cycle", "clique", "house", "star", "grid")}
    for graph, label in zip(graphs_of(five), five.labels[:, 0].astype(int).tolist(), strict=True):
        motif = nx.Graph(MOTIFS[five.classes["motif"][label]])
        found = False
        for one, other in nx.bridges(graph):
            cut = graph.copy()
            cut.remove_edge(one, other)
            parts = [cut.subgraph(part) for part in nx.connected_components(cut)]
            found = found or any(nx.is_isomorphic(part, motif) for part in parts)
        assert found


def test_motifs_are_what_their_names_say() -> None:
    expected = {
        "cycle": nx.cycle_graph(5),
        "clique": nx.complete_graph(4),
        "house": nx.house_graph(),
        "star": nx.star_graph(5),
        "grid": nx.grid_2d_graph(2, 3),
    }
    assert set(expected) == set(MOTIFS)
    for name, edges in MOTIFS.items():
        assert nx.is_isomorphic(nx.Graph(edges), expected[name])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_numbers_of_nodes_and_edges_are_the_same_for_every_class(classes: int) -> None:
    collection = motifs(60 * classes, classes=classes)
    assert collection.labels is not None
    numbers = np.stack([np.diff(collection.node_ptr), np.diff(collection.edge_ptr)], axis=1)
    each = [
        sorted(map(tuple, numbers[collection.labels[:, 0] == label].tolist())) for label in range(classes)
    ]
    assert all(one == each[0] for one in each)
    assert len(set(each[0])) > 5


def test_size_is_about_what_is_asked_for() -> None:
    sizes = np.diff(motifs(400, nodes=40).node_ptr)
    assert (sizes.min(), sizes.max()) == (30, 50)


def test_smallest_and_large_graphs_work() -> None:
    motifs(500, classes=5, nodes=14).check()
    motifs(3, nodes=5000).check()


def test_a_seed_gives_the_same_graphs_in_any_number() -> None:
    assert motifs(3000, seed=4)[:70] == motifs(70, seed=4)
    assert motifs(3000, seed=4)[2100:2200] == motifs(2200, seed=4)[2100:]
    assert motifs(70, seed=5) != motifs(70, seed=4)


def test_node_order_does_not_tell_where_the_motif_is() -> None:
    collection = motifs(400, classes=2)
    first = collection.node_ptr[:-1]
    last = collection.node_ptr[1:] - 1
    assert abs(float(collection.degrees[first].mean() - collection.degrees[last].mean())) < 0.4


def test_sources_and_options() -> None:
    assert accepts_motifs("motifs")
    assert accepts_motifs("motifs:30")
    for other in ("motif", "motifsy", None, 3, ["motifs"]):
        assert not accepts_motifs(other)
    read = READERS.get("motifs").read
    assert len(read("motifs")) == 200
    assert read("motifs:30", seed=2) == motifs(30, seed=2) == read("motifs", graphs=30, seed=2)
    assert read("motifs:30", name="mine").name == "mine"
    check_arguments(read_motifs, {"graphs": 3, "classes": 2, "nodes": 20, "seed": 1}, "motifs")


@pytest.mark.parametrize("source", ["motifs:", "motifs:many", "motifs:-3", "motifs:1.5", "motifs:²"])
def test_a_source_without_a_number_is_refused(source: str) -> None:
    with pytest.raises(DataError, match="how many graphs"):
        read_motifs(source)


def test_two_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="30 graphs, the option graphs for 40"):
        read_motifs("motifs:30", graphs=40)
    with pytest.raises(DataError, match="int"):
        read_motifs(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"classes": 1}, "classes"),
        ({"classes": 6}, "classes"),
        ({"nodes": 13}, "nodes"),
        ({"graphs": 0}, "graphs"),
    ],
)
def test_settings_out_of_range_are_named(options: dict[str, int], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        motifs(**options)


@pytest.mark.slow
def test_a_hundred_thousand_graphs_take_seconds() -> None:
    import time

    start = time.perf_counter()
    motifs(100_000).check()
    assert time.perf_counter() - start < 30
