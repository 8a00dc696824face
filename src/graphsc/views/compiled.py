"""Compiled loops of the views on a CPU; imported only where `array_ops.use_loops` says so.

Random numbers are drawn by the callers, so that each loop makes the same choices as its equivalent in torch.
Indices are unsigned in the loops over edges: numba tests signed ones for being negative, at twice the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@compiled
def smallest_per_segment(keys: Floats, ptr: Longs, counts: Longs) -> Bools:
    """Mask of the `counts[g]` smallest keys of each segment; ties go to the lower position."""
    chosen = np.empty(len(keys), dtype=np.bool_)
    work = np.empty(len(keys))
    for g in range(len(counts)):
        first, end, wanted = ptr[g], ptr[g + 1], counts[g]
        if wanted <= 0 or wanted >= end - first:
            for i in range(first, end):
                chosen[i] = wanted > 0
            continue
        for i in range(first, end):
            work[i] = keys[i]
        # Quickselect: the threshold is the key that sorting would put at position `place`.
        low, high, place = first, end - 1, first + wanted - 1
        while low < high:
            a, b, c = work[low], work[(low + high) // 2], work[high]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = low, high
            while i <= j:
                while work[i] < pivot:
                    i += 1
                while work[j] > pivot:
                    j -= 1
                if i <= j:
                    work[i], work[j] = work[j], work[i]
                    i += 1
                    j -= 1
            if place <= j:
                high = j
            elif place >= i:
                low = i
            else:
                break
        threshold, below = work[place], 0
        for i in range(first, end):
            below += keys[i] < threshold
        ties = wanted - below
        for i in range(first, end):
            chosen[i] = keys[i] < threshold
            if keys[i] == threshold and ties > 0:
                chosen[i] = True
                ties -= 1
    return chosen


@compiled
def add_distinct(table: Longs, sizes: Longs, wanted: Longs, missing: Longs, uniform: Floats) -> int:
    """Add `missing[g]` draws to each segment's set; returns how many were there already.

    `missing` then has their number per segment.

    The set of a segment is a sorted hash table of `3 * wanted[g]` slots, -1 if free. The hash of an element
    grows with it, and elements that collide stay in order. At most the last third is needed for overflow.
    """
    begin, number, total = 0, 0, 0
    for g in range(len(sizes)):
        size, again = sizes[g], 0
        ratio = 2 * wanted[g] / max(size, 1)
        for _ in range(missing[g]):
            element = np.int64(uniform[number] * size)
            number += 1
            slot = begin + np.int64(element * ratio)
            while table[slot] >= 0 and table[slot] < element:
                slot += 1
            if table[slot] == element:
                again += 1
                continue
            while element >= 0:  # shift the elements from here to the next free slot
                table[slot], element = element, table[slot]
                slot += 1
        missing[g] = again
        total += again
        begin += 3 * wanted[g]
    return total


@compiled
def list_distinct(table: Longs, sizes: Longs, wanted: Longs, inverted: Bools) -> Longs:
    """The elements of all sets, ascending, counted over all segments laid end to end.

    Of the segments that are inverted, the elements outside the set.
    """
    total = 0
    for g in range(len(sizes)):
        total += sizes[g] - wanted[g] if inverted[g] else wanted[g]
    result = np.empty(total + 1, dtype=np.int64)
    begin, number, start = 0, 0, 0
    for g in range(len(sizes)):
        end = begin + 3 * wanted[g]
        if inverted[g]:
            outside = np.int64(0)
            for slot in range(begin, end):
                if table[slot] >= 0:
                    while outside < table[slot]:
                        result[number] = start + outside
                        number += 1
                        outside += 1
                    outside += 1
            while outside < sizes[g]:
                result[number] = start + outside
                number += 1
                outside += 1
        else:
            for slot in range(begin, end):
                result[number] = start + table[slot]
                number += table[slot] >= 0
        begin = end
        start += sizes[g]
    return result[:total]


@compiled
def out_edges(rowptr: Ints, source: Ints) -> tuple[Ints, Ints]:
    """Row pointer and destinations of the edges grouped by source."""
    size = len(rowptr) - 1
    out_rowptr = np.zeros(size + 1, dtype=np.int32)
    for e in range(len(source)):
        out_rowptr[source[e] + 1] += 1
    for node in range(size):
        out_rowptr[node + 1] += out_rowptr[node]
    place = out_rowptr[:-1].copy()
    destination = np.empty(len(source), dtype=np.int32)
    for node in range(size):
        for e in range(rowptr[node], rowptr[node + 1]):
            destination[place[source[e]]] = node
            place[source[e]] += 1
    return out_rowptr, destination


@compiled
def _sift_up(times: Floats, nodes: Ints, place: int, time: float, node: np.int32) -> None:
    """Put an element into a binary heap, at a free place or above it."""
    while place > 0:
        parent = (place - 1) // 2
        if times[parent] < time or (times[parent] == time and nodes[parent] < node):
            break
        times[place], nodes[place] = times[parent], nodes[parent]
        place = parent
    times[place], nodes[place] = time, node


@compiled
def grow(
    rowptr: Ints, destination: Ints, ptr: Longs, order: Longs, delay: Floats, spacing: float, counts: Longs
) -> Bools:
    """Mask of the first `counts[g]` nodes that growth reaches in each graph.

    A node's neighbours enter `delay` after the first node beside them, so Dijkstra's algorithm enters every
    node once and never has to lower a time.

    Args:
        rowptr: N + 1, where the edges begin that leave each node.
        destination: E, where they end.
        ptr: G + 1.
        order: N, a permutation: growth starts at the first node of a graph, and restarts at the first unused.
        delay: N.
        spacing: Times the size of a graph: the time between two starts.
        counts: G.
    """
    size = len(delay)
    # The order within each graph.
    graph = np.empty(size, dtype=np.int32)
    for g in range(len(counts)):
        graph[ptr[g] : ptr[g + 1]] = g
    next_start, starts = ptr.copy(), np.empty(size, dtype=np.int32)
    for node in order:
        starts[next_start[graph[node]]] = node
        next_start[graph[node]] += 1

    reached = np.zeros(size, dtype=np.bool_)
    entered = np.zeros(size, dtype=np.bool_)
    times, nodes = np.empty(size), np.empty(size, dtype=np.int32)  # a binary heap, ordered by time and node
    for g in range(len(counts)):
        first, end = ptr[g], ptr[g + 1]
        if counts[g] >= end - first:
            reached[first:end] = True
            continue
        gap = spacing * (end - first)
        length, rank = 0, 0
        for _ in range(counts[g]):
            if length == 0:
                while entered[starts[first + rank]]:
                    rank += 1
                node = starts[first + rank]
                entered[node] = True
                time = rank * gap + delay[node]
            else:
                time, node = times[0], nodes[0]
                length -= 1
                # The smaller child moves up along a path to a leaf; the last element ends on this path.
                place, child = 0, 1
                while child < length:
                    right = child + 1
                    if right < length and (
                        times[right] < times[child]
                        or (times[right] == times[child] and nodes[right] < nodes[child])
                    ):
                        child = right
                    times[place], nodes[place] = times[child], nodes[child]
                    place, child = child, 2 * child + 1
                _sift_up(times, nodes, place, times[length], nodes[length])
            reached[node] = True
            for e in range(np.uint64(rowptr[node]), np.uint64(rowptr[node + 1])):
                other = np.uint32(destination[e])
                if not entered[other]:
                    entered[other] = True
                    _sift_up(times, nodes, length, time + delay[other], np.int32(other))
                    length += 1
    return reached


@compiled
def sort_rows(rowptr: Ints, source: Ints) -> Ints:
    """Positions of the edges, sorted by source within each row; stable."""
    size = len(rowptr) - 1
    place = np.zeros(size + 1, dtype=np.int32)
    row = np.empty(len(source), dtype=np.int32)
    for node in range(size):
        for k in range(rowptr[node], rowptr[node + 1]):
            row[k] = node
            place[source[k] + 1] += 1
    for node in range(size):
        place[node + 1] += place[node]
    by_source = np.empty(len(source), dtype=np.int32)
    for k in range(len(source)):
        by_source[place[source[k]]] = k
        place[source[k]] += 1
    for node in range(size):
        place[node] = rowptr[node]
    order = np.empty(len(source), dtype=np.int32)
    for k in range(len(source)):
        e = by_source[k]
        order[place[row[e]]] = e
        place[row[e]] += 1
    return order


@compiled
def undirected_pairs(rowptr: Ints, source: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Sources, destinations and row pointer of the edges with source <= destination, and their two entries.

    The rows must be sorted. Then the reverse entries of a row's edges come in the order of the rows in which
    the edges are found.
    """
    size = len(rowptr) - 1
    pair_rowptr = np.zeros(size + 1, dtype=np.int32)
    reverse_place = np.empty(size, dtype=np.int32)
    for node in range(size):
        low, high = rowptr[node], rowptr[node + 1]
        while low < high:  # the first entry with source > node
            middle = (low + high) // 2
            if source[middle] <= node:
                low = middle + 1
            else:
                high = middle
        reverse_place[node] = low
        pair_rowptr[node + 1] = pair_rowptr[node] + low - rowptr[node]
    total = pair_rowptr[size]
    pair_source = np.empty(total, dtype=np.int32)
    pair_destination = np.empty(total, dtype=np.int32)
    entry = np.empty(total, dtype=np.int32)
    reverse = np.empty(total, dtype=np.int32)
    for node in range(size):
        e = np.uint64(rowptr[node])
        for pair in range(np.uint64(pair_rowptr[node]), np.uint64(pair_rowptr[node + 1])):
            other = np.uint32(source[e])
            pair_source[pair] = other
            pair_destination[pair] = node
            entry[pair] = e
            if other == node:
                reverse[pair] = e
            else:
                reverse[pair] = reverse_place[other]
                reverse_place[other] += 1
            e += np.uint64(1)
    return pair_source, pair_destination, pair_rowptr, entry, reverse


