"""Embeddings do not depend on the batch; BatchNorm statistics are exact."""

import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.encoders import Gin
from graphsc.encoders.inference import bounded_batches, embed, reestimate_batchnorm


def test_embeddings_do_not_depend_on_batch_size_and_order(make_collection):
    collection = make_collection(2, graphs=20)
    torch.manual_seed(0)
    gin = Gin(collection.features)
    reestimate_batchnorm(gin, collection)
    whole = embed(gin, collection)
    np.testing.assert_allclose(embed(gin, collection, batch_size=1), whole, rtol=1e-4, atol=1e-4)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(embed(gin, collection[order], 7), whole[order], rtol=1e-4, atol=1e-4)


def test_statistics_are_those_of_each_layers_input(make_collection):
    collection = make_collection(2, graphs=20)
    torch.manual_seed(0)
    gin = Gin(collection.features).eval()
    reestimate_batchnorm(gin, collection, batch_size=3)
    inputs_of = {}
    for norm in gin.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            norm.register_forward_pre_hook(lambda norm, inputs: inputs_of.update({norm: inputs[0]}))
    with torch.no_grad():
        gin(GraphBatch.of(collection))
    assert len(inputs_of) == 3
    for norm, values in inputs_of.items():
        torch.testing.assert_close(norm.running_mean, values.mean(0), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(norm.running_var, values.var(0), rtol=1e-4, atol=1e-5)


def test_embed_restores_the_mode(make_collection):
    collection = make_collection()
    gin = Gin(collection.features).train()
    embed(gin, collection)
    assert gin.training


class Twice(torch.nn.Module):
    """One norm in two places, then another; counts the calls of the latter."""

    def __init__(self):
        super().__init__()
        self.shared, self.last = torch.nn.BatchNorm1d(1, affine=False), torch.nn.BatchNorm1d(1, affine=False)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.last_calls = 0

    def forward(self, batch):
        sizes = batch.ptr.diff().float()[:, None]
        rows = self.shared(sizes) + self.shared(3 * sizes + 1)
        self.last_calls += 1
        return self.last(rows)


def test_a_norm_in_two_places_has_the_statistics_of_both(make_collection):
    collection = make_collection(2, graphs=5)
    encoder = Twice()
    reestimate_batchnorm(encoder, collection, batch_size=2)
    sizes = GraphBatch.of(collection).ptr.diff().numpy().astype(float)
    seen = np.concatenate([sizes, 3 * sizes + 1])
    assert float(encoder.shared.running_mean) == pytest.approx(seen.mean())
    assert float(encoder.shared.running_var) == pytest.approx(seen.var(ddof=1))
    # Once to find the order, then once per batch for the second norm.
    assert encoder.last_calls == 1 + 3


@pytest.mark.parametrize("entries", [1, 20, 55, 10_000])
def test_bounded_batches_are_as_large_as_their_bound_allows(make_collection, entries):
    collection = make_collection(2, graphs=20)[[4, 3, *range(6, 20)]]
    sizes = [graph.num_nodes + graph.edge_index.shape[1] for graph in collection.graphs()]
    expected, room = [], 0
    for size in sizes:  # greedily, one graph at a time
        if not expected or size > room:
            expected.append(0)
            room = entries
        expected[-1] += 1
        room -= size
    batches = list(bounded_batches(collection, entries))
    assert [batch.num_graphs for batch in batches] == expected
    assert torch.cat([batch.index for batch in batches]).tolist() == list(range(16))


def test_an_encoder_says_how_large_its_batches_are(make_collection):
    collection = make_collection(2, graphs=20)
    encoder = Twice()
    embed(encoder, collection)
    assert encoder.last_calls == 1
    encoder.shared.inference_entries = 10**6  # of a part; the largest counts
    embed(encoder, collection)
    assert encoder.last_calls == 2
