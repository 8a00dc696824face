"""Sums over neighbours against PyG's GINConv, forward and backward."""

from __future__ import annotations

import torch
from torch_geometric.nn import GINConv

from benchmarks.cases import batch_of, present, shape_of
from benchmarks.measure import Result, interleave
from graphsc.encoders import Adjacency, aggregate

BARS = {"collab": 4.0, "dd": 4.0}  # elsewhere: never slower


def run() -> list[Result]:
    results = []
    for name in present():
        batch = batch_of(name)
        conv = GINConv(torch.nn.Identity())
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(batch.num_nodes, 32, generator=generator, requires_grad=True)
        gradient = torch.randn(batch.num_nodes, 32, generator=generator)
        edge_index = batch.edge_index
        adjacency = Adjacency.of(batch)

        def ours(x=x, adjacency=adjacency, gradient=gradient) -> torch.Tensor:
            x.grad = None
            out = aggregate(adjacency, x)
            out.backward(gradient)
            return out

        def peer(x=x, conv=conv, edge_index=edge_index, gradient=gradient) -> torch.Tensor:
            x.grad = None
            out = conv.propagate(edge_index, x=(x, x), size=None)
            out.backward(gradient)
            return out

        scale = float(peer().detach().abs().max())
        assert torch.allclose(ours(), peer(), atol=1e-4 * scale), name
        results.append(
            interleave(
                "sparse", shape_of(name), ours, peer,
                bar=BARS.get(name, 1.0), better="higher", against="PyG GINConv propagate",
            )
        )  # fmt: skip
    return results
