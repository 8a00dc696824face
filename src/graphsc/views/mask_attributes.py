"""Node features hidden: replaced by noise, or by a token that means "unknown"."""

from __future__ import annotations

from typing import Literal

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

    By noise: dense rows drawn from N(mean, std). By a token, as molecule encoders have it: the first
    categorical column becomes that code, the others 0 and floats 0. "auto" takes the token where one is
    given or the features have a code for hidden nodes, and else noise.
    """

    def __init__(
        self,
        *,
        value: Literal["auto", "noise", "token"] = "auto",
        mean: float = 0.5,
        std: float = 0.5,
        token: int | None = None,  # None: the features' own
    ) -> None:
        if std < 0:
            raise ConfigError(f"std must not be negative, not {std}")
        if token is not None and token < 0:
            raise ConfigError(f"token must be a code from 0, not {token}")
        if value not in ("auto", "noise", "token"):
            raise ConfigError(f"value must be 'auto', 'noise' or 'token', not {value!r}")
        if value == "noise" and token is not None:
            raise ConfigError("a token is given, but features are to be replaced by noise")
        self.value = value
        self.mean = mean
        self.std = std
        self.token = token

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        at_most = smallest(keys, batch.ptr, most)
        nodes = positions(at_most)
        token = self._token(batch)
        rows = (
            self._noise(batch, len(nodes), generator) if token is None else _codes(batch, len(nodes), token)
        )

        def first(counts: Tensor) -> Change:
            chosen, values = nodes, rows
            if not torch.equal(counts, most):
                among = smallest(keys, batch.ptr, counts)[nodes]
                chosen, values = nodes[among], rows[among]
            features = NewFeatures(chosen, values)
            return Change(dense=features) if token is None else Change(codes=features)

        return first

    def _token(self, batch: GraphBatch) -> int | None:
        """The code that hides a node, or None for noise."""
        if self.value == "noise":
            return None
        token = batch.features.hidden if self.token is None else self.token
        if token is None and self.value == "token":
            raise ConfigError(
                "these nodes' features have no code for hidden nodes",
                hint="say which code is the token, or replace features by noise",
            )
        return token

    def _noise(self, batch: GraphBatch, count: int, generator: torch.Generator) -> Tensor:
        rows = torch.empty(count, batch.features.width, device=batch.device)
        return rows.normal_(self.mean, self.std, generator=generator)


def _codes(batch: GraphBatch, count: int, token: int) -> Tensor:
    known = batch.features.cardinalities
    if not known or token >= known[0]:
        raise ConfigError(
            f"token {token} is no code of these nodes' first categorical feature",
            hint=f"it has {known[0]} codes, from 0" if known else "they have none; leave token out",
        )
    codes = torch.zeros(count, len(known), dtype=torch.int64, device=batch.device)
    codes[:, 0] = token
    return codes
