"""GINE, GCN, GAT, GraphSAGE and GPS: their layers by dense formulas, and what every encoder must keep."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphsc import GraphBatch, GraphEmbedder, open_collection
from graphsc.core.errors import ConfigError, DataError
from graphsc.encoders import ENCODERS, ignored_inputs, reads_edges
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.registry import default_encoder
from graphsc.training.train import model_of, train
from graphsc.training.trainer import TrainSettings

NAMES = ("gine", "gcn", "gat", "graphsage", "gps")
WITH_EDGES = ("gine", "gat", "gps")


def graph(nodes, seed):
    """A random graph with two node columns, an edge column, an edge attribute and weights."""
    rng = np.random.default_rng(seed)
    edges = np.array(nx.connected_watts_strogatz_graph(nodes, 2, 0.6, seed=seed).to_directed().edges).T
    count = edges.shape[1]
    return Data(
        x=torch.from_numpy(rng.integers(0, 4, (nodes, 2))),
        edge_index=torch.from_numpy(edges.astype(np.int64)),
        edge_attr=torch.from_numpy(rng.integers(0, 3, (count, 1))),
        edge_weight=torch.from_numpy(rng.random(count)).float() + 0.5,
    )


@pytest.fixture(scope="module")
def collection():
    graphs = [graph(nodes, seed) for seed, nodes in enumerate((5, 9, 4, 12, 7, 6))]
    return open_collection(graphs).with_edge_features()


def make(name, collection, **settings):
    torch.manual_seed(3)
    return ENCODERS.get(name)(collection.features, **settings)


def dense(batch, weight=None):
    """N x N: entry (i, j) is the weight of the edge from j to i."""
    matrix = torch.zeros(batch.num_nodes, batch.num_nodes)
    matrix[batch.destination.long(), batch.source.long()] = (
        torch.ones(batch.num_edges) if weight is None else weight
    )
    return matrix


def one_layer(name, collection):
    encoder = make(name, collection, depth=1, width=8, norm="none", activate_last=False).eval()
    batch = GraphBatch.of(collection)
    x = batch.dense_x() @ encoder.embed_nodes.weight
    return encoder, batch, x, encoder.nodes(batch), encoder.blocks[0]


def edge_rows(encoder, batch):
    one_hot = torch.nn.functional.one_hot(batch.edge_codes[:, 0], 3).float()
    return one_hot @ encoder.embed_edges.weight


def test_gcn_is_the_normalised_adjacency(collection):
    _, batch, x, rows, layer = one_layer("gcn", collection)
    adjacency = dense(batch, batch.edge_weight) + torch.eye(batch.num_nodes)
    scale = adjacency.sum(1).rsqrt()
    expected = (scale[:, None] * adjacency * scale) @ (x @ layer.lin.weight.T) + layer.bias
    torch.testing.assert_close(rows, expected)


def test_graphsage_is_a_map_of_the_node_and_one_of_the_mean(collection):
    _, batch, x, rows, layer = one_layer("graphsage", collection)
    adjacency = dense(batch)
    mean = adjacency @ x / adjacency.sum(1, keepdim=True)
    torch.testing.assert_close(rows, layer.lin_l(mean) + layer.lin_r(x))


def test_gine_adds_the_edge_to_each_neighbour(collection):
    encoder, batch, x, rows, layer = one_layer("gine", collection)
    edges, total = edge_rows(encoder, batch), x.clone()
    for number, (source, destination) in enumerate(batch.edge_index.T.tolist()):
        total[destination] = total[destination] + (x[source] + edges[number]).relu()
    first, _, second = layer.nn
    torch.testing.assert_close(rows, second(first(total).relu()))


def test_gat_attends_to_neighbours_and_edges(collection):
    encoder, batch, x, rows, layer = one_layer("gat", collection)
    mapped = (x @ layer.lin.weight.T).view(-1, 4, 2)
    edges = edge_rows(encoder, batch)
    # A self-loop has the mean of a node's edges.
    loops = torch.stack([edges[batch.destination == node].mean(0) for node in range(batch.num_nodes)])
    ends = torch.cat([batch.edge_index, torch.arange(batch.num_nodes).repeat(2, 1)], 1)
    of_edge = (torch.cat([edges, loops]) @ layer.lin_edge.weight.T).view(-1, 4, 2)
    expected = torch.zeros_like(mapped)
    for node in range(batch.num_nodes):
        into = (ends[1] == node).nonzero().flatten()
        score = (mapped[ends[0, into]] * layer.att_src[0]).sum(-1) + (mapped[node] * layer.att_dst[0]).sum(-1)
        score = torch.nn.functional.leaky_relu(score + (of_edge[into] * layer.att_edge[0]).sum(-1), 0.2)
        expected[node] = (score.softmax(0)[..., None] * mapped[ends[0, into]]).sum(0)
    torch.testing.assert_close(rows, expected.view(-1, 8) + layer.bias)


def test_gps_attends_within_each_graph_alone(collection):
    encoder = make("gps", collection, depth=1, width=8, norm="none", activate_last=False).eval()
    alone = torch.cat([encoder.nodes(GraphBatch.gather(collection, np.array([k]))) for k in range(6)])
    torch.testing.assert_close(encoder.nodes(GraphBatch.of(collection)), alone, rtol=1e-4, atol=1e-5)
    layer, batch = encoder.blocks[0], GraphBatch.gather(collection, np.array([3]))
    x = batch.dense_x() @ encoder.embed_nodes.weight
    local = layer.norm1(layer.conv(x, batch.edge_index, edge_attr=edge_rows(encoder, batch)) + x)
    attended = layer.norm2(layer.attn(x[None], x[None], x[None], need_weights=False)[0][0] + x)
    both = local + attended
    torch.testing.assert_close(encoder.nodes(batch), layer.norm3(both + layer.mlp(both)))


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_do_not_depend_on_node_order_or_batch(collection, name):
    encoder = make(name, collection)
    reestimate_batchnorm(encoder, collection)
    rows = embed(encoder, collection)
    for index in range(6):
        np.testing.assert_allclose(
            embed(encoder, collection[index]), rows[index : index + 1], rtol=1e-3, atol=1e-3
        )
    data = collection.to_pyg()[3]
    order = torch.from_numpy(np.random.default_rng(0).permutation(data.num_nodes))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    moved = data.clone()
    moved.x, moved.edge_index = data.x[order], place[data.edge_index]
    again = open_collection([moved]).with_features(collection.features)
    np.testing.assert_allclose(embed(encoder, again), rows[3:4], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layers", ["concat", "last", "sum"])
def test_shape_and_gradient_to_every_weight(collection, name, layers):
    encoder = make(name, collection, depth=2, width=8, layers=layers, norm="before")
    rows = encoder(GraphBatch.of(collection))
    assert rows.shape == (6, encoder.dimensions)
    assert encoder.dimensions == (16 if layers == "concat" else 8)
    rows.square().sum().backward()
    without = [key for key, weight in encoder.named_parameters() if weight.grad is None]
    assert without == []


@pytest.mark.parametrize("name", NAMES)
def test_graphs_without_edges_or_nodes_are_finite_in_training(name):
    graphs = [Data(num_nodes=0), Data(num_nodes=3), Data(num_nodes=1), Data(num_nodes=2)]
    collection = open_collection(graphs, allow_empty=True, features="constant")
    encoder = make(name, collection, width=8)
    rows = encoder(GraphBatch.of(collection))
    assert torch.isfinite(rows).all()
    assert (rows[0] == 0).all()
    rows.sum().backward()
    assert all(torch.isfinite(w.grad).all() for w in encoder.parameters() if w.grad is not None)


@pytest.mark.parametrize("name", WITH_EDGES)
def test_another_edge_attribute_gives_another_embedding(collection, name):
    assert reads_edges(name)
    encoder = make(name, collection).eval()
    batch = GraphBatch.of(collection)
    from dataclasses import replace

    other = replace(batch, edge_codes=2 - batch.edge_codes)
    assert not torch.allclose(encoder(batch), encoder(other), rtol=1e-3, atol=1e-3)


def test_what_each_encoder_uses(collection):
    ignored = {name: ignored_inputs(make(name, collection), collection) for name in NAMES}
    assert ignored == {
        "gine": ["edge weights"],
        "gcn": ["edge attributes (edge_attr0)"],
        "gat": ["edge weights"],
        "graphsage": ["edge attributes (edge_attr0)", "edge weights"],
        "gps": ["edge weights"],
    }


@pytest.mark.parametrize("name", ["gat", "gps"])
def test_a_width_that_heads_cannot_share_is_refused(collection, name):
    with pytest.raises(ConfigError, match="30 is not a multiple of 4 heads"):
        make(name, collection, width=30)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_trained_saved_loaded_and_resumed(collection, name, tmp_path):
    collection = collection.with_features("labels")  # training adds the edges where they are used

    def run(epochs, out):
        loop = TrainSettings(epochs=epochs, batch_size=6)
        return train(collection, "graphcl", encoder=name, training=loop, out=tmp_path / out)

    whole = run(2, "whole").model
    run(1, "parts")
    np.testing.assert_array_equal(run(2, "parts").model.embed(collection), whole.embed(collection))
    loaded = model_of(tmp_path / "whole", "cpu")
    np.testing.assert_array_equal(loaded.embed(collection), whole.embed(collection))
    assert loaded.features.has_edges == (name in WITH_EDGES)


@pytest.mark.parametrize(
    # AttrMasking and GCC need an encoder of their own.
    "method",
    [m for m in METHODS if METHODS.get(m).kind == "trained" and m not in ("attrmasking", "gcc")],
)
def test_every_method_trains_every_kind_of_encoder(collection, method):
    """GINE stands for the others: its layers have the same interface."""
    batch = GraphBatch.of(collection)
    built = make_recipe(method, collection, encoder="gine").build(collection.features, 0)
    built.begin(collection, torch.Generator().manual_seed(0))
    views = built.views(batch, torch.Generator().manual_seed(0))
    for player in built.players() if built.trains else ():
        losses = built.objective(built.encode(views, player.name), player.name)
        assert all(torch.isfinite(loss) for loss in losses.values())
    assert built.embed(batch).shape == (6, built.dimensions(collection.features))


def test_labels_of_edges_are_matched_by_value_and_new_ones_refused(collection):
    model = train(collection, "graphcl", encoder="gine", training=TrainSettings(epochs=1)).model
    # A graph with the labels 1 and 2 alone numbers them from 0.
    data = collection.to_pyg()[1]
    expected = model.embed(collection[1])
    edges = data.edge_attr[:, 0] > 0
    del data["graphsc_about"]
    shifted = Data(x=data.x, edge_index=data.edge_index[:, edges], edge_attr=data.edge_attr[edges])
    codes = model.fit_features(open_collection([shifted])).edges.codes
    assert sorted(set(codes[:, 0].tolist())) == [1, 2]
    np.testing.assert_allclose(model.embed(open_collection([data])), expected, rtol=1e-5, atol=1e-5)
    data.edge_attr = data.edge_attr + 5
    with pytest.raises(DataError, match=r"edge label '.' of 'edge_attr0' was never seen"):
        model.embed(open_collection([data]))
    with pytest.raises(DataError, match="0 edge label columns, 1 are needed"):
        model.embed(open_collection([Data(x=data.x, edge_index=data.edge_index)]))


def test_bonds_are_used_by_default_for_molecules_alone():
    pytest.importorskip("rdkit")
    assert default_encoder("graphsc", open_collection(["CCO", "CC=O"])) == "gine"
    assert default_encoder("graphsc", open_collection("mutag")) == "gin"
    assert default_encoder("gcc", open_collection(["CCO", "CC=O"])) == "gin"  # it takes no other
    smiles = ["CCO", "CC=O", "C#N", "c1ccccc1", "CN"] * 4
    embedder = GraphEmbedder(epochs=1, batch_size=10).fit(smiles)
    assert embedder.model_.recipe.encoder == "gine"
    assert embedder.n_features_out_ == 96  # as many as gin has
    pair = ["[CH2][CH2]", "C=C"]  # equal atoms and hydrogens
    single, double = embedder.transform(pair)
    assert not np.allclose(single, double)
    # Without bonds the two are the same graph.
    plain = GraphEmbedder(epochs=1, batch_size=10, encoder="gin").fit(smiles)
    np.testing.assert_allclose(*plain.transform(pair))


@pytest.mark.parametrize("name", ["gcn", "gps"])
def test_estimator_and_command_line_take_them_by_name(name, tmp_path, capsys):
    from graphsc.cli.main import run

    graphs = open_collection("motifs:30")
    small = {"encoder.width": 8, "encoder.depth": 1}
    assert GraphEmbedder("graphcl", encoder=name, settings=small, epochs=1).fit_transform(graphs).shape == (
        30,
        8,
    )
    more = ["--encoder", name, "--epochs", "1", "--set", "encoder.width=8"]
    assert run(["train", "motifs:30", *more, "--out", str(tmp_path / "run")]) == 0
    assert run(["evaluate", str(tmp_path / "run"), "--folds", "3", "--jobs", "1"]) == 0
    places = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    options = ["--methods", "wl,untrained", "--seeds", "1", "--folds", "3", "--jobs", "1"]
    assert run(["compare", "motifs:30", *options, *more, *places]) == 0
    assert f"note: wl has no encoder; {name} is ignored" in capsys.readouterr().err
