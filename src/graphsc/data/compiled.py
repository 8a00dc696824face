"""Compiled loops that gather and expand batches on a CPU; imported only where `use_compiled()` says so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled

ABSENT = np.iinfo(np.int64).min  # of a table of integers; no code, and no integer that a file would name


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
def pyg_index_of(
    rowptr: NDArray[np.int32], source: NDArray[np.int32], ptr: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of a batch, for PyG: `edge_index_of`, the graph of each node, and where edges of graphs begin."""
    edges = np.empty((2, len(source)), dtype=np.int64)
    batch = np.empty(len(rowptr) - 1, dtype=np.int64)
    edge_ptr = np.empty(len(ptr), dtype=np.int64)
    # Rows are counted where they begin and summed up: a loop per row would be too short to predict its end.
    begins = np.zeros(len(source) + 1, dtype=np.int32)
    for row in range(1, len(rowptr)):
        begins[rowptr[row]] += 1
    row = 0
    for place in range(len(source)):
        edges[0, place] = source[place]
        row += begins[place]
        edges[1, place] = row
    edge_ptr[0] = 0
    for graph in range(len(ptr) - 1):
        batch[ptr[graph] : ptr[graph + 1]] = graph
        edge_ptr[graph + 1] = rowptr[ptr[graph + 1]]
    return edges, batch, edge_ptr


@compiled
def _reversed_rows(
    source: NDArray[np.int64], destination: NDArray[np.int64], nodes: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], bool]:
    """`csr_of_edges` of edges that are sorted by (source, destination), if every edge has its reverse.

    The rows of the sources are then those of the destinations, and an edge's old number is the place of its
    reverse. If the last value is false, the others mean nothing.
    """
    rowptr = np.zeros(nodes + 1, dtype=np.int32)
    new_source = np.empty(len(source), dtype=np.int32)
    for e in range(len(source)):
        rowptr[source[e] + 1] = e + 1
        new_source[e] = destination[e]
    for node in range(nodes):  # rows without edges
        rowptr[node + 1] = max(rowptr[node], rowptr[node + 1])
    order = np.empty(len(source), dtype=np.int64)
    return rowptr, new_source, order, _find_reverses(rowptr, new_source, source, order)


@compiled
def _find_reverses(
    rowptr: NDArray[np.int32],
    source: NDArray[np.int32],
    destination: NDArray[np.int64],
    reverse: NDArray[np.int64],
) -> bool:
    """Whether every edge has its reverse; then the place of each is written to `reverse`, if it is not empty.

    Rows and sources ascend, so the reverses of a node's edges come in the order of its own row.
    """
    # Unsigned indices are not tested for being negative.
    cursor = rowptr.copy()
    wrong, last = np.int64(0), np.uint64(max(len(source), 1) - 1)
    wanted = len(reverse) > 0
    for e in range(len(source)):
        other = np.uint64(source[e])
        place = np.uint64(cursor[other])
        wrong |= source[min(place, last)] ^ destination[e]
        if wanted:
            reverse[e] = place
        cursor[other] = place + np.uint64(1)
    for node in range(len(rowptr) - 1):  # every row is used up, none of them twice
        wrong |= cursor[node] ^ rowptr[node + 1]
    return bool(wrong == 0)


@compiled
def csr_of_edges(
    source: NDArray[np.int64], destination: NDArray[np.int64], nodes: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], bool]:
    """Row pointer by destination, sources and order of edges, sorted by (destination, source), stably.

    The last value is whether every edge has its reverse. The row pointer is empty if an edge is out of range.
    """
    edges = len(source)
    # Whether they are sorted already, as most graphs of PyG are: by source, by both with the source first, or
    # by both with the destination first.
    by_source, by_rows, by_destination = True, True, True
    outside = False
    last_from, last_to = np.int64(-1), np.int64(-1)
    for e in range(edges):  # without branches, of which there would be one in every few edges
        start, end = source[e], destination[e]
        outside |= (start < 0) | (end < 0) | (start >= nodes) | (end >= nodes)
        ascends = start >= last_from
        by_source &= ascends
        by_rows &= (start > last_from) | ((start == last_from) & (end >= last_to))
        by_destination &= (end > last_to) | ((end == last_to) & ascends)
        last_from, last_to = start, end
    if outside:
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64), False
    if by_rows and not by_destination:
        rowptr, new_source, order, undirected = _reversed_rows(source, destination, nodes)
        if undirected:
            return rowptr, new_source, order, True
    rowptr = np.zeros(nodes + 1, dtype=np.int32)
    new_source = np.empty(edges, dtype=np.int32)
    order = np.arange(edges)
    new_destination = destination
    if by_destination:
        for e in range(edges):
            new_source[e] = source[e]
            rowptr[destination[e] + 1] = e + 1
        for node in range(nodes):  # rows without edges
            rowptr[node + 1] = max(rowptr[node], rowptr[node + 1])
    else:
        for e in range(edges):
            rowptr[destination[e] + 1] += 1
        for node in range(nodes):
            rowptr[node + 1] += rowptr[node]
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
        new_destination = np.empty(edges, dtype=np.int64)
        cursor = rowptr.copy()
        for number in numbers:
            end = destination[number]
            place = cursor[end]
            order[place] = number
            new_source[place] = source[number]
            new_destination[place] = end
            cursor[end] = place + 1
    undirected = _find_reverses(rowptr, new_source, new_destination, np.empty(0, np.int64))
    return rowptr, new_source, order, undirected


@compiled
def translate(
    values: NDArray[np.int64],
    tables: NDArray[np.int64],
    start: NDArray[np.int64],
    lowest: NDArray[np.int64],
) -> tuple[NDArray[np.int64], bool]:
    """Look up integers (rows x columns) in a table per column, and whether all of them are there.

    Args:
        values: Of every row.
        tables: All tables end to end; `ABSENT` for an integer that a column does not know.
        start: Columns + 1: where the table of each column begins.
        lowest: The integer that the first entry of each column's table is for.
    """
    result = np.empty_like(values)
    complete = True
    for column in range(values.shape[1]):
        table, low = tables[start[column] : start[column + 1]], lowest[column]
        if not len(table):
            complete &= not len(values)
            continue
        last = np.uint64(len(table) - 1)
        for row in range(len(values)):
            place = np.uint64(values[row, column] - low)  # negative ones become the largest
            number = table[min(place, last)]
            complete &= (place <= last) & (number != ABSENT)
            result[row, column] = number
    return result, complete
