"""Edge weights and positions: from PyG to an encoder, aligned with their edges and nodes on the way."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from graphsc import GraphBatch, GraphCollection, open_collection
from graphsc.core.errors import DataError, GraphscWarning
from graphsc.data.batch import join
from graphsc.data.readers.networkx import to_networkx
from graphsc.encoders import Gin, PygEncoder
from graphsc.methods import make_recipe
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings
from graphsc.views import VIEWS


def weighted(nodes, seed):
    """A random connected graph. The weight of an edge is 10 u + v + 0.5, the position of a node (u, -u)."""
    graph = nx.connected_watts_strogatz_graph(nodes, 4, 0.5, seed=seed)
    edges = np.array(graph.to_directed().edges, np.int64).T
    edges = edges[:, np.random.default_rng(seed).permutation(edges.shape[1])]
    return Data(
        x=torch.arange(nodes)[:, None],
        edge_index=torch.from_numpy(edges),
        edge_weight=torch.from_numpy(10.0 * edges[0] + edges[1] + 0.5).float(),
        edge_attr=torch.from_numpy(edges[1])[:, None],
        pos=torch.stack([torch.arange(nodes), -torch.arange(nodes)], 1).float(),
        y=torch.tensor([seed % 2]),
    )


GRAPHS = [weighted(nodes, seed) for seed, nodes in enumerate((8, 11, 9, 14))]


@pytest.fixture(scope="module")
def collection():
    return open_collection(GRAPHS)


def check_aligned(batch, *, added=False):
    """Every position and weight is that of its node and edge, which the features name."""
    node = batch.codes[:, 0]
    torch.testing.assert_close(batch.pos, torch.stack([node, -node], 1).float())
    source, destination = batch.edge_index
    expected = 10.0 * node[source] + node[destination] + 0.5
    kept = batch.edge_weight != 1.0
    torch.testing.assert_close(batch.edge_weight[kept], expected[kept].float())
    assert added or bool(kept.all())


def test_they_are_read_and_sorted_with_their_edges(collection):
    collection.check()
    check_aligned(GraphBatch.of(collection))


@pytest.mark.parametrize("name", [name for name in VIEWS if "mask" not in name])
def test_every_view_keeps_them_aligned(collection, name):
    generator = torch.Generator().manual_seed(3)
    view = VIEWS.get(name)()(GraphBatch.of(collection), 0.3, generator)
    check_aligned(view, added="perturb" in name)


def test_masked_nodes_keep_their_positions(collection):
    batch = GraphBatch.of(collection)
    view = VIEWS.get("mask-attributes")()(batch, 0.5, torch.Generator().manual_seed(0))
    assert view.pos is batch.pos
    assert view.edge_weight is batch.edge_weight


def test_subsets_joins_and_files_keep_them(collection, tmp_path):
    collection.save(tmp_path / "g.safetensors")
    opened = GraphCollection.open(tmp_path / "g.safetensors")
    assert opened == collection
    assert opened.content_hash == collection.content_hash
    check_aligned(GraphBatch.of(opened[[3, 1]]))
    check_aligned(GraphBatch.of(opened[1:3]))
    check_aligned(GraphBatch.of(GraphCollection.concatenate([opened[2:], opened[:2]])))
    first, rest = GraphBatch.gather(opened, np.array([0])), GraphBatch.gather(opened, np.array([1, 2, 3]))
    check_aligned(join([first, rest]))
    assert opened != open_collection(
        [Data(**{**g.to_dict(), "edge_weight": g.edge_weight + 1}) for g in GRAPHS]
    )


def test_they_go_back_to_pyg_and_to_networkx(collection):
    for ours, theirs in zip(collection.to_pyg(), GRAPHS, strict=True):
        order = np.lexsort(theirs.edge_index.numpy())
        torch.testing.assert_close(ours.edge_weight, theirs.edge_weight[order])
        torch.testing.assert_close(ours.pos, theirs.pos)
    assert open_collection(collection.to_pyg()) == collection
    graph = to_networkx(collection)[0]
    assert all(data["weight"] == 10 * u + v + 0.5 for u, v, data in graph.edges(data=True))
    assert all((data["pos0"], data["pos1"]) == (u, -u) for u, data in graph.nodes(data=True))


def test_graphs_without_weights_have_the_hash_they_had_before_there_were_any():
    assert open_collection("mutag").content_hash.startswith("18b42ddc6696b321")


def test_a_batch_of_pyg_carries_them_too(collection):
    assert GraphCollection.from_pyg(Batch.from_data_list(GRAPHS)) == collection


def test_a_graph_without_weights_among_others_has_ones():
    plain = Data(**{key: value for key, value in GRAPHS[0].to_dict().items() if key != "edge_weight"})
    collection = open_collection([plain, GRAPHS[1]])
    assert (collection[0].edge_weight == 1).all()
    assert (collection[1].edge_weight != 1).all()


def test_keys_that_cannot_be_carried_are_named():
    graphs = [Data(x=torch.ones(2, 3), z=torch.ones(2), smiles="C") for _ in range(2)]
    with pytest.warns(GraphscWarning, match="the PyG keys smiles, z are not carried"):
        collection = open_collection(graphs)
    assert any("smiles, z" in note for note in collection.notes)


def test_positions_of_some_graphs_are_named_as_lost():
    with pytest.warns(GraphscWarning, match=r"keys pos are not carried.*pos if all graphs have it"):
        assert open_collection([Data(pos=torch.zeros(2, 3)), Data(num_nodes=2)]).pos is None


@pytest.mark.parametrize("key", ["pos", "edge_weight"])
def test_one_that_is_not_finite_is_refused(key):
    values = GRAPHS[0].to_dict()
    values[key] = values[key].clone()
    values[key][1] = float("nan")
    with pytest.raises(DataError, match=f"{key}.*is not a finite number"):
        open_collection([Data(**values)])


def test_several_weights_per_edge_are_refused():
    values = {**GRAPHS[0].to_dict(), "edge_weight": GRAPHS[0].edge_weight[:, None].repeat(1, 2)}
    with pytest.raises(DataError, match="2 numbers per edge"):
        open_collection([Data(**values)])


def test_gin_weighs_neighbours_by_them(collection):
    batch = GraphBatch.of(collection)
    encoder = Gin(collection.features, depth=1, norm="none", layers="last").eval()
    layer = encoder.blocks[0]
    dense = torch.zeros(batch.num_nodes, batch.num_nodes)
    dense[batch.destination.long(), batch.source.long()] = batch.edge_weight
    hidden = (batch.x + dense @ batch.x) @ layer.first.weight + layer.bias
    torch.testing.assert_close(encoder.nodes(batch), layer.second(hidden.relu()).relu(), rtol=1e-4, atol=1e-3)


class Positions(nn.Module):
    def forward(self, x, edge_index, pos, edge_weight):
        return torch.cat(
            [pos, edge_weight.new_zeros(len(x), 1).index_add(0, edge_index[1], edge_weight[:, None])], 1
        )


def test_a_pyg_module_gets_what_it_takes(collection):
    batch = GraphBatch.of(collection)
    rows = PygEncoder(Positions(), 3)(batch)
    for row, graph in zip(rows, GRAPHS, strict=True):
        torch.testing.assert_close(row, torch.cat([graph.pos.sum(0), graph.edge_weight.sum()[None]]))


def test_adgcl_multiplies_its_own_weights_with_them(collection):
    batch = GraphBatch.of(collection)
    method = make_recipe("adgcl", collection).build(collection.features, 0)
    seen = []
    method.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].edge_weight))
    torch.manual_seed(0)
    method.encode({"anchor": batch}, "view")
    torch.manual_seed(0)
    drawn, _ = method.view_learner(batch)
    torch.testing.assert_close(seen[-1], drawn * batch.edge_weight)


class Lines:
    """A reporter that keeps its lines."""

    def __new__(cls):
        from graphsc.training.callbacks import Reporter

        reporter = Reporter()
        reporter.lines = []
        reporter.log = reporter.lines.append
        return reporter


def test_a_run_says_what_its_encoder_does_not_use(collection):
    reporter = Lines()
    train(collection, "graphcl", training=TrainSettings(epochs=1), reporter=reporter)
    notes = [line for line in reporter.lines if line.startswith("note")]
    assert notes == [
        "note: the encoder gin does not use the edge attributes (edge_attr0); gine does",
        "note: the encoder gin does not use the positions",
    ]


def test_a_run_says_what_its_reader_left_out():
    with pytest.warns(GraphscWarning):
        graphs = open_collection([Data(x=torch.ones(3, 1), z=torch.ones(3)) for _ in range(8)])
    reporter = Lines()
    train(graphs, "raw", reporter=reporter)
    assert any("note: the PyG keys z are not carried" in line for line in reporter.lines)


def test_the_estimator_takes_a_list_with_all_of_them():
    from graphsc import GraphEmbedder

    embedder = GraphEmbedder("graphcl", encoder="gine", epochs=1, batch_size=4)
    rows = embedder.fit_transform(GRAPHS)
    assert rows.shape == (4, 96)
    np.testing.assert_allclose(embedder.transform(GRAPHS), rows, rtol=1e-4, atol=1e-4)
