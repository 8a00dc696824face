"""Some of each graph's nodes kept, the likelier the more they weigh: draws that a network's scores steer."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.base import nodes_per_graph
from graphsc.views.change import Change
from graphsc.views.choose import smallest
from graphsc.views.materialise import materialise


def keep_nodes(batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator) -> GraphBatch:
    """The sub-graphs on `counts[g]` (G) nodes of each graph, drawn one after the other without replacement.

    weight: N, above zero; each draw takes a node with a chance in proportion to its weight among those that
    are left. Counts are brought between one and all of a graph's nodes, so that no graph is emptied.
    """
    return materialise(batch, Change(nodes=draw_weighted(batch, weight, counts, generator)))


def draw_weighted(batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask (N) of the nodes drawn.

    Each node waits for a time that is exponential at the rate of its weight. Who comes first, and of those
    left who comes next, is drawn in proportion to the weights. Logarithms keep the times within range.
    """
    counts = torch.minimum(counts.clamp(min=1), nodes_per_graph(batch))
    waits = torch.empty(batch.num_nodes, device=batch.device).exponential_(generator=generator)
    # A wait of zero, which rounding may give, has no logarithm.
    keys = waits.clamp_(min=torch.finfo(waits.dtype).tiny).log_() - weight.float().log()
    return smallest(keys, batch.ptr, counts)
