"""Several batches as one, end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch


def join(batches: Sequence[GraphBatch]) -> GraphBatch:
    """The graphs of all batches, in order; they share features and the kinds of columns."""
    first = batches[0]
    nodes = _starts([batch.num_nodes for batch in batches])
    edges = _starts([batch.num_edges for batch in batches])

    def optional(name: str) -> Tensor | None:
        parts = [getattr(batch, name) for batch in batches]
        if name == "edge_weight" and any(part is not None for part in parts):
            parts = [
                part if part is not None else torch.ones(batch.num_edges, device=batch.device)
                for part, batch in zip(parts, batches, strict=True)
            ]
        return None if any(part is None for part in parts) else torch.cat(parts)

    replaced = [
        (batch.replaced + start, batch.replacement)
        for batch, start in zip(batches, nodes, strict=False)
        if batch.replaced is not None and batch.replacement is not None
    ]
    return replace(
        first,
        codes=torch.cat([batch.codes for batch in batches]),
        floats=torch.cat([batch.floats for batch in batches]),
        rowptr=_pointers([batch.rowptr for batch in batches], edges),
        source=torch.cat([batch.source + start for batch, start in zip(batches, nodes, strict=False)]),
        ptr=_pointers([batch.ptr for batch in batches], nodes),
        undirected=all(batch.undirected for batch in batches),
        sorted_sources=all(batch.sorted_sources for batch in batches),
        edge_codes=optional("edge_codes"),
        edge_floats=optional("edge_floats"),
        edge_weight=optional("edge_weight"),
        y=optional("y"),
        index=optional("index"),
        replaced=torch.cat([index for index, _ in replaced]) if replaced else None,
        replacement=torch.cat([rows for _, rows in replaced]) if replaced else None,
    )


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return starts


def _pointers(pointers: Sequence[Tensor], starts: Sequence[int]) -> Tensor:
    parts = [pointers[0][:1]]
    parts += [pointer[1:] + start for pointer, start in zip(pointers, starts, strict=False)]
    return torch.cat(parts)
