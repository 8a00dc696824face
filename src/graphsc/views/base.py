"""What a view is: a batch in, a changed batch out; and how a rate becomes exact counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry
from graphsc.data.batch import GraphBatch
from graphsc.views.change import Change
from graphsc.views.materialise import materialise
from graphsc.views.memo import once_per_batch

# A random order of changes for each graph; given how many each graph gets (G), the first so many.
Order = Callable[[Tensor], Change]


class View(ABC):
    """A random change of every graph in a batch, as strong as its rate says.

    The batch is never altered; every draw comes from the generator, which lies on the batch's device.
    """

    grows_with_rate: bool = True  # a larger rate is a stronger change; not so where the rate is kept

    @abstractmethod
    def __call__(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        """The changed batch. `rate` is the fraction changed, from 0 (the same batch) to 1.

        `ops` is what `draw` gave, so that one draw can serve two strengths. `weaker` is the rate of a
        weaker view: each graph is then changed in at least one more place than at that rate, where it
        has one.
        """

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor | None:
        """Which operation each graph gets; None where there is nothing to choose."""
        return None

    def nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        """A weak and a strong view where the strong one changes all that the weak one does."""
        raise ConfigError(f"{type(self).__name__} has no nested views", hint="use coupling 'same'")


class Operation(View):
    """A view that changes so many elements of each graph, by a random order of its elements."""

    nests = True  # the first elements of an order are a weaker version of more of them

    @abstractmethod
    def size(self, batch: GraphBatch) -> Tensor:
        """G, int64: how many elements of each graph a rate of 1 means."""

    def capacity(self, batch: GraphBatch) -> Tensor:
        """G, int64: how many elements of each graph may be changed."""
        return self.size(batch)

    @abstractmethod
    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        """A random order of changes of each graph, asked for at most `most` (G) of them.

        Graphs whose `most` is 0 are left alone.
        """

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        """G, int64: max(1, round(rate * size)), one more than at the rate `weaker`, up to capacity."""
        if rate == 0:
            return torch.zeros(batch.num_graphs, dtype=torch.int64, device=batch.device)
        size = self.size(batch).double()
        counts = (size * rate).round_().clamp_(min=1)
        if weaker:
            counts = torch.maximum(counts, (size * weaker).round_().clamp_(min=1) + 1)
        return torch.minimum(counts.long(), self.capacity(batch))

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
        if ops is not None:
            raise ConfigError(f"{type(self).__name__} has no operations to choose from")
        if rate == 0:
            return batch
        counts = self.counts(batch, rate, weaker)
        return materialise(batch, self.order(batch, counts, generator)(counts))

    def nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        if not self.nests:
            return super().nested(batch, weak_rate, strong_rate, generator)
        strong = self.counts(batch, strong_rate, weak_rate)
        order = self.order(batch, strong, generator)
        weak = batch
        if weak_rate:
            weak = materialise(batch, order(self.counts(batch, weak_rate)))
        return weak, materialise(batch, order(strong))


VIEWS: Registry[type[View]] = Registry("view")


def check_rate(rate: float) -> None:
    """Refuse a rate that is no fraction."""
    if not 0 <= rate <= 1:
        raise ConfigError(f"a view's rate must lie between 0 and 1, not {rate}")


@once_per_batch
def nodes_per_graph(batch: GraphBatch) -> Tensor:
    """G, int64; one tensor for all who ask."""
    return batch.ptr.diff()
