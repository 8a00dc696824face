"""Views one after another, each at the full rate."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, View, check_rate


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
