"""The fused layers against the same encoder run layer by layer by torch, in double precision."""

import copy
from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch, join
from graphsc.data.readers.networkx import read_networkx
from graphsc.encoders import Gin, fused_gin, gin
from graphsc.encoders.compiled import BLOCK, make_blocks


@pytest.fixture
def fused_calls(monkeypatch):
    """Count the calls of the fused layers."""
    calls = []

    def counted(*arguments):
        calls.append(1)
        return original(*arguments)

    original = gin.fused_gin
    monkeypatch.setattr(gin, "fused_gin", counted)
    return calls


def outputs_of(encoder, batch, parts, nodes):
    return torch.cat(encoder.node_layers(batch, parts), 1) if nodes else encoder(batch, parts)


def check(encoder, batch, parts, nodes=False):
    """Outputs, gradients and running statistics equal those of torch in double precision.

    BatchNorm subtracts means and the readout sums, so a small output is a difference of large numbers. Its
    error is that of single precision at the size of the largest output, whatever its own size is.
    """
    exact = copy.deepcopy(encoder).double()
    outputs = outputs_of(encoder, batch, parts, nodes)
    expected = outputs_of(exact, replace(batch, floats=batch.floats.double()), parts, nodes)
    torch.testing.assert_close(
        outputs.double(), expected, atol=1e-6 * max(float(expected.detach().abs().max()), 10), rtol=1e-4
    )
    # Gradients differ from row to row: BatchNorm cancels what they have in common.
    upstream = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(3))
    outputs.backward(upstream)
    expected.backward(upstream.double())
    for (name, one), other in zip(encoder.named_parameters(), exact.parameters(), strict=True):
        size = float(other.grad.abs().max())
        torch.testing.assert_close(
            one.grad.double(),
            other.grad,
            atol=1e-4 * max(size, 1),
            rtol=1e-4,
            msg=lambda m, n=name: f"{n}: {m}",
        )
    for one, other in zip(encoder.buffers(), exact.buffers(), strict=True):
        torch.testing.assert_close(one.double(), other.double(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("floats", [0, 2])
@pytest.mark.parametrize("norm", ["before", "after"])
def test_equals_the_layers_of_torch(make_collection, fused_calls, nodes, undirected, floats, norm):
    batch = GraphBatch.of(make_collection(1, graphs=200, undirected=undirected, floats=floats))
    torch.manual_seed(0)
    check(Gin(batch.features, norm=norm), batch, None, nodes)
    assert len(fused_calls) == 1  # the reference is in double precision and not fused


@pytest.mark.parametrize("settings", [{"eps": 0.5}, {"activate_last": False}, {"depth": 1}, {"width": 7}])
@pytest.mark.parametrize("norm", ["before", "after"])
def test_equals_the_layers_of_torch_in_other_settings(make_collection, fused_calls, settings, norm):
    batch = GraphBatch.of(make_collection(2, graphs=60))
    torch.manual_seed(0)
    check(Gin(batch.features, norm=norm, **settings), batch, None)
    assert fused_calls


@pytest.mark.parametrize("nodes", [False, True])
def test_parts_are_normalised_separately(make_collection, nodes):
    batches = [GraphBatch.of(make_collection(seed, graphs=40)) for seed in range(3)]
    torch.manual_seed(0)
    encoder = Gin(batches[0].features)
    joint, parts = join(batches), [batch.num_nodes for batch in batches]
    separate = copy.deepcopy(encoder)
    expected = torch.cat([outputs_of(separate, batch, None, nodes) for batch in batches])
    torch.testing.assert_close(
        outputs_of(copy.deepcopy(encoder), joint, parts, nodes), expected, atol=1e-5, rtol=1e-4
    )
    check(encoder, joint, parts, nodes)


def test_a_cumulative_average_counts_each_part(make_collection):
    batches = [GraphBatch.of(make_collection(seed, graphs=30)) for seed in range(2)]
    encoder = Gin(batches[0].features, depth=2)
    for block in encoder.blocks:
        block.norm.momentum = None
    check(encoder, join(batches), [batch.num_nodes for batch in batches])
    assert int(encoder.blocks[0].norm.num_batches_tracked) == 2


def test_unused_layers_get_no_gradient_from_their_readout(make_collection):
    batch = GraphBatch.of(make_collection(4, graphs=50))
    torch.manual_seed(0)
    encoder = Gin(batch.features)
    exact = copy.deepcopy(encoder).double()
    # BatchNorm fixes the sum and the sum of squares of its output, so neither has a gradient.
    upstream = torch.randn(batch.num_nodes, encoder.width, dtype=torch.float64)
    for one in (encoder, exact):
        nodes = one.node_layers(batch)[1]
        (nodes * upstream.to(nodes.dtype)).sum().backward()
    assert encoder.blocks[2].second.weight.grad.abs().max() == 0
    expected = exact.blocks[1].second.weight.grad
    assert expected.abs().max() > 1
    torch.testing.assert_close(
        encoder.blocks[1].second.weight.grad.double(),
        expected,
        atol=1e-4 * float(expected.abs().max()),
        rtol=1e-4,
    )


def test_graphs_larger_than_a_block():
    rng = np.random.default_rng(0)
    graphs = [
        networkx.gnm_random_graph(nodes, 3 * nodes, seed=int(rng.integers(99))) for nodes in (900, 5, 1300)
    ]
    collection = read_networkx(graphs)
    batch = GraphBatch.of(collection)
    torch.manual_seed(0)
    check(Gin(batch.features), batch, None)


@pytest.mark.parametrize(
    "change", ["hook", "edge weights", "evaluation", "one node", "double", "wide", "off"]
)
def test_what_cannot_be_fused_is_not(make_collection, fused_calls, monkeypatch, change):
    batch = GraphBatch.of(make_collection(4))
    encoder = Gin(batch.features, width=80 if change == "wide" else 32)
    parts = None
    called = []
    if change == "hook":
        encoder.blocks[1].norm.register_forward_hook(lambda *_: called.append(1))
    elif change == "edge weights":
        batch = replace(batch, edge_weight=torch.ones(batch.num_edges))
    elif change == "evaluation":
        encoder.eval()
    elif change == "one node":
        parts = [batch.num_nodes - 1, 1]
    elif change == "double":
        encoder.double()
    elif change == "off":
        monkeypatch.setattr(gin, "use_compiled", lambda: False)
    assert torch.isfinite(encoder(batch, parts)).all()
    assert not fused_calls
    assert bool(called) == (change == "hook")


def test_blocks_are_runs_of_graphs_of_one_part():
    sizes = np.array([BLOCK - 1, 1, 5, 2 * BLOCK, 3, 0, 4, 9])
    ptr = np.concatenate([[0], sizes.cumsum()])
    part_of = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    # A block ends with the graph that reaches the size, and where a part ends.
    assert make_blocks(ptr, part_of).tolist() == [0, 2, 4, 6, 8]


def test_threads_share_the_blocks(make_collection, monkeypatch):
    monkeypatch.setattr(fused_gin, "MIN_NODES_PER_THREAD", 100)
    batch = GraphBatch.of(make_collection(1, graphs=700))
    torch.manual_seed(0)
    encoder = Gin(batch.features)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        first, second = (copy.deepcopy(encoder) for _ in range(2))
        for one in (first, second):
            one(batch).square().sum().backward()
        check(encoder, batch, None)
    finally:
        torch.set_num_threads(threads)
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)  # the same for the same number of threads
