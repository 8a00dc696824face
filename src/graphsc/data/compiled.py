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
        for place in range(ptr[row], ptr[row + 1]):
            rows[place] = row
    return rows


@compiled
def edge_index_of(rowptr: NDArray[np.int32], source: NDArray[np.int32]) -> NDArray[np.int64]:
    """2 x E: sources and destinations of edges that are grouped by destination."""
    edges = np.empty((2, len(source)), dtype=np.int64)
    for row in range(len(rowptr) - 1):
        for place in range(rowptr[row], rowptr[row + 1]):
            edges[0, place] = source[place]
            edges[1, place] = row
    return edges


@compiled
def csr_of_edges(
    source: NDArray[np.int64], destination: NDArray[np.int64], nodes: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], bool]:
    """Row pointer by destination, sources and order of edges, sorted by (destination, source), stably.

    The last value is whether every edge has its reverse. The row pointer is empty if an edge is out of range.
    """
    edges = len(source)
    least, largest = 0, -1
    for e in range(edges):
        least = min(least, source[e], destination[e])
        largest = max(largest, source[e], destination[e])
    if least < 0 or largest >= nodes:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64), False
    by_source, by_destination = True, True  # whether they are sorted already, as most graphs of PyG are
    for e in range(1, edges):
        ascends = source[e] >= source[e - 1]
        by_source &= ascends
        same = destination[e] == destination[e - 1]
        by_destination &= (destination[e] > destination[e - 1]) | (same & ascends)
    rowptr = np.zeros(nodes + 1, dtype=np.int32)
    for e in range(edges):
        rowptr[destination[e] + 1] += 1
    for node in range(nodes):
        rowptr[node + 1] += rowptr[node]
    order = np.empty(edges, dtype=np.int64)
    new_source = np.empty(edges, dtype=np.int32)
    if by_destination:
        for e in range(edges):
            order[e] = e
            new_source[e] = source[e]
    else:
        numbers = np.arange(edges)  # sorted by source
        if not by_source:
            cursor = np.zeros(nodes + 1, dtype=np.int32)
            for e in range(edges):
                cursor[source[e] + 1] += 1
            for node in range(nodes):
                cursor[node + 1] += cursor[node]
            for e in range(edges):
                numbers[cursor[source[e]]] = e
                cursor[source[e]] += 1
        cursor = rowptr.copy()
        for number in numbers:
            place = cursor[destination[number]]
            order[place] = number
            new_source[place] = source[number]
            cursor[destination[number]] = place + 1
    # Rows and sources ascend, so the reverses of a node's edges come in the order of its own row.
    cursor = rowptr.copy()
    symmetric = True
    for row in range(nodes):
        for e in range(rowptr[row], rowptr[row + 1]):
            other = new_source[e]
            place = cursor[other]
            symmetric &= place < rowptr[other + 1] and new_source[place] == row
            cursor[other] = place + 1
        if not symmetric:
            break
    return rowptr, new_source, order, symmetric
