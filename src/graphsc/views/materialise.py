"""From a batch and a change to the changed batch: features, then what is lost, then what is added."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.change import Change
from graphsc.views.insert import insert_edges
from graphsc.views.remove import remove


def materialise(batch: GraphBatch, change: Change) -> GraphBatch:
    """The changed batch; tensors that stay as they are are shared with the batch it came from."""
    changed = _features(batch, change)
    if change.directed:
        changed = replace(changed, undirected=False)
    if change.edges is not None or change.nodes is not None:
        changed = remove(changed, change.nodes, change.edges)
    if change.added is not None and len(change.added.source):
        changed = insert_edges(batch, changed, change.nodes, change.added)
    return changed


def _features(batch: GraphBatch, change: Change) -> GraphBatch:
    """New codes first, so that a node given both ends up with the dense row."""
    if change.codes is None and change.dense is None:
        return batch
    codes, floats, old, rows = batch.codes, batch.floats, batch.replaced, batch.replacement
    if change.codes is not None:
        codes, floats = codes.clone(), floats.clone()
        codes[change.codes.nodes] = change.codes.rows
        floats[change.codes.nodes] = 0.0
        old, rows = _forget(batch, old, rows, change.codes.nodes)
    if change.dense is not None:
        old, rows = _forget(batch, old, rows, change.dense.nodes)
        if old is None or rows is None:
            old, rows = change.dense.nodes, change.dense.rows
        else:
            old = torch.cat([old, change.dense.nodes])
            rows = torch.cat([rows, change.dense.rows])
    return replace(batch, codes=codes, floats=floats, replaced=old, replacement=rows)


def _forget(
    batch: GraphBatch, old: Tensor | None, rows: Tensor | None, nodes: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Replaced rows without those of `nodes`, which get new features."""
    if old is None or rows is None:
        return None, None
    fresh = torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device)
    fresh[nodes] = True
    stay = ~fresh[old]
    return old[stay], rows[stay]
