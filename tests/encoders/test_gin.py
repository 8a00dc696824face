"""GIN against the same network built from PyG's parts, weight for weight."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.nn import GINConv, global_add_pool, global_max_pool, global_mean_pool

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders import Gin

POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


def reference(gin: Gin, batch: GraphBatch, norm: str, readout: str, layers: str) -> torch.Tensor:
    """The GraphCL encoder with PyG's GINConv and dense one-hot features."""
    x = batch.dense_x()
    pooled = []
    for block in gin.blocks:
        weight = block.first.weight.T if hasattr(block.first, "features") else block.first.weight
        mlp = nn.Sequential(nn.Linear(*weight.T.shape), nn.ReLU(), nn.Linear(*block.second.weight.T.shape))
        conv = GINConv(mlp, eps=0.0)
        # After GINConv is built, which initialises the weights of its network.
        mlp[0].load_state_dict({"weight": weight, "bias": block.bias})
        mlp[2].load_state_dict(block.second.state_dict())
        x = conv(x, batch.edge_index)
        norm_layer = nn.BatchNorm1d(x.shape[1])
        if norm == "before":
            x = norm_layer(x).relu()
        elif norm == "after":
            x = norm_layer(x.relu())
        else:
            x = x.relu()
        pooled.append(POOLS[readout](x, batch.batch, batch.num_graphs))
    if layers == "concat":
        return torch.cat(pooled, dim=1)
    return pooled[-1] if layers == "last" else sum(pooled)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("floats", [0, 2])
@pytest.mark.parametrize(
    ("norm", "readout", "layers"),
    [("after", "sum", "concat"), ("before", "mean", "last"), ("none", "max", "sum")],
)
def test_equals_pyg_parts(make_collection, norm, readout, layers, floats, undirected):
    batch = GraphBatch.of(make_collection(3, undirected=undirected, floats=floats))
    torch.manual_seed(1)
    gin = Gin(batch.features, depth=2, width=8, norm=norm, readout=readout, layers=layers)
    torch.testing.assert_close(gin(batch), reference(gin, batch, norm, readout, layers), atol=1e-5, rtol=1e-5)


def test_the_default_concatenates_three_layers_of_32(make_collection):
    batch = GraphBatch.of(make_collection())
    gin = Gin(batch.features)
    assert gin.dimensions == 96
    assert gin(batch).shape == (6, 96)
    assert gin.nodes(batch).shape == (batch.num_nodes, 96)


def test_weights_are_xavier_uniform_and_biases_zero(make_collection):
    torch.manual_seed(0)
    gin = Gin(make_collection().features, width=200)
    for block in gin.blocks:
        fan = sum(block.first.weight.shape)
        bound = (6 / fan) ** 0.5
        largest = float(block.first.weight.detach().abs().max())
        assert 0.9 * bound < largest <= bound
        assert not block.bias.any()
        assert not block.second.bias.any()


def test_embeddings_do_not_depend_on_node_order(make_collection):
    collection = make_collection(5, graphs=1)
    batch = GraphBatch.of(collection)
    permutation = torch.randperm(batch.num_nodes, generator=torch.Generator().manual_seed(0))
    inverse = torch.argsort(permutation)
    edges = inverse[batch.edge_index]
    order = torch.argsort(edges[1] * batch.num_nodes + edges[0])
    rowptr = torch.zeros(batch.num_nodes + 1, dtype=torch.int32)
    rowptr[1:] = torch.bincount(edges[1], minlength=batch.num_nodes).cumsum(0)
    permuted = GraphBatch(
        codes=batch.codes[permutation],
        floats=batch.floats[permutation],
        rowptr=rowptr,
        source=edges[0][order].int(),
        ptr=batch.ptr,
        features=batch.features,
        undirected=batch.undirected,
    )
    gin = Gin(batch.features).eval()
    torch.testing.assert_close(gin(batch), gin(permuted), atol=1e-5, rtol=1e-5)


def test_edge_weights_of_zero_equal_no_edges(make_collection):
    batch = GraphBatch.of(make_collection(4))
    gin = Gin(batch.features).double()  # BatchNorm amplifies rounding where few rows differ
    silent = replace(batch, edge_weight=torch.zeros(batch.num_edges))
    bare = replace(batch, source=batch.source[:0], rowptr=torch.zeros_like(batch.rowptr), edge_codes=None)
    torch.testing.assert_close(gin(silent), gin(bare))


def test_replaced_features_are_encoded(make_collection):
    batch = GraphBatch.of(make_collection(2))
    noise = torch.randn(2, batch.features.width)
    noisy = replace(batch, replaced=torch.tensor([0, 3]), replacement=noise)
    gin = Gin(batch.features, depth=1, norm="none")
    torch.testing.assert_close(gin(noisy), reference(gin, noisy, "none", "sum", "concat"))


def test_other_features_are_refused(make_collection):
    collection = make_collection()
    gin = Gin(collection.features)
    with pytest.raises(ConfigError, match="'labels' against 'degree'"):
        gin(GraphBatch.of(collection.with_features("degree")))


@pytest.mark.parametrize("settings", [{"depth": 0}, {"width": 0}])
def test_sizes_below_one_are_refused(make_collection, settings):
    with pytest.raises(ConfigError, match="at least 1"):
        Gin(make_collection().features, **settings)


def test_gradient_reaches_every_weight(make_collection):
    batch = GraphBatch.of(make_collection(7, graphs=12))
    gin = Gin(batch.features)
    (gin(batch) ** 2).sum().backward()
    for name, parameter in gin.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("norm", ["after", "before", "none"])
def test_encoding_batches_in_one_pass_equals_separate_passes(make_collection, norm):
    batches = [GraphBatch.of(make_collection(seed)) for seed in (1, 2, 3)]
    torch.manual_seed(0)
    one = Gin(batches[0].features, norm=norm)
    other = copy.deepcopy(one)
    together = one.encode_batches(batches)
    apart = [other(batch) for batch in batches]
    for left, right in zip(together, apart, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-4)
    # BatchNorm's running statistics are updated batch by batch in both cases.
    for name, value in one.named_buffers():
        torch.testing.assert_close(value, dict(other.named_buffers())[name], rtol=1e-4, atol=1e-5)
