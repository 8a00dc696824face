"""Views that come with what was drawn to make them."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from graphsc.data.batch import GraphBatch


class DrawnViews(dict[str, GraphBatch]):
    """Batches by name, and in `drawn` tensors with one row a graph or a node, in the order of the batches.

    No positions among them: rows of several batches can be put end to end, as the batches can.
    """

    def __init__(self, views: Mapping[str, GraphBatch], **drawn: Tensor) -> None:
        super().__init__(views)
        self.drawn = drawn