@compiled
def simple_edges(rowptr: Ints, source: Ints) -> tuple[Ints, Ints]:
    """Row pointer and sources of the edges without self-loops and duplicates; rows must be sorted."""
    size = len(rowptr) - 1
    simple_rowptr = np.zeros(size + 1, dtype=np.int32)
    for node in range(size):
        row, this, excluded = source[rowptr[node] : rowptr[node + 1]], np.int32(node), np.int32(0)
        if len(row):
            excluded += np.int32(row[0] == this)
        for k in range(1, len(row)):
            excluded += np.int32((row[k] == this) | (row[k] == row[k - 1]))
        simple_rowptr[node + 1] = simple_rowptr[node] + len(row) - excluded
    if simple_rowptr[size] == len(source):
        return simple_rowptr, source
    simple_source = np.empty(len(source), dtype=np.int32)
    number = np.uint64(0)
    for node in range(size):
        this = previous = np.int32(node)
        for e in range(np.uint64(rowptr[node]), np.uint64(rowptr[node + 1])):
            simple_source[number] = source[e]
            number += np.uint64((source[e] != this) & (source[e] != previous))
            previous = source[e]
    return simple_rowptr, simple_source[: simple_rowptr[size]]


@compiled
def without_pairs(entry: Ints, reverse: Ints, pairs: Longs, total: int) -> Bools:
    """Mask of `total` entries that is false at both entries of the pairs."""
    keep = np.ones(total, dtype=np.bool_)
    for pair in pairs:
        keep[entry[pair]] = False
        keep[reverse[pair]] = False
    return keep


