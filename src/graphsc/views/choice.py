"""One of several operations for each graph, drawn anew for every batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, Operation, Order, View, check_rate
from graphsc.views.change import Change, merge
from graphsc.views.materialise import materialise


class Choice(View):
    """Draw one operation per graph, all with the same chance or with the given probabilities.

    Takes views or their registered names. The operations meet different graphs, so that the whole
    batch is still changed in one pass.
    """

    def __init__(self, views: Sequence[View | str], probabilities: Sequence[float] | None = None) -> None:
        chosen = [VIEWS.get(view)() if isinstance(view, str) else view for view in views]
        if not chosen:
            raise ConfigError("Choice needs at least one view")
        self.views: list[Operation] = []
        for view in chosen:
            if not isinstance(view, Operation):
                raise ConfigError(
                    f"Choice cannot choose {type(view).__name__}",
                    hint="choose among plain views; a Compose may hold a Choice",
                )
            self.views.append(view)
        self.grows_with_rate = all(view.grows_with_rate for view in self.views)
        shares = [1.0] * len(chosen) if probabilities is None else [float(p) for p in probabilities]
        if len(shares) != len(chosen):
            raise ConfigError(f"{len(chosen)} views but {len(shares)} probabilities")
        if not all(math.isfinite(p) and p >= 0 for p in shares) or sum(shares) <= 0:
            raise ConfigError(f"probabilities must not be negative nor all zero: {shares}")
        self.probabilities = tuple(p / sum(shares) for p in shares)

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor:
        """G, int64: the position of each graph's operation in `views`."""
        shares = torch.tensor(self.probabilities, device=generator.device)
        if batch.num_graphs == 0:
            return torch.zeros(0, dtype=torch.int64, device=generator.device)
        return shares.multinomial(batch.num_graphs, replacement=True, generator=generator)

    def __call__(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        check_rate(rate)
        ops = self.draw(batch, generator) if ops is None else self._checked(ops, batch)
        if rate == 0:
            return batch
        counts = self._counts(batch, ops, rate, weaker)
        return materialise(batch, self._change(self._orders(batch, counts, generator), counts))

    def nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        for view in self.views:
            if not view.nests:
                return view.nested(batch, weak_rate, strong_rate, generator)
        ops = self.draw(batch, generator)
        strong = self._counts(batch, ops, strong_rate, weak_rate)
        orders = self._orders(batch, strong, generator)
        weak = self._counts(batch, ops, weak_rate, None)
        return (
            materialise(batch, self._change(orders, weak)) if weak_rate else batch,
            materialise(batch, self._change(orders, strong)),
        )

    def _counts(self, batch: GraphBatch, ops: Tensor, rate: float, weaker: float | None) -> list[Tensor]:
        """For each operation, G: how much it changes; 0 where the graph has another operation."""
        return [view.counts(batch, rate, weaker) * (ops == i) for i, view in enumerate(self.views)]

    def _orders(
        self, batch: GraphBatch, counts: list[Tensor], generator: torch.Generator
    ) -> list[Order | None]:
        return [
            view.order(batch, most, generator) if bool(most.any()) else None
            for view, most in zip(self.views, counts, strict=True)
        ]

    def _change(self, orders: list[Order | None], counts: list[Tensor]) -> Change:
        pairs = zip(orders, counts, strict=True)
        changes = [order(count) for order, count in pairs if order is not None]
        return merge(changes) if changes else Change()

    def _checked(self, ops: Tensor, batch: GraphBatch) -> Tensor:
        if ops.shape != (batch.num_graphs,):
            raise ConfigError(f"ops must name one operation for each of {batch.num_graphs} graphs")
        if len(ops) and not 0 <= int(ops.min()) <= int(ops.max()) < len(self.views):
            raise ConfigError(f"ops must lie between 0 and {len(self.views) - 1}")
        return ops
