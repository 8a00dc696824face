"""The passes of a GIN layer around its sum over neighbours, as compiled loops (see `core.compiled`).

A pass goes through the batch in blocks of a few hundred nodes, so that what a block needs stays in the cache
between its operations. A block is a run of whole graphs of one part; a part is what BatchNorm normalises
together.

Shapes: N nodes, G graphs, B blocks, d columns. Rows are float32. Sums over nodes are float64: BatchNorm's
gradient is a small difference of large sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled

Rows = NDArray[np.float32]
Sums = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 512  # nodes; a block ends with the graph that reaches it
PRODUCT = 256  # rows per matrix product; more are slower, and make BLAS start threads


@compiled
def make_blocks(ptr: Ints, part_of: Ints) -> Ints:
    """The first graph of each block, with the number of graphs appended (B + 1).

    Args:
        ptr: G + 1, where the nodes of each graph begin.
        part_of: G, the part of each graph.
    """
    graphs = len(ptr) - 1
    starts = np.empty(graphs + 1, np.int64)
    count = 0
    for g in range(graphs):
        if g == 0 or part_of[g] != part_of[g - 1] or ptr[g] - ptr[starts[count - 1]] >= BLOCK:
            starts[count] = g
            count += 1
    starts[count] = graphs
    return starts[: count + 1].copy()


@compiled
def _scratch(ptr: Ints, blocks: Ints, width: int) -> Rows:
    """Rows for the largest block."""
    size = 0
    for k in range(len(blocks) - 1):
        size = max(size, ptr[blocks[k + 1]] - ptr[blocks[k]])
    return np.empty((size, width), np.float32)


@compiled
def _product(x: Rows, weight: Rows, out: Rows) -> None:
    """`out = x @ weight`."""
    for i in range(0, len(x), PRODUCT):
        np.dot(x[i : i + PRODUCT], weight, out[i : i + PRODUCT])


@compiled
def _add_product_of_columns(x: Rows, y: Rows, total: Rows, scratch: Rows) -> None:
    """`total += x.T @ y`."""
    for i in range(0, len(x), PRODUCT):
        np.dot(x[i : i + PRODUCT].T, y[i : i + PRODUCT], scratch)
        total += scratch


@compiled
def _add_sums(x: Rows, total: Sums) -> None:
    """`total += sum of x`; four rows at a time, because additions in double precision are slow."""
    end = len(x) // 4 * 4
    for i in range(0, end, 4):
        for j in range(x.shape[1]):
            total[j] += np.float64((x[i, j] + x[i + 1, j]) + (x[i + 2, j] + x[i + 3, j]))
    for i in range(end, len(x)):
        for j in range(x.shape[1]):
            total[j] += np.float64(x[i, j])


@compiled
def _add_products(x: Rows, y: Rows, total: Sums) -> None:
    """`total += sum of x y`."""
    end = len(x) // 4 * 4
    for i in range(0, end, 4):
        for j in range(x.shape[1]):
            one = x[i, j] * y[i, j] + x[i + 1, j] * y[i + 1, j]
            two = x[i + 2, j] * y[i + 2, j] + x[i + 3, j] * y[i + 3, j]
            total[j] += np.float64(one + two)
    for i in range(end, len(x)):
        for j in range(x.shape[1]):
            total[j] += np.float64(x[i, j] * y[i, j])


@compiled
def _normalise(z: Rows, slope: Rows, intercept: Rows, out: Rows) -> None:
    """`out = slope z + intercept`."""
    for i in range(len(z)):
        for j in range(z.shape[1]):
            out[i, j] = slope[j] * z[i, j] + intercept[j]


@compiled
def _pool(x: Rows, ptr: Ints, start: int, stop: int, pooled: Rows) -> None:
    """`pooled` of graphs start to stop is the sum of their nodes in x."""
    first = ptr[start]
    for g in range(start, stop):
        for j in range(x.shape[1]):
            pooled[g, j] = 0
        for i in range(ptr[g] - first, ptr[g + 1] - first):
            for j in range(x.shape[1]):
                pooled[g, j] += x[i, j]


@compiled
def activate_and_project(
    hidden: Rows, x: Rows, own: float, bias: Rows, second: Rows, second_bias: Rows, activate: bool,
    scale: Rows, shift: Rows, eps: float, shares: Sums, running: tuple[Rows, Rows], ptr: Ints, part_of: Ints,
    blocks: Ints, z: Rows, moments: Sums, affine: Rows,
) -> None:  # fmt: skip
    """A layer from its sum over neighbours to the moments of BatchNorm.

    Args:
        hidden: N x d, A x; becomes relu(own x + A x + bias).
        x: N x d.
        own: Weight of a node itself in the sum.
        bias: d.
        second: d x d, output x input.
        second_bias: d.
        activate: Whether a ReLU follows the product.
        scale: d, of BatchNorm.
        shift: d, of BatchNorm.
        eps: Of BatchNorm.
        shares: parts, the share of each part in the running statistics.
        running: Mean and variance, d each, updated.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        z: N x d, set to relu(hidden @ second.T + second_bias).
        moments: 2 x parts x d, set to the mean of z and the inverse of its deviation.
        affine: 2 x parts x d, set to slope and intercept of BatchNorm.
    """
    zero = np.float32(0)
    floor = zero if activate else np.float32(-np.inf)
    weight = np.float32(own)
    parts, width = moments.shape[1], z.shape[1]
    nodes, sums = np.zeros(parts), np.zeros((2, parts, width))
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        for i in range(start, stop):
            for j in range(width):
                hidden[i, j] = max(hidden[i, j] + weight * x[i, j] + bias[j], zero)
        _product(hidden[start:stop], second.T, z[start:stop])
        for i in range(start, stop):
            for j in range(width):
                z[i, j] = max(z[i, j] + second_bias[j], floor)
        nodes[part] += stop - start
        _add_sums(z[start:stop], sums[0, part])
        _add_products(z[start:stop], z[start:stop], sums[1, part])
    for part in range(parts):
        for j in range(width):
            mean = sums[0, part, j] / nodes[part]
            variance = max(sums[1, part, j] / nodes[part] - mean * mean, 0.0)
            inverse = 1 / np.sqrt(variance + eps)
            moments[0, part, j], moments[1, part, j] = mean, inverse
            affine[0, part, j] = inverse * scale[j]
            affine[1, part, j] = shift[j] - mean * inverse * scale[j]
            running[0][j] += shares[part] * (mean - running[0][j])
            unbiased = variance * nodes[part] / (nodes[part] - 1)
            running[1][j] += shares[part] * (unbiased - running[1][j])


@compiled
def normalise_and_project(
    z: Rows, affine: Rows, first: Rows, ptr: Ints, part_of: Ints, blocks: Ints, nodes: Rows, pooled: Rows,
    out: Rows,
) -> None:  # fmt: skip
    """BatchNorm, the layer's readout, and the first product of the next layer.

    Args:
        z: N x d.
        affine: 2 x parts x d, slope and intercept of BatchNorm.
        first: d x d, output x input, of the next layer.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        nodes: N x d, set to the output of BatchNorm. This and the next two are left out if without rows.
        pooled: G x d, set to its sums per graph.
        out: N x d, set to its product with `first.T`.
    """
    scratch = _scratch(ptr, blocks, z.shape[1])
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        x = nodes[start:stop] if len(nodes) else scratch[: stop - start]
        _normalise(z[start:stop], affine[0, part], affine[1, part], x)
        if len(pooled):
            _pool(x, ptr, blocks[k], blocks[k + 1], pooled)
        if len(out):
            _product(x, first.T, out[start:stop])


@compiled
def add_gradients(
    gradient: Rows, of_nodes: Rows, of_graphs: Rows, z: Rows, ptr: Ints, part_of: Ints, blocks: Ints,
    sums: Sums,
) -> None:  # fmt: skip
    """Add the gradients of a layer's readout to the gradient g of its output, in place.

    Args:
        gradient: N x d, g.
        of_nodes: N x d; left out if it has no rows.
        of_graphs: G x d, gradients of sums over nodes; left out if it has no rows.
        z: N x d, the input of BatchNorm.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        sums: 2 x parts x d, set to the sums of g and of g z.
    """
    sums[:] = 0
    for k in range(len(blocks) - 1):
        part = part_of[blocks[k]]
        _add_gradients(gradient, of_nodes, of_graphs, z, ptr, blocks[k], blocks[k + 1], sums[:, part])


@compiled
def _add_gradients(
    gradient: Rows, of_nodes: Rows, of_graphs: Rows, z: Rows, ptr: Ints, start: int, stop: int, sums: Sums
) -> None:
    first, end = ptr[start], ptr[stop]
    if len(of_graphs):
        for g in range(start, stop):
            for i in range(ptr[g], ptr[g + 1]):
                for j in range(z.shape[1]):
                    gradient[i, j] += of_graphs[g, j]
    if len(of_nodes):
        for i in range(first, end):
            for j in range(z.shape[1]):
                gradient[i, j] += of_nodes[i, j]
    _add_sums(gradient[first:end], sums[0])
    _add_products(gradient[first:end], z[first:end], sums[1])


@compiled
def activate_and_project_backward(
    gradient: Rows, sums: Sums, z: Rows, moments: Sums, hidden: Rows, scale: Rows, activate: bool,
    second: Rows, ptr: Ints, part_of: Ints, blocks: Ints, to_hidden: Rows, to_bias: Rows, to_second: Rows,
    to_second_bias: Rows, to_scale: Rows, to_shift: Rows,
) -> None:  # fmt: skip
    """Backward from the output of BatchNorm to the sum over neighbours.

    Args:
        gradient: N x d, of the output; overwritten.
        sums: 2 x parts x d, see `add_gradients`.
        z: N x d, the input of BatchNorm.
        moments: 2 x parts x d, mean and inverse deviation.
        hidden: N x d.
        scale: d, of BatchNorm.
        activate: Whether z is the output of a ReLU.
        second: d x d, output x input.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        to_hidden: N x d, set to the gradient before the first ReLU.
        to_bias: d, set to the gradient of the bias. The others likewise.
        to_second: d x d, output x input.
        to_second_bias: d.
        to_scale: d.
        to_shift: d.
    """
    zero = np.float32(0)
    floor = zero if activate else np.float32(-np.inf)
    parts, width = moments.shape[1], z.shape[1]
    nodes = np.zeros(parts)
    for g in range(len(part_of)):
        nodes[part_of[g]] += ptr[g + 1] - ptr[g]
    # The gradient by z is `slope gradient + pull z + offset`: through the output, the mean and the deviation.
    slope, pull, offset = (
        np.empty((parts, width), np.float32),
        np.empty((parts, width), np.float32),
        np.empty((parts, width), np.float32),
    )
    to_scale[:] = 0
    to_shift[:] = 0
    for part in range(parts):
        for j in range(width):
            mean, inverse, total = moments[0, part, j], moments[1, part, j], sums[0, part, j]
            of_scale = inverse * (sums[1, part, j] - mean * total)
            to_scale[j] += of_scale
            to_shift[j] += total
            a = inverse * scale[j]
            b = -a * inverse * of_scale / nodes[part]
            slope[part, j], pull[part, j], offset[part, j] = a, b, -a * total / nodes[part] - b * mean
    scratch = np.empty_like(second)
    to_second[:] = 0
    sum_of_bias, sum_of_second_bias = np.zeros(width), np.zeros(width)
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        for i in range(start, stop):
            for j in range(width):
                value = slope[part, j] * gradient[i, j] + pull[part, j] * z[i, j] + offset[part, j]
                gradient[i, j] = value if z[i, j] > floor else zero
        _add_sums(gradient[start:stop], sum_of_second_bias)
        _add_product_of_columns(gradient[start:stop], hidden[start:stop], to_second, scratch)
        _product(gradient[start:stop], second, to_hidden[start:stop])
        for i in range(start, stop):
            for j in range(width):
                to_hidden[i, j] = to_hidden[i, j] if hidden[i, j] > zero else zero
        _add_sums(to_hidden[start:stop], sum_of_bias)
    to_bias[:] = sum_of_bias
    to_second_bias[:] = sum_of_second_bias


@compiled
def normalise_and_project_backward(
    gradient: Rows, to_hidden: Rows, own: float, z: Rows, affine: Rows, first: Rows, ptr: Ints,
    part_of: Ints, blocks: Ints, of_nodes: Rows, of_graphs: Rows, out: Rows, to_first: Rows, sums: Sums,
) -> None:  # fmt: skip
    """Backward from the sum over neighbours to the output of the layer before.

    Args:
        gradient: N x d, the sum of `to_hidden` over neighbours; overwritten.
        to_hidden: N x d.
        own: Weight of a node itself in the sum.
        z: N x d, of the layer before.
        affine: 2 x parts x d, of its BatchNorm.
        first: d x d, output x input.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        of_nodes: N x d, see `add_gradients`.
        of_graphs: G x d, see `add_gradients`.
        out: N x d, set to the gradient of the output of the layer before.
        to_first: d x d, set to the gradient of `first`.
        sums: 2 x parts x d, see `add_gradients`.
    """
    weight = np.float32(own)
    scratch, x = np.empty_like(first), _scratch(ptr, blocks, z.shape[1])
    to_first[:] = 0
    sums[:] = 0
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        for i in range(start, stop):
            for j in range(z.shape[1]):
                gradient[i, j] += weight * to_hidden[i, j]
        _normalise(z[start:stop], affine[0, part], affine[1, part], x)
        _add_product_of_columns(gradient[start:stop], x[: stop - start], to_first, scratch)
        _product(gradient[start:stop], first, out[start:stop])
        _add_gradients(out, of_nodes, of_graphs, z, ptr, blocks[k], blocks[k + 1], sums[:, part])


@compiled
def sum_by_code(codes: Ints, rows: Rows, out: Rows) -> None:
    """`out[c]` is the sum of the rows with code c in any column.

    Args:
        codes: N x K, from 0 to C - 1.
        rows: N x d.
        out: C x d.
    """
    total = np.zeros(out.shape)
    for i in range(codes.shape[0]):
        for k in range(codes.shape[1]):
            code = codes[i, k]
            for j in range(rows.shape[1]):
                total[code, j] += rows[i, j]
    out[:] = total
