"""Compiled loops that gather and expand batches on a CPU; imported only where `use_compiled()` says so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled


@compiled
def gather_edges(
    source: NDArray[np.unsignedinteger],
    destination: NDArray[np.unsignedinteger],
    edge_ptr: NDArray[np.int64],
    node_ptr: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Sources and row pointer of a batch of the graphs in these rows of a collection's flat arrays.

    The third value is the first row with an edge out of range, or -1. It is tested before anything is written
    by it, since compiled loops do not test their indices.
    """
    nodes, edges = 0, 0
    for row in rows:
        nodes += node_ptr[row + 1] - node_ptr[row]
        edges += edge_ptr[row + 1] - edge_ptr[row]
    new_source = np.empty(edges, dtype=np.int32)
    end = np.zeros(nodes + 1, dtype=np.int32)
    first, number = 0, 0
    for row in rows:
        old_source = source[edge_ptr[row] : edge_ptr[row + 1]]
        old_destination = destination[edge_ptr[row] : edge_ptr[row + 1]]
        part = new_source[number : number + len(old_source)]
        row_end = end[first + 1 : first + 1 + node_ptr[row + 1] - node_ptr[row]]
        largest = np.uint64(0)
        for e in range(len(part)):
            largest = max(largest, np.uint64(max(old_source[e], old_destination[e])))
        if len(part) and largest >= np.uint64(len(row_end)):
            return new_source, end, row
        for e in range(len(part)):
            part[e] = old_source[e] + np.int32(first)
        for e in range(len(part)):  # destinations ascend, so the last edge of a row is the last to write
            row_end[old_destination[e]] = number + e + 1
        number += len(part)
        first += len(row_end)
    for node in range(nodes):  # rows without edges
        end[node + 1] = max(end[node], end[node + 1])
    return new_source, end, -1


@compiled
def expand_rows(ptr: NDArray[np.signedinteger]) -> NDArray[np.signedinteger]:
    """The row of each element, where elements `ptr[i]:ptr[i + 1]` are those of row i."""
    rows = np.empty(ptr[-1], dtype=ptr.dtype)
    for row in range(len(ptr) - 1):
        rows[ptr[row] : ptr[row + 1]] = row
    return rows
