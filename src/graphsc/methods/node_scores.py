"""A number for every node of a collection, kept between epochs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsc.core.errors import DataError
from graphsc.data.batch import GraphBatch
from graphsc.views.base import nodes_per_graph
from graphsc.views.fast import pointer, repeat


@dataclass(frozen=True, eq=False)
class NodeScores:
    """Scores of all nodes, graph after graph. Half precision: they steer draws, and need no more digits."""

    values: Tensor  # nodes of the collection, float16
    ptr: Tensor  # graphs + 1, int64

    @classmethod
    def collect(cls, scored: Iterable[tuple[GraphBatch, Tensor]]) -> NodeScores:
        """From the batches of a collection in order, each with the scores of its nodes."""
        parts = [(scores.half(), nodes_per_graph(batch)) for batch, scores in scored]
        return cls(
            torch.cat([scores for scores, _ in parts]), pointer(torch.cat([sizes for _, sizes in parts]))
        )

    def of(self, batch: GraphBatch) -> Tensor:
        """N, float32: the scores of a batch's nodes, by its graphs' positions in the collection."""
        index, sizes = batch.index, nodes_per_graph(batch)
        if index is None or not self._fits(index, sizes):
            raise DataError(
                "the scores are of other graphs than these",
                hint="draw views of the collection in training, or call begin() with another one first",
            )
        nodes = torch.arange(batch.num_nodes, device=batch.device)
        nodes += repeat(self.ptr[index] - batch.ptr[:-1], sizes, batch.num_nodes)
        return self.values[nodes].float()

    def _fits(self, index: Tensor, sizes: Tensor) -> bool:
        if bool((index >= len(self.ptr) - 1).any()):
            return False
        return torch.equal(self.ptr[index + 1] - self.ptr[index], sizes)


def even_scores(batch: GraphBatch) -> Tensor:
    """N: every node of a graph with the same share."""
    sizes = nodes_per_graph(batch)
    return repeat(1 / sizes.float(), sizes, batch.num_nodes)
