"""Edges taken away, and as many put where there were none."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.absent import absent_pairs
from graphsc.views.base import VIEWS, Operation, Order
from graphsc.views.change import AddedEdges, Change
from graphsc.views.choose import RandomOrder
from graphsc.views.distinct import distinct
from graphsc.views.edge_pairs import EdgePairs, edge_pairs
from graphsc.views.fast import compress, mark, pointer, repeat


@VIEWS.register("perturb-edges")
class PerturbEdges(Operation):
    """Drop a fraction of each graph's edges and, with mode "replace", add as many absent ones.

    An undirected edge is dropped or added in both directions. Where fewer pairs are absent than edges
    dropped, all of them are added. An added edge has the attributes of a random edge of its graph.
    """

    def __init__(self, *, mode: Literal["replace", "drop"] = "replace") -> None:
        if mode not in ("replace", "drop"):
            raise ConfigError(f"mode must be 'replace' or 'drop', not {mode!r}")
        self.mode = mode

    def size(self, batch: GraphBatch) -> Tensor:
        return edge_pairs(batch).ptr.diff()

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        pairs = edge_pairs(batch)
        dropped = distinct(pairs.ptr.diff(), most, generator)
        order = RandomOrder(pointer(most), generator)
        new = _Additions(batch, pairs, most, generator) if self.mode == "replace" else None

        def first(counts: Tensor) -> Change:
            among = order.first(counts)
            gone = dropped if among is None else compress(dropped, among)
            keep = torch.ones(batch.num_edges, dtype=torch.bool, device=batch.device)
            mark(keep, pairs.all_entries(gone), False)
            return Change(edges=keep, added=None if new is None else new.first(counts))

        return first


class _Additions:
    """Edges to add, in random order within each graph."""

    def __init__(self, batch: GraphBatch, pairs: EdgePairs, most: Tensor, generator: torch.Generator) -> None:
        absent = absent_pairs(batch)
        self.most = torch.minimum(most, absent.counts)
        self.undirected = batch.undirected
        self.source, self.destination = absent.draw(self.most, generator)
        self.order = RandomOrder(pointer(self.most), generator)
        self.like: Tensor | None = None
        if batch.edge_codes is not None or batch.edge_floats is not None:
            total = len(self.source)
            size = repeat(pairs.ptr.diff(), self.most, total)
            uniform = torch.rand(total, generator=generator, device=batch.device, dtype=torch.float64)
            drawn = torch.minimum(uniform.mul_(size).long(), size - 1)
            self.like = pairs.entries(drawn + repeat(pairs.ptr[:-1], self.most, total))

    def first(self, counts: Tensor) -> AddedEdges:
        source, destination, like = self.source, self.destination, self.like
        among = self.order.first(torch.minimum(counts, self.most))
        if among is not None:
            source, destination = compress(source, among), compress(destination, among)
            like = None if like is None else compress(like, among)
        if not self.undirected:
            return AddedEdges(source, destination, like)
        return AddedEdges(
            torch.cat([source, destination]),
            torch.cat([destination, source]),
            None if like is None else torch.cat([like, like]),
        )
