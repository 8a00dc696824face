"""Personalised PageRank: a weighted, denser version of every graph of a batch.

    A~ = D^-1/2 (A + I) D^-1/2,  D: the degrees of A + I
    S = alpha (I - (1 - alpha) A~)^-1 = alpha sum over t of (1 - alpha)^t A~^t

S_ij is the weight of node j for node i. Graphs of similar size are inverted together; those with more than
`MAX_INVERTED` nodes are computed by the sum over t, for many columns at once. The result of a graph does not
depend on the batch it is in.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from graphsc.core.errors import ConfigError
from graphsc.data.arrays import gather_index
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import pointer, take
from graphsc.views.base import nodes_per_graph
from graphsc.views.subgraph import induced_subgraphs

MAX_INVERTED = 512  # nodes; the time for an inverse grows with their cube
CHUNK_ENTRIES = 2**22  # of the matrices that are in memory at once
COLUMNS = 256  # of the power iteration that are in memory at once
TOLERANCE = 1e-6  # of the power iteration, relative to a row's sum
MAX_CACHED = 2**25  # entries of all cached graphs, about 256 MB; when there are more, the cache starts anew
TIE = 1e-6  # values that differ by less are equal: those of nodes in symmetric positions


T = TypeVar("T", bound=np.generic)


class Diffusion:
    """Personalised PageRank of the graphs of a batch, cached per graph.

    A graph is found again by its nodes and edges, whichever collection or batch it comes from.
    """

    def __init__(self, *, alpha: float = 0.2, neighbours: int = 64) -> None:
        """
        Args:
            alpha: The probability of a walk to return to its node.
            neighbours: The largest weights of each node that are kept, so that memory grows with the number
                of nodes. Graphs of up to as many nodes keep all. Where the next weights are equal to the
                last one, all of these are left out, so that the order of the nodes does not matter.
        """
        if not 0 < alpha <= 1:
            raise ConfigError(f"alpha is a probability above 0, not {alpha}")
        if neighbours < 1:
            raise ConfigError(f"neighbours must be at least 1, not {neighbours}")
        self.alpha = alpha
        self.neighbours = neighbours
        self._cache = _Cache()

    def __call__(self, batch: GraphBatch) -> GraphBatch:
        """The batch with the entries of S as its edges and edge weights, without edge attributes.

        Row i of the new adjacency lists the nodes j with a weight for node i, node i itself included.
        """
        if self._cache.entries > MAX_CACHED:
            self._cache = _Cache()
        keys = _structure_hashes(batch)
        rows = self._cache.find(keys)
        missing = rows < 0
        if missing.any():
            self._add_missing(batch, missing, keys)
            rows = self._cache.find(keys)
        counts, columns, weights = self._cache.gather(rows)
        device = batch.device
        degree = torch.from_numpy(counts).to(device)
        rowptr = pointer(degree)
        first = torch.repeat_interleave(take(batch.ptr[:-1], batch.batch), degree, output_size=len(columns))
        return replace(
            batch,
            rowptr=rowptr.int(),
            source=(torch.from_numpy(columns).to(device) + first).int(),
            edge_weight=torch.from_numpy(weights).to(device),
            edge_codes=None,
            edge_floats=None,
            undirected=False,  # the cut is not symmetric
            sorted_sources=True,
        )

    def _add_missing(self, batch: GraphBatch, missing: NDArray[np.bool_], keys: NDArray[np.void]) -> None:
        """Compute the graphs that are not in the cache, by size, and add them."""
        everything = torch.ones(batch.num_nodes, dtype=torch.bool, device=batch.device)
        padded = _padded_sizes(nodes_per_graph(batch).cpu().numpy())
        for size in np.unique(padded[missing]):
            chosen = missing & (padded == size)
            # At most so many at once; a graph's own result is the same in any chunk.
            per_graph = size**2 if size <= MAX_INVERTED else size * COLUMNS
            per_chunk = max(1, CHUNK_ENTRIES // int(per_graph))
            positions = np.flatnonzero(chosen)
            for start in range(0, len(positions), per_chunk):
                part = positions[start : start + per_chunk]
                mask = torch.zeros(batch.num_graphs, dtype=torch.bool)
                mask[torch.from_numpy(part)] = True
                graphs = induced_subgraphs(batch, everything, mask.to(batch.device))
                counts, columns, weights = (
                    self._inverted(graphs, int(size)) if size <= MAX_INVERTED else self._iterated(graphs)
                )
                sizes = nodes_per_graph(graphs).cpu().numpy()
                self._cache.add(keys[part], sizes, *(_numpy(each) for each in (counts, columns, weights)))

    def _inverted(self, batch: GraphBatch, size: int) -> tuple[Tensor, Tensor, Tensor]:
        """Entries per node, and columns and weights of all, from the inverses of padded matrices."""
        graphs = batch.num_graphs
        sizes = nodes_per_graph(batch)
        local = torch.arange(batch.num_nodes, device=batch.device) - take(batch.ptr[:-1], batch.batch)
        matrix = torch.zeros(graphs, size, size, dtype=torch.float64, device=batch.device)
        one = matrix.new_ones(())
        source, destination = batch.source.long(), batch.destination.long()
        matrix.index_put_(
            (batch.edge_batch, local[destination], local[source]), one.expand(len(source)), accumulate=True
        )
        # A padded node has a loop alone.
        matrix.diagonal(dim1=1, dim2=2).add_(1.0)
        scale = matrix.sum(2).rsqrt()
        matrix.mul_(scale[:, :, None]).mul_(scale[:, None, :])
        matrix = torch.eye(size, dtype=torch.float64, device=batch.device) - (1 - self.alpha) * matrix
        weights = self.alpha * torch.linalg.inv(matrix)
        real = torch.arange(size, device=batch.device) < sizes[:, None]
        return self._cut(weights[real])

    def _cut(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The largest weights of each row (R x C): their numbers (R), columns and values in row order."""
        least = rows.new_zeros(len(rows), 1)
        if rows.shape[1] > self.neighbours:
            least = rows.topk(self.neighbours + 1, sorted=True).values[:, -1:] * (1 + TIE)
        keep = rows > least
        return keep.sum(1), keep.nonzero()[:, 1], rows[keep].float()

    def _iterated(self, batch: GraphBatch) -> tuple[Tensor, Tensor, Tensor]:
        """The same by power iteration, for all graphs of the batch and some columns at once.

        Row i of S is the result of walks from i against the direction of the product, so the transpose of A~
        is applied to the columns of the identity.
        """
        scale = (batch.in_degree + 1).float().rsqrt()
        source, destination = batch.source.long(), batch.destination.long()
        # The transpose with loops: row j lists the nodes i that node j points to, and j itself.
        loops = torch.arange(batch.num_nodes, device=batch.device)
        row, column = torch.cat([source, loops]), torch.cat([destination, loops])
        order = row.argsort(stable=True)
        column = column[order]
        weight = (1 - self.alpha) * (scale[row[order]] * scale[column])
        rowptr = pointer(torch.bincount(row, minlength=batch.num_nodes))
        local = loops - take(batch.ptr[:-1], batch.batch)
        steps = math.ceil(math.log(TOLERANCE) / math.log(1 - self.alpha)) if self.alpha < 1 else 0
        sizes = nodes_per_graph(batch)
        found: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        for start in range(0, int(sizes.max()), COLUMNS):
            own = (local[:, None] == torch.arange(start, start + COLUMNS, device=batch.device)).float()
            own *= self.alpha
            total = own
            for _ in range(steps):
                total = embedding_bag(
                    column, total, rowptr, mode="sum", include_last_offset=True, per_sample_weights=weight
                ).add_(own)
            found.append(self._cut_columns(batch, total, start))
        node, counts, columns, weights = (torch.cat(parts) for parts in zip(*found, strict=True))
        back = node.argsort()  # to the order of the nodes
        starts = pointer(counts)[:-1]
        lengths = counts[back]
        flat = torch.arange(len(columns), device=batch.device) + torch.repeat_interleave(
            starts[back] - pointer(lengths)[:-1], lengths, output_size=len(columns)
        )
        return lengths, columns[flat], weights[flat]

    def _cut_columns(
        self, batch: GraphBatch, total: Tensor, start: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows of S from the columns (N x C) of its transpose: the nodes they are of, and `_cut` of them."""
        sizes = nodes_per_graph(batch)
        longest = int(sizes.max())
        graph = torch.arange(batch.num_graphs, device=batch.device)[sizes > start]
        inside = torch.arange(longest, device=batch.device) < sizes[graph, None]
        places = torch.where(inside, batch.ptr[graph, None] + torch.arange(longest, device=batch.device), 0)
        block = total[places] * inside[:, :, None]  # graphs x nodes x columns
        rows = block.mT.reshape(-1, longest)
        node = (batch.ptr[graph, None] + start + torch.arange(total.shape[1], device=batch.device)).flatten()
        real = node < batch.ptr[graph + 1].repeat_interleave(total.shape[1])
        return (node[real], *self._cut(rows[real]))


_PAIR = np.dtype([("first", np.int64), ("second", np.int64)])


class _Cache:
    """Rows of S of many graphs in flat arrays, found by two hashes of a graph's structure."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, dtype=_PAIR)  # sorted
        self._number = np.zeros(0, dtype=np.int64)  # of the graph of each key, in the order of adding
        self._counts = _Ragged(np.int64)  # per graph: entries of each node
        self._columns = _Ragged(np.int32)  # per graph: of all entries, in the graph's numbering
        self._weights = _Ragged(np.float32)

    @property
    def entries(self) -> int:
        return self._columns.size

    def find(self, keys: NDArray[np.void]) -> NDArray[np.int64]:
        """The number of each graph, or -1."""
        if not len(self._keys):
            return np.full(len(keys), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[place] == keys, self._number[place], -1)

    def add(
        self,
        keys: NDArray[np.void],
        sizes: NDArray[np.int64],
        counts: NDArray[np.int64],
        columns: NDArray[np.int32],
        weights: NDArray[np.float32],
    ) -> None:
        """Add graphs with the result of `Diffusion`; equal graphs of one batch are added as often."""
        ends = np.concatenate([[0], np.cumsum(counts)])[np.concatenate([[0], np.cumsum(sizes)])]
        self._counts.add(counts, sizes)
        self._columns.add(columns, np.diff(ends))
        self._weights.add(weights, np.diff(ends))
        order = np.argsort(keys)
        place = np.searchsorted(self._keys, keys[order])
        self._number = np.insert(self._number, place, len(self._number) + order)
        self._keys = np.insert(self._keys, place, keys[order])

    def gather(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """Entries per node, columns and weights of these graphs, one after another."""
        return self._counts.gather(rows), self._columns.gather(rows), self._weights.gather(rows)


class _Ragged(Generic[T]):
    """Rows of different lengths in one array that grows by doubling."""

    def __init__(self, dtype: type[T]) -> None:
        self._values: NDArray[T] = np.zeros(0, dtype=dtype)
        self._ptr = np.zeros(1, dtype=np.int64)

    @property
    def size(self) -> int:
        return int(self._ptr[-1])

    def add(self, values: NDArray[T], lengths: NDArray[np.int64]) -> None:
        total = self.size + len(values)
        if total > len(self._values):
            grown = np.zeros(max(total, 2 * len(self._values)), dtype=self._values.dtype)
            grown[: self.size] = self._values[: self.size]
            self._values = grown
        self._values[self.size : total] = values
        self._ptr = np.concatenate([self._ptr, self.size + np.cumsum(lengths)])

    def gather(self, rows: NDArray[np.int64]) -> NDArray[T]:
        return self._values[gather_index(self._ptr, rows)[0]]


def _structure_hashes(batch: GraphBatch) -> NDArray[np.void]:
    """G pairs: two independent hashes of each graph's number of nodes and its edges."""
    first = take(batch.ptr[:-1], batch.edge_batch)
    source, destination = batch.source - first, batch.destination - first
    sizes = nodes_per_graph(batch)
    hashes = []
    for salt in (0x1CE4E5B9BF58476D, 0x133111EB94D049BB):
        edges = _mixed(_mixed(source + salt) + destination)
        total = _mixed(sizes + salt).clone()
        hashes.append(total.index_add_(0, batch.edge_batch, edges))
    return _numpy(torch.stack(hashes, 1)).view(_PAIR).reshape(-1)


def _mixed(values: Tensor) -> Tensor:
    """A bijection of 64-bit integers that spreads every bit: multiplication wraps around."""
    values = (values ^ (values >> 30)) * 0x3F58476D1CE4E5B9
    values = (values ^ (values >> 27)) * 0x14D049BB133111EB
    return values ^ (values >> 31)


def _padded_sizes(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The next power of two, at least 8: a function of the graph alone."""
    return 2 ** np.ceil(np.log2(np.maximum(sizes, 8))).astype(np.int64)


def _numpy(values: Tensor) -> NDArray[Any]:
    return values.cpu().numpy()
