"""Distances against NetworkX, and the parts cut out by them."""

from dataclasses import replace

import networkx
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views.subgraph import hops, mask_of, parts_of, random_nodes


@pytest.mark.parametrize("most", [0, 1, 3, 20])
@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_distances_are_networkx(most, kind):
    graphs = [
        networkx.gnp_random_graph(12, 0.15, seed=s, directed=kind is networkx.DiGraph) for s in range(6)
    ]
    batch = GraphBatch.of(open_collection(graphs))
    start = random_nodes(batch, torch.Generator().manual_seed(0))
    assert torch.equal(batch.batch[start], torch.arange(6))
    found = hops(batch, start, most)
    for g, graph in enumerate(graphs):
        near = networkx.single_source_shortest_path_length(graph, int(start[g]) - 12 * g, cutoff=most)
        assert found[12 * g : 12 * g + 12].tolist() == [near.get(node, most + 1) for node in range(12)]


def test_nodes_are_drawn_uniformly(make):
    batch = make([(3, []), (0, []), (2, [])])
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([random_nodes(batch, generator) for _ in range(3000)])
    assert draws.shape == (3000, 2)  # none of the graph without nodes
    for column, nodes in zip(draws.T, ([0, 1, 2], [3, 4]), strict=True):
        shares = [(column == node).double().mean().item() for node in nodes]
        assert shares == pytest.approx([1 / len(nodes)] * len(nodes), abs=0.05)


def test_parts_keep_their_edges_and_lose_whole_graphs(make):
    path = [(0, 1), (1, 2), (2, 3)]
    batch = replace(make([(4, path), (2, [(0, 1)]), (4, path)]), y=torch.tensor([[5.0], [6.0], [7.0]]))
    nodes = mask_of(batch, torch.tensor([1, 2, 4, 7, 8, 9]))
    parts = parts_of(batch, nodes, torch.tensor([True, False, True]))
    assert parts.ptr.tolist() == [0, 2, 5]
    assert parts.edge_index.tolist() == [[1, 0, 3, 2, 4, 3], [0, 1, 2, 3, 3, 4]]
    assert parts.codes[:, 0].tolist() == [1, 2, 1, 2, 3]  # their names in their graphs
    assert parts.y.flatten().tolist() == [5.0, 7.0]
    assert parts.index.tolist() == [0, 2]
