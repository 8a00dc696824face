"""Embeddings do not depend on what else is in the batch; BatchNorm is estimated exactly."""

import numpy as np
import torch

from graphsc.data.batch import GraphBatch
from graphsc.encoders import Gin
from graphsc.encoders.embedding import embed, reestimate_batchnorm


def test_embedding_is_the_same_for_any_batch_size_and_order(make_collection):
    collection = make_collection(2, graphs=20)
    torch.manual_seed(0)
    gin = Gin(collection.features)
    reestimate_batchnorm(gin, collection)
    whole = embed(gin, collection)
    np.testing.assert_allclose(embed(gin, collection, batch_size=1), whole, rtol=1e-4, atol=1e-4)
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(embed(gin, collection[order], 7), whole[order], rtol=1e-4, atol=1e-4)


def test_statistics_are_those_of_what_each_layer_meets(make_collection):
    collection = make_collection(2, graphs=20)
    torch.manual_seed(0)
    gin = Gin(collection.features).eval()
    reestimate_batchnorm(gin, collection, batch_size=3)
    met = {}
    for norm in gin.modules():
        if isinstance(norm, torch.nn.BatchNorm1d):
            norm.register_forward_pre_hook(lambda norm, inputs: met.update({norm: inputs[0]}))
    with torch.no_grad():
        gin(GraphBatch.of(collection))
    assert len(met) == 3
    for norm, values in met.items():
        torch.testing.assert_close(norm.running_mean, values.mean(0), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(norm.running_var, values.var(0), rtol=1e-4, atol=1e-5)


def test_mode_is_put_back(make_collection):
    collection = make_collection()
    gin = Gin(collection.features).train()
    embed(gin, collection)
    assert gin.training
