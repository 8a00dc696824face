"""PyG modules as encoders."""

import networkx as nx
import pytest
import torch
from torch import nn
from torch_geometric.nn import GCN, GINConv, global_mean_pool

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders import PygEncoder


def test_the_output_of_a_node_level_module_is_pooled(make_collection):
    batch = GraphBatch.of(make_collection())
    module = GCN(batch.features.width, 8, 2, 4)
    module.eval()
    encoder = PygEncoder(module, 4, readout="mean")
    expected = global_mean_pool(module(batch.x, batch.edge_index), batch.batch)
    torch.testing.assert_close(encoder(batch), expected)


def test_the_output_of_a_graph_level_module_is_returned_unchanged(make_collection):
    class Whole(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv = GINConv(nn.Linear(width, 5))

        def forward(self, x, edge_index, batch):
            return global_mean_pool(self.conv(x, edge_index), batch)

    batch = GraphBatch.of(make_collection())
    encoder = PygEncoder(Whole(batch.features.width), 5)
    assert encoder(batch).shape == (batch.num_graphs, 5)


def test_wrong_dimensions_are_refused(make_collection):
    batch = GraphBatch.of(make_collection())
    encoder = PygEncoder(GCN(batch.features.width, 8, 1), 3)
    with pytest.raises(ConfigError, match="3 dimensions"):
        encoder(batch)


def test_a_single_node_in_training_mode():
    """torch's BatchNorm raises an error for one row."""
    batch = GraphBatch.of(open_collection([nx.empty_graph(1)]))
    encoder = PygEncoder(GCN(batch.features.width, 8, 2, 4, norm="batch_norm"), 4)
    rows = encoder(batch)
    assert torch.isfinite(rows).all()
    rows.sum().backward()
