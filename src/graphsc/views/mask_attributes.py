"""Node features hidden: replaced by noise, or by a token that means "unknown"."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, Operation, Order, nodes_per_graph
from graphsc.views.change import Change, NewFeatures
from graphsc.views.choose import smallest
from graphsc.views.fast import positions


@VIEWS.register("mask-attributes")
class MaskAttributes(Operation):
    """Replace the features of a fraction of each graph's nodes.

    Dense rows drawn from N(mean, std) by default. With a `token` the first categorical column becomes
    that code, the others 0 and floats 0, as molecule encoders have it.
    """

    def __init__(self, *, mean: float = 0.5, std: float = 0.5, token: int | None = None) -> None:
        if std < 0:
            raise ConfigError(f"std must not be negative, not {std}")
        if token is not None and token < 0:
            raise ConfigError(f"token must be a code from 0, not {token}")
        self.mean = mean
        self.std = std
        self.token = token

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        at_most = smallest(keys, batch.ptr, most)
        nodes = positions(at_most)
        rows = self._rows(batch, len(nodes), generator)

        def first(counts: Tensor) -> Change:
            chosen, values = nodes, rows
            if not torch.equal(counts, most):
                among = smallest(keys, batch.ptr, counts)[nodes]
                chosen, values = nodes[among], rows[among]
            features = NewFeatures(chosen, values)
            return Change(dense=features) if self.token is None else Change(codes=features)

        return first

    def _rows(self, batch: GraphBatch, count: int, generator: torch.Generator) -> Tensor:
        if self.token is None:
            rows = torch.empty(count, batch.features.width, device=batch.device)
            return rows.normal_(self.mean, self.std, generator=generator)
        known = batch.features.cardinalities
        if not known or self.token >= known[0]:
            raise ConfigError(
                f"token {self.token} is no code of these nodes' first categorical feature",
                hint=f"it has {known[0]} codes, from 0" if known else "they have none; leave token out",
            )
        codes = torch.zeros(count, len(known), dtype=torch.int64, device=batch.device)
        codes[:, 0] = self.token
        return codes
