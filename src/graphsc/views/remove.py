"""A batch without some of its nodes and edges, everything else kept in line."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.fast import compress, positions, repeat, running_count, take


def remove(batch: GraphBatch, nodes: Tensor | None, edges: Tensor | None) -> GraphBatch:
    """The batch reduced to the nodes (N) and edges (E) whose masks are true; None keeps all."""
    if nodes is None:
        return batch if edges is None else _fewer_edges(batch, edges)
    keep = take(nodes, batch.source)
    keep &= repeat(nodes, batch.in_degree, batch.num_edges)
    if edges is not None:
        keep &= edges
    changed = _fewer_edges(batch, keep)
    before = running_count(nodes)
    kept = positions(nodes)
    replaced, replacement = batch.replaced, batch.replacement
    if replaced is not None and replacement is not None:
        stay = nodes[replaced]
        replaced, replacement = before[replaced[stay]].long(), replacement[stay]
    return replace(
        changed,
        codes=batch.codes.index_select(0, kept),
        floats=batch.floats.index_select(0, kept),
        source=take(before, changed.source),
        # A lost node has no edge left, so its row can go without moving the others' ends.
        rowptr=torch.cat([take(changed.rowptr, kept), changed.rowptr[-1:]]),
        ptr=before[batch.ptr].long(),
        replaced=replaced,
        replacement=replacement,
    )


def _fewer_edges(batch: GraphBatch, keep: Tensor) -> GraphBatch:
    described = (batch.edge_codes, batch.edge_floats, batch.edge_weight)
    # Sources are squeezed by the mask; the index costs more and only attributes need it.
    index = None if all(values is None for values in described) else positions(keep)
    codes, floats, weight = (
        None if values is None or index is None else values.index_select(0, index) for values in described
    )
    return replace(
        batch,
        source=compress(batch.source, keep),
        rowptr=take(running_count(keep), batch.rowptr),
        edge_codes=codes,
        edge_floats=floats,
        edge_weight=weight,
    )
