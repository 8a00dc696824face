"""Combinations of views: a random choice per graph, a sequence, and weak and strong pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import (
    VIEWS,
    AnyBatch,
    Operation,
    Order,
    Perturbation,
    View,
    apply_perturbation,
    check_rate,
    merge,
    views_of,
)


class Choice(View):
    """Draw one operation per graph and batch.

    Each graph gets a single operation, so the whole batch is still perturbed in one pass.

    Args:
        views: Operations or their registered names.
        probabilities: One weight per operation; uniform by default.
    """

    def __init__(self, views: Sequence[View | str], probabilities: Sequence[float] | None = None) -> None:
        candidates = [VIEWS.get(view)() if isinstance(view, str) else view for view in views]
        if not candidates:
            raise ConfigError("Choice needs at least one view")
        self.views: list[Operation] = []
        for view in candidates:
            if not isinstance(view, Operation):
                raise ConfigError(
                    f"Choice cannot choose {type(view).__name__}",
                    hint="choose among plain views; a Compose may contain a Choice",
                )
            self.views.append(view)
        self.grows_with_rate = all(view.grows_with_rate for view in self.views)
        weights = [1.0] * len(candidates) if probabilities is None else [float(p) for p in probabilities]
        if len(weights) != len(candidates):
            raise ConfigError(f"{len(candidates)} views but {len(weights)} probabilities")
        if not all(math.isfinite(p) and p >= 0 for p in weights) or sum(weights) <= 0:
            raise ConfigError(f"probabilities must not be negative or all zero: {weights}")
        self.probabilities = tuple(p / sum(weights) for p in weights)

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor:
        """G, int64: the index into `views` of each graph's operation."""
        probabilities = torch.tensor(self.probabilities, device=generator.device)
        if batch.num_graphs == 0:
            return torch.zeros(0, dtype=torch.int64, device=generator.device)
        return probabilities.multinomial(batch.num_graphs, replacement=True, generator=generator)

    def perturb(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        check_rate(rate)
        ops = self.draw(batch, generator) if ops is None else self._check_ops(ops, batch)
        if rate == 0:
            return batch
        counts = self._counts(batch, ops, rate, weaker)
        return apply_perturbation(batch, self._perturbation(self._orders(batch, counts, generator), counts))

    def perturb_nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        for view in self.views:
            if not view.nests:
                return view.perturb_nested(batch, weak_rate, strong_rate, generator)
        ops = self.draw(batch, generator)
        strong = self._counts(batch, ops, strong_rate, weak_rate)
        orders = self._orders(batch, strong, generator)
        weak = self._counts(batch, ops, weak_rate, None)
        return (
            apply_perturbation(batch, self._perturbation(orders, weak)) if weak_rate else batch,
            apply_perturbation(batch, self._perturbation(orders, strong)),
        )

    def _counts(self, batch: GraphBatch, ops: Tensor, rate: float, weaker: float | None) -> list[Tensor]:
        """Per operation (G): the number of changes; 0 for graphs with another operation."""
        return [view.counts(batch, rate, weaker) * (ops == i) for i, view in enumerate(self.views)]

    def _orders(
        self, batch: GraphBatch, counts: list[Tensor], generator: torch.Generator
    ) -> list[Order | None]:
        return [
            view.order(batch, count, generator) if bool(count.any()) else None
            for view, count in zip(self.views, counts, strict=True)
        ]

    def _perturbation(self, orders: list[Order | None], counts: list[Tensor]) -> Perturbation:
        pairs = zip(orders, counts, strict=True)
        parts = [order(count) for order, count in pairs if order is not None]
        return merge(parts) if parts else Perturbation()

    def _check_ops(self, ops: Tensor, batch: GraphBatch) -> Tensor:
        if ops.shape != (batch.num_graphs,):
            raise ConfigError(f"ops must have one operation for each of {batch.num_graphs} graphs")
        if len(ops) and bool(((ops < 0) | (ops >= len(self.views))).any()):
            raise ConfigError(f"ops must lie between 0 and {len(self.views) - 1}")
        return ops


class Compose(View):
    """Apply views one after another, each at the full rate.

    Args:
        views: Views or their registered names.
    """

    def __init__(self, views: Sequence[View | str]) -> None:
        self.views = [VIEWS.get(view)() if isinstance(view, str) else view for view in views]
        self.grows_with_rate = all(view.grows_with_rate for view in self.views)
        if not self.views:
            raise ConfigError("Compose needs at least one view")
        if any(isinstance(view, Compose) for view in self.views):
            raise ConfigError("Compose cannot contain another Compose", hint="list the views in one")

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor | None:
        """Views x G: the draw of each view; -1 in rows of views that draw nothing."""
        draws = [view.draw(batch, generator) for view in self.views]
        if all(ops is None for ops in draws):
            return None
        no_draw = torch.full((batch.num_graphs,), -1, device=batch.device)
        return torch.stack([no_draw if ops is None else ops for ops in draws])

    def perturb(
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
            raise ConfigError(f"ops must be {len(self.views)} x {batch.num_graphs}, as returned by `draw`")
        for i, view in enumerate(self.views):
            # Views never remove graphs, so a draw for the first batch also fits the later ones.
            own = None if ops is None or bool((ops[i] < 0).all()) else ops[i]
            batch = view.perturb(batch, rate, generator, own, weaker=weaker)
        return batch


Coupling = Literal["same", "independent", "nested"]


def check_strengths(weak_rate: float, strong_rate: float) -> None:
    """Raise `ConfigError` unless 0 <= weak_rate < strong_rate <= 1."""
    check_rate(weak_rate)
    check_rate(strong_rate)
    if weak_rate >= strong_rate:
        raise ConfigError(
            f"the weak rate {weak_rate} must be below the strong rate {strong_rate}",
            hint="the strong view is the negative; swap the two or move them apart",
        )


def weak_and_strong(
    view: View,
    batch: AnyBatch,
    weak_rate: float,
    strong_rate: float,
    generator: torch.Generator,
    coupling: Coupling = "same",
) -> tuple[AnyBatch, AnyBatch]:
    """GraphSC's positive and negative sample of each graph: G+ = A(G; r_a) and G- = A(G; r_b), Eq. 7.

    The strong view changes at least one element more per graph, where the graph has one.

    Args:
        view: The perturbation A.
        batch: G graphs: a `GraphBatch`, or a PyG `Batch` or `Data`, which gives PyG ones.
        weak_rate: r_a, below `strong_rate`.
        strong_rate: r_b.
        generator: Source of all randomness.
        coupling: What the two views share. "same": the operation drawn for each graph. "independent":
            nothing. "nested": all draws, so that the strong view includes the changes of the weak one.

    Returns:
        The weak view and the strong view.
    """
    check_strengths(weak_rate, strong_rate)
    if not view.grows_with_rate:
        raise ConfigError(
            "this view keeps more at a larger rate, so its weak view would be the stronger one",
            hint="use 'subgraph' instead of 'graphcl-subgraph', or give GraphSC the shares kept: rates=keep",
        )
    if coupling not in get_args(Coupling):
        raise ConfigError(f"coupling must be one of {', '.join(get_args(Coupling))}, not {coupling!r}")
    if coupling == "nested":
        return view.nested(batch, weak_rate, strong_rate, generator)

    def perturb(own: GraphBatch) -> tuple[GraphBatch, GraphBatch]:
        ops = view.draw(own, generator) if coupling == "same" else None
        weak = view(own, weak_rate, generator, ops)
        return weak, view(own, strong_rate, generator, ops, weaker=weak_rate)

    return views_of(perturb, batch)
