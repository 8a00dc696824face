"""One of several operations for each graph, drawn anew for every batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, Change, Operation, Order, View, check_rate, materialise, merge


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


# Views one after another, each at the full rate.


class Compose(View):
    """The second view of what the first one made, and so on. Takes views or their registered names."""

    def __init__(self, views: Sequence[View | str]) -> None:
        self.views = [VIEWS.get(view)() if isinstance(view, str) else view for view in views]
        self.grows_with_rate = all(view.grows_with_rate for view in self.views)
        if not self.views:
            raise ConfigError("Compose needs at least one view")
        if any(isinstance(view, Compose) for view in self.views):
            raise ConfigError("Compose cannot hold another Compose", hint="list the views in one")

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor | None:
        """Views x G: each view's own draw; rows of views that draw nothing are -1."""
        drawn = [view.draw(batch, generator) for view in self.views]
        if all(ops is None for ops in drawn):
            return None
        nothing = torch.full((batch.num_graphs,), -1, device=batch.device)
        return torch.stack([nothing if ops is None else ops for ops in drawn])

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
        if ops is not None and ops.shape != (len(self.views), batch.num_graphs):
            raise ConfigError(f"ops must be {len(self.views)} x {batch.num_graphs}, as `draw` gives")
        for i, view in enumerate(self.views):
            # No view takes a graph away, so that a draw made for the first batch fits the later ones.
            own = None if ops is None or bool((ops[i] < 0).all()) else ops[i]
            batch = view(batch, rate, generator, own, weaker=weaker)
        return batch


# A weak and a strong view of the same graphs: GraphSC's positive and negative.


Coupling = Literal["same", "independent", "nested"]


def check_strengths(weak_rate: float, strong_rate: float) -> None:
    """Refuse rates that are no fractions, or a weak one that is not the weaker."""
    check_rate(weak_rate)
    check_rate(strong_rate)
    if weak_rate >= strong_rate:
        raise ConfigError(
            f"the weak rate {weak_rate} must be below the strong rate {strong_rate}",
            hint="the strong view is the negative; swap the two or move them apart",
        )


def weak_and_strong(
    view: View,
    batch: GraphBatch,
    weak_rate: float,
    strong_rate: float,
    generator: torch.Generator,
    coupling: Coupling = "same",
) -> tuple[GraphBatch, GraphBatch]:
    """The batch changed a little, and changed more: at least one element more where a graph has one.

    `coupling` says what the two share: "same" the operation of each graph, "independent" nothing,
    "nested" everything: the strong view then changes all that the weak one does, and more.
    """
    check_strengths(weak_rate, strong_rate)
    if not view.grows_with_rate:
        raise ConfigError(
            "this view keeps more at a larger rate, so its weak view would be the stronger one",
            hint="use 'subgraph' instead of 'graphcl-subgraph'",
        )
    if coupling not in get_args(Coupling):
        raise ConfigError(f"coupling must be one of {', '.join(get_args(Coupling))}, not {coupling!r}")
    if coupling == "nested":
        return view.nested(batch, weak_rate, strong_rate, generator)
    ops = view.draw(batch, generator) if coupling == "same" else None
    weak = view(batch, weak_rate, generator, ops)
    return weak, view(batch, strong_rate, generator, ops, weaker=weak_rate)