@compiled
def counts(sizes: Longs, capacity: Longs, rate: float, weaker: float) -> Longs:
    """max(1, round(rate * size)), and one more than at the rate `weaker` if it is not 0, up to capacity."""
    result = np.empty(len(sizes), dtype=np.int64)
    for g in range(len(sizes)):
        count = max(1.0, np.rint(sizes[g] * rate))
        if weaker:
            count = max(count, max(1.0, np.rint(sizes[g] * weaker)) + 1)
        result[g] = min(np.int64(count), capacity[g])
    return result


@compiled
def locate_absent(
    numbers: Longs, ptr: Longs, absent_ptr: Longs, rowptr: Ints, source: Ints, undirected: bool
) -> tuple[Ints, Ints]:
    """Sources and destinations of absent pairs by their ascending numbers; see `operations.AbsentPairs`."""
    sources = np.empty(len(numbers), dtype=np.int32)
    destinations = np.empty(len(numbers), dtype=np.int32)
    node, g, e = 0, 0, 0
    for i in range(len(numbers)):
        if numbers[i] >= absent_ptr[node + 1]:
            while numbers[i] >= absent_ptr[node + 1]:
                node += 1
            while node >= ptr[g + 1]:
                g += 1
            e = rowptr[node]
        # The position among all possible sources, which grows by one with each edge before it.
        other = ptr[g] + numbers[i] - absent_ptr[node] + e - rowptr[node]
        while e < rowptr[node + 1]:
            possible = source[e] if undirected or source[e] < node else source[e] - 1
            if possible > other:
                break
            e += 1
            other += 1
        if not undirected and other >= node:
            other += 1
        sources[i] = other
        destinations[i] = node
    return sources, destinations


