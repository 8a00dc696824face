"""Planted motifs and molecule-like graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, DataError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import READERS, synthetic
from graphsc.data.readers.synthetic import (
    MOTIFS,
    accepts_molecule_like,
    accepts_motifs,
    check_count,
    molecule_like,
    motifs,
    read_molecule_like,
    read_motifs,
    requested_count,
    with_reverse,
)


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


def test_every_graph_holds_its_motif_attached_by_one_edge(five: GraphCollection) -> None:
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


def test_size_is_about_the_requested_one() -> None:
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


# Molecule-like graphs


@pytest.fixture(scope="module")
def thousand() -> GraphCollection:
    return molecule_like(1000)


def test_molecule_like_graphs_are_simple_connected_and_undirected(thousand: GraphCollection) -> None:
    thousand.check()
    statistics = thousand.describe()
    assert thousand.undirected
    assert (statistics.self_loops, statistics.duplicate_edges, statistics.isolated_nodes) == (0, 0, 0)
    assert thousand.labels is None
    for graph in thousand[:200].graphs():
        assert nx.is_connected(nx.Graph(graph.edge_index.T.tolist()))


def test_sizes_degrees_and_rings_are_those_of_molecules(thousand: GraphCollection) -> None:
    sizes = np.diff(thousand.node_ptr)
    assert 22 < sizes.mean() < 24
    assert 4 < sizes.std() < 6
    assert thousand.degrees.max() == 4
    rings = np.diff(thousand.edge_ptr) // 2 - sizes + 1
    assert 1.5 < rings.mean() < 3.5
    assert rings.max() <= 4


def test_every_ring_is_of_five_or_six_or_composed_of_such(thousand: GraphCollection) -> None:
    lengths = set()
    for graph in thousand[:200].graphs():
        made = nx.Graph(graph.edge_index.T.tolist())
        if made.number_of_edges() == made.number_of_nodes():
            lengths.update(len(cycle) for cycle in nx.cycle_basis(made))
    assert lengths == {5, 6}


def test_types_are_skewed_and_all_in_use(thousand: GraphCollection) -> None:
    (atom,) = thousand.nodes.columns
    (bond,) = thousand.edges.columns
    assert (atom.cardinality, bond.cardinality) == (9, 4)
    share = np.bincount(thousand.nodes.codes[:, 0], minlength=9) / thousand.num_nodes
    np.testing.assert_allclose(share, list(synthetic.ATOMS.values()), atol=0.01)
    assert share.min() > 0
    assert abs(sum(synthetic.ATOMS.values()) - 1) < 1e-9
    assert abs(sum(synthetic.BONDS.values()) - 1) < 1e-9


def test_both_directions_of_a_bond_are_of_one_type(thousand: GraphCollection) -> None:
    for graph in thousand[:50].graphs():
        kind = {
            (one, other): code
            for one, other, code in zip(
                *graph.edge_index.tolist(), graph.edges.codes[:, 0].tolist(), strict=True
            )
        }
        assert all(kind[other, one] == code for (one, other), code in kind.items())


def test_molecule_like_a_seed_gives_the_same_graphs_in_any_number(
    thousand: GraphCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = molecule_like(9000)
    many.check()
    assert many[:1000] == thousand
    assert molecule_like(8500)[4000:] == many[4000:8500]
    monkeypatch.setattr(synthetic, "BLOCKS_AT_ONCE", 1)
    in_parts = molecule_like(9000)
    in_parts.check()
    assert in_parts == many
    assert in_parts.ids.tolist() == list(range(9000))
    assert molecule_like(1000, seed=1) != thousand


def test_molecule_like_sources_and_options() -> None:
    assert accepts_molecule_like("molecule-like")
    assert accepts_molecule_like("molecule-like:30")
    for other in ("molecule", "molecule-likely:3", None, 3):
        assert not accepts_molecule_like(other)
    read = READERS.get("molecule_like").read
    assert read("molecule-like:30", seed=2) == molecule_like(30, seed=2)
    assert read("molecule-like", graphs=30, features="degree").features.name == "degree"
    check_arguments(read_molecule_like, {"graphs": 3, "seed": 1}, "molecule-like")


def test_invalid_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="write molecule-like:1000"):
        read_molecule_like("molecule-like:x")
    with pytest.raises(ConfigError, match="number of graphs"):
        read_molecule_like("molecule-like:0")
    with pytest.raises(ConfigError, match="number of graphs"):
        molecule_like(10**11)


@pytest.mark.slow
def test_a_million_graphs_take_less_than_two_minutes() -> None:
    import time

    start = time.perf_counter()
    collection = molecule_like(1_000_000)
    assert time.perf_counter() - start < 120
    assert len(collection) == 1_000_000


# Helpers of both generators


@pytest.mark.parametrize(
    ("source", "option", "expected"),
    [("motifs", None, 7), ("motifs:30", None, 30), ("motifs", 40, 40), ("motifs:30", 30, 30)],
)
def test_the_count_is_the_sources_the_options_or_the_default(
    source: str, option: int | None, expected: int
) -> None:
    assert requested_count(source, option, 7) == expected


def test_a_number_out_of_range_is_refused() -> None:
    check_count(1)
    check_count(100_000_000)
    for number in (0, 100_000_001):
        with pytest.raises(ConfigError, match="number of graphs must be from 1 to 100,000,000"):
            check_count(number)


def test_reverse_edges_keep_the_edges_of_a_graph_together() -> None:
    ends = with_reverse(np.array([1, 2, 3]), np.array([7, 8, 9]), np.array([2, 0, 1]))
    assert ends.tolist() == [1, 2, 7, 8, 3, 9]
