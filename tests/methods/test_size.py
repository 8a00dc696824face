"""The readout keeps the size of graphs: what a sum over nodes is for."""

import networkx
import numpy as np
import pytest
import torch

from graphsc.core.errors import NotFoundError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.data.readers.networkx import read_networkx
from graphsc.encoders.inference import embed
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def trees():
    """Random trees of 5 to 60 nodes, which differ in little but their size."""
    sizes = np.random.default_rng(0).integers(5, 60, 80)
    return read_networkx(
        [networkx.random_labeled_tree(int(n), seed=k) for k, n in enumerate(sizes)], features="degree:8"
    )


def correlation_with_size(rows, collection):
    """Median over columns of |correlation with the number of nodes|; constant columns are left out."""
    nodes = np.diff(collection.node_ptr)
    columns = rows.T[rows.std(axis=0) > 1e-4]
    return float(np.median([abs(np.corrcoef(column, nodes)[0, 1]) for column in columns]))


def embeddings_of(collection, method, **settings):
    run = train(collection, method, settings=settings, training=TrainSettings(epochs=2), device="cpu")
    return embed(run.model.method, collection)


@pytest.mark.parametrize("method", ["untrained", "graphcl", "graphsc", "cuco", "graphmae", "gcc"])
def test_sums_of_columns_grow_with_the_graph(trees, method):
    assert correlation_with_size(embeddings_of(trees, method), trees) > 0.6


def test_centred_columns_lose_the_size(trees):
    rows = embeddings_of(trees, "untrained", batch_norm_embedding="reestimate")
    assert correlation_with_size(rows, trees) < 0.4


def test_uncentred_sums_are_those_of_scaled_columns(trees):
    """Column by column: the sum over nodes of weight z / deviation + bias, z the input of BatchNorm."""
    fitted = train(trees, "untrained", device="cpu").model.method
    with torch.no_grad():
        for block in fitted.encoder.blocks:
            block.norm.weight.uniform_(0.5, 2)
            block.norm.bias.uniform_(-1, 1)
    batch = GraphBatch.gather(trees, np.arange(6))
    inputs = []
    hooks = [
        block.norm.register_forward_pre_hook(lambda _, given: inputs.append(given[0].double()))
        for block in fitted.encoder.blocks
    ]
    with torch.no_grad():
        rows = fitted(batch).double()
    for hook in hooks:
        hook.remove()
    start = 0
    for block, z in zip(fitted.encoder.blocks, inputs, strict=True):
        norm = block.norm
        for graph in range(6):
            nodes = z[int(batch.ptr[graph]) : int(batch.ptr[graph + 1])]
            deviation = (norm.running_var.double() + norm.eps).sqrt()
            expected = (norm.weight * nodes / deviation + norm.bias).sum(0)
            torch.testing.assert_close(
                rows[graph, start : start + z.shape[1]], expected, rtol=1e-4, atol=1e-3
            )
        start += z.shape[1]


@pytest.mark.realdata
def test_sizes_of_proteins_can_be_read_off():
    try:
        collection = open_collection("proteins")
    except NotFoundError as error:
        pytest.skip(str(error))
    assert correlation_with_size(embeddings_of(collection, "untrained"), collection) > 0.6
