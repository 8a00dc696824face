"""Molecule-like graphs: their shape, and that graph i never depends on how many there are."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphsc.core.config import check_arguments
from graphsc.core.errors import ConfigError, DataError
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import READERS
from graphsc.data.readers import synthetic as door
from graphsc.data.readers.synthetic import accepts_molecule_like, molecule_like, read_molecule_like


@pytest.fixture(scope="module")
def thousand() -> GraphCollection:
    return molecule_like(1000)


def test_graphs_are_simple_connected_and_undirected(thousand: GraphCollection) -> None:
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


def test_every_ring_is_of_five_or_six_or_made_of_such(thousand: GraphCollection) -> None:
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
    np.testing.assert_allclose(share, list(door.ATOMS.values()), atol=0.01)
    assert share.min() > 0
    assert abs(sum(door.ATOMS.values()) - 1) < 1e-9
    assert abs(sum(door.BONDS.values()) - 1) < 1e-9


def test_both_directions_of_a_bond_are_of_one_type(thousand: GraphCollection) -> None:
    for graph in thousand[:50].graphs():
        kind = {
            (one, other): code
            for one, other, code in zip(
                *graph.edge_index.tolist(), graph.edges.codes[:, 0].tolist(), strict=True
            )
        }
        assert all(kind[other, one] == code for (one, other), code in kind.items())


def test_a_seed_gives_the_same_graphs_in_any_number(
    thousand: GraphCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = molecule_like(9000)
    many.check()
    assert many[:1000] == thousand
    assert molecule_like(8500)[4000:] == many[4000:8500]
    monkeypatch.setattr(door, "BLOCKS_AT_ONCE", 1)
    in_parts = molecule_like(9000)
    in_parts.check()
    assert in_parts == many
    assert in_parts.ids.tolist() == list(range(9000))
    assert molecule_like(1000, seed=1) != thousand


def test_sources_and_options() -> None:
    assert accepts_molecule_like("molecule-like")
    assert accepts_molecule_like("molecule-like:30")
    for other in ("molecule", "molecule-likely:3", None, 3):
        assert not accepts_molecule_like(other)
    read = READERS.get("molecule_like").read
    assert read("molecule-like:30", seed=2) == molecule_like(30, seed=2)
    assert read("molecule-like", graphs=30, features="degree").features.name == "degree"
    check_arguments(read_molecule_like, {"graphs": 3, "seed": 1}, "molecule-like")


def test_numbers_that_make_no_sense_are_refused() -> None:
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
