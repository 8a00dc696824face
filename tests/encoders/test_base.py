"""Node and graph embeddings from one pass equal those of two."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.columns import FeatureTable
from graphsc.data.features import resolve_scheme
from graphsc.data.molecules.featurize import ATOM, BOND, CHIRALITY, DIRECTION
from graphsc.data.readers import open_collection
from graphsc.encoders import Gin, MoleculeGin, PygEncoder
from graphsc.encoders.base import check_node_level, node_width, nodes_and_graphs

LAYERS = ["concat", "last", "sum"]


@pytest.fixture(scope="module")
def batch():
    return GraphBatch.of(open_collection("motifs:5"))


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_gin_in_one_pass(batch, layers, readout):
    encoder = Gin(batch.features, layers=layers, readout=readout).eval()
    nodes, graphs = nodes_and_graphs(encoder, batch)
    torch.testing.assert_close(nodes, encoder.nodes(batch))
    torch.testing.assert_close(graphs, encoder(batch))


@pytest.mark.parametrize("layers", LAYERS)
def test_last_layer_alone(batch, layers):
    encoder = Gin(batch.features, depth=2, width=7, layers=layers).eval()
    nodes, graphs = nodes_and_graphs(encoder, batch, "last")
    torch.testing.assert_close(nodes, encoder.node_layers(batch)[-1])
    torch.testing.assert_close(graphs, encoder(batch))
    assert node_width(encoder) == nodes.shape[1] == 7


@pytest.mark.parametrize("layers", ["last", "concat"])
def test_the_molecule_encoder_in_one_pass(layers):
    graphs = open_collection("molecule-like:5")
    nodes = FeatureTable.of(graphs.num_nodes, np.pad(graphs.nodes.codes, ((0, 0), (0, 1))), [ATOM, CHIRALITY])
    edges = FeatureTable.of(graphs.num_edges, np.pad(graphs.edges.codes, ((0, 0), (0, 1))), [BOND, DIRECTION])
    molecules = replace(graphs, nodes=nodes, edges=edges, features=resolve_scheme("labels", nodes))
    batch = GraphBatch.of(molecules)
    encoder = MoleculeGin(batch.features, depth=2, width=6, layers=layers).eval()
    for wanted in ("joined", "last"):
        rows, graphs = nodes_and_graphs(encoder, batch, wanted)
        expected = encoder.nodes(batch) if wanted == "joined" else encoder.node_layers(batch)[-1]
        torch.testing.assert_close(rows, expected)
        torch.testing.assert_close(graphs, encoder(batch))


def test_a_reinitialised_gin_can_have_another_depth(batch):
    other = Gin(batch.features, depth=3, width=7, readout="mean").reinitialised(depth=2)
    assert (other.depth, other.dimensions, other.readout) == (2, 14, "mean")


class Plain(nn.Module):
    """A PyG module with one row per node, or a single row for all."""

    def __init__(self, inputs, pooled=False):
        super().__init__()
        self.map = nn.Linear(inputs, 4)
        self.pooled = pooled

    def forward(self, x, edge_index):
        rows = self.map(x)
        return rows.sum(0, keepdim=True) if self.pooled else rows


def test_a_pyg_encoder_in_one_pass(batch):
    encoder = PygEncoder(Plain(batch.features.width), 4)
    nodes, graphs = nodes_and_graphs(encoder, batch)
    torch.testing.assert_close(nodes, encoder.nodes(batch))
    torch.testing.assert_close(graphs, encoder(batch))
    assert node_width(encoder) == 4


def test_a_pyg_encoder_that_pools_is_refused(batch):
    with pytest.raises(ConfigError, match="not one each"):
        nodes_and_graphs(PygEncoder(Plain(batch.features.width, pooled=True), 4), batch)


def test_an_encoder_without_node_embeddings_is_refused():
    with pytest.raises(ConfigError, match="Linear gives none"):
        check_node_level(nn.Linear(2, 2))
