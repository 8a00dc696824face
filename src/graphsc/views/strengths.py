"""A weak and a strong view of the same graphs: GraphSC's positive and negative."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import View, check_rate

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