@compiled
def rebuild(
    rowptr: Ints,
    source: Ints,
    ptr: Longs,
    nodes: Bools,
    edges: Bools,
    added_source: Ints,
    added_destination: Ints,
    with_origin: bool,
) -> tuple[Ints, Ints, Longs, Longs, Longs]:
    """The adjacency that is left of a batch, with edges added at the end of their rows.

    Args:
        rowptr: N + 1.
        source: E.
        ptr: G + 1.
        nodes: N, true = keep; empty to keep all.
        edges: E, true = keep; empty to keep all.
        added_source: A, in the old node numbers.
        added_destination: A.
        with_origin: Whether `origin` is needed.

    Returns:
        rowptr, source, ptr, the old numbers of the nodes, and the origin of each edge: its old position,
        or E plus its position among the added edges. The last two are empty where they are not needed.
    """
    size, total, added = len(rowptr) - 1, len(source), len(added_source)
    new_number = np.empty(size, dtype=np.int32)
    old_number = np.empty(size if len(nodes) else 0, dtype=np.int64)
    new_size = 0
    if len(nodes):
        for node in range(size):
            old_number[new_size] = node
            new_number[node] = new_size if nodes[node] else -1
            new_size += nodes[node]
        old_number = old_number[:new_size]
    else:
        for node in range(size):
            new_number[node] = node
        new_size = size
    new_ptr = np.zeros(len(ptr), dtype=np.int64)
    for g in range(len(ptr) - 1):
        kept = ptr[g + 1] - ptr[g]
        if len(nodes):
            kept = 0
            for node in range(ptr[g], ptr[g + 1]):
                kept += nodes[node]
        new_ptr[g + 1] = new_ptr[g] + kept

    # Added edges by destination.
    end = np.zeros(size + 1 if added else 0, dtype=np.int32)
    by_row = np.empty(added, dtype=np.int32)
    if added:
        for a in range(added):
            end[added_destination[a] + 1] += 1
        for node in range(size):
            end[node + 1] += end[node]
        for a in range(added):
            by_row[end[added_destination[a]]] = a
            end[added_destination[a]] += 1  # then rows end where they began, so row i is end[i - 1]:end[i]

    new_rowptr = np.empty(new_size + 1, dtype=np.int32)
    new_source = np.empty(total + added, dtype=np.int32)
    origin = np.empty(total + added if with_origin else 0, dtype=np.int64)
    number, row = np.uint64(0), 0
    for node in range(size):
        if new_number[node] < 0:
            continue
        new_rowptr[row] = number
        row += 1
        # Every edge is written, and the next one over it unless it is kept: faster than a branch.
        for e in range(np.uint64(rowptr[node]), np.uint64(rowptr[node + 1])):
            other = new_number[np.uint32(source[e])]
            new_source[number] = other
            if with_origin:
                origin[number] = e
            if len(edges):
                number += np.uint64((other >= 0) & edges[e])
            else:
                number += np.uint64(other >= 0)
        if added:
            for k in range(end[node - 1] if node else 0, end[node]):
                other = new_number[np.uint32(added_source[by_row[k]])]
                if other >= 0:
                    new_source[number] = other
                    if with_origin:
                        origin[number] = total + by_row[k]
                    number += np.uint64(1)
    new_rowptr[row] = number
    return new_rowptr, new_source[:number], new_ptr, old_number, origin[: number if with_origin else 0]


@compiled
def hop_distances(rowptr: Ints, destination: Ints, start: Longs, max_hops: int) -> Longs:
    """N: the number of edges from the start nodes, or max_hops + 1; by breadth-first search."""
    size = len(rowptr) - 1
    distances = np.full(size, max_hops + 1)
    queue = np.empty(size, dtype=np.int64)
    length = 0
    for node in start:
        if distances[node] > 0:
            distances[node] = 0
            queue[length] = node
            length += 1
    k = 0
    while k < length and distances[queue[k]] < max_hops:
        node = queue[k]
        k += 1
        for e in range(rowptr[node], rowptr[node + 1]):
            other = destination[e]
            if distances[other] > max_hops:
                distances[other] = distances[node] + 1
                queue[length] = other
                length += 1
    return distances


@compiled
def walks_with_restart(
    rowptr: Ints, source: Ints, start: Longs, returns: Bools, uniform: NDArray[np.float64]
) -> Longs:
    """(steps + 1) x W: the nodes of walks whose draws are `returns` and `uniform` (steps x W)."""
    steps, count = uniform.shape
    walks = np.empty((steps + 1, count), dtype=np.int64)
    for w in range(count):
        node = start[w]
        walks[0, w] = node
        for step in range(steps):
            degree = rowptr[node + 1] - rowptr[node]
            if returns[step, w] or degree == 0:
                node = start[w]
            else:
                node = np.int64(source[rowptr[node] + np.int64(uniform[step, w] * degree)])
            walks[step + 1, w] = node
    return walks
