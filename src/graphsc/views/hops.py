"""Around one node of each graph: how far every other is from it, and the parts at given distances."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.base import nodes_per_graph
from graphsc.views.change import Change
from graphsc.views.fast import compress, mark, pointer, positions, take
from graphsc.views.materialise import materialise


def random_nodes(batch: GraphBatch, generator: torch.Generator) -> Tensor:
    """One uniformly drawn node of each graph that has any, int64."""
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    return (batch.ptr[:-1] + uniform.mul_(sizes).long())[sizes > 0]


def hops(batch: GraphBatch, start: Tensor, most: int) -> Tensor:
    """N, int64: over how many edges each node is reached from the nodes of `start`; most + 1 if over more.

    Edges are followed from source to destination. All graphs take a step at once, and there are `most`.
    """
    found = torch.full((batch.num_nodes,), most + 1, dtype=torch.int64, device=batch.device)
    found[start] = 0
    # Every edge is looked at once: where its source was reached, it is done with.
    source, destination = batch.source, batch.destination
    for step in range(1, most + 1):
        leaves = take(found, source) < step
        ends = compress(destination, leaves).long()
        new = ends[take(found, ends) > step]
        if not len(new):
            break
        found[new] = step
        waiting = ~leaves
        source, destination = compress(source, waiting), compress(destination, waiting)
    return found


def parts_of(batch: GraphBatch, nodes: Tensor, graphs: Tensor) -> GraphBatch:
    """The sub-graphs on the nodes (N, bool) of the chosen graphs (G, bool); the other graphs are gone."""
    kept = materialise(batch, Change(nodes=nodes & take(graphs, batch.batch)))
    sizes = compress(kept.ptr.diff(), graphs)
    rows = positions(graphs)
    return replace(
        kept,
        ptr=pointer(sizes),
        y=None if batch.y is None else batch.y.index_select(0, rows),
        index=None if batch.index is None else batch.index.index_select(0, rows),
    )


def mask_of(batch: GraphBatch, nodes: Tensor) -> Tensor:
    """N, bool: true at these positions."""
    return mark(torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device), nodes, True)
