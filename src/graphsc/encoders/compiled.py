"""The passes of a GIN layer around its sum over neighbours, as compiled loops (see `core.compiled`).

A pass goes through the batch in blocks of a few hundred nodes, so that what a block needs stays in the cache
between its operations. A block is a run of whole graphs of one part; a part is what BatchNorm normalises
together. Threads take turns of blocks; what they sum up is added to the last arguments, which each thread has
for itself.

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
MULTIPLICATIONS = 2**18  # per matrix product; above it BLAS is slower, and starts threads


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
    rows = max(1, MULTIPLICATIONS // weight.size)
    for i in range(0, len(x), rows):
        np.dot(x[i : i + rows], weight, out[i : i + rows])


@compiled
def _add_product_of_columns(x: Rows, y: Rows, total: Rows, scratch: Rows) -> None:
    """`total += x.T @ y`."""
    rows = max(1, MULTIPLICATIONS // total.size)
    for i in range(0, len(x), rows):
        np.dot(x[i : i + rows].T, y[i : i + rows], scratch)
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
def _normalise(z: Rows, slope: Rows, intercept: Rows, rectify: bool, out: Rows) -> None:
    """`out = slope z + intercept`, then a ReLU if `rectify`."""
    floor = np.float32(0) if rectify else np.float32(-np.inf)
    for i in range(len(z)):
        for j in range(z.shape[1]):
            out[i, j] = max(slope[j] * z[i, j] + intercept[j], floor)


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
    hidden: Rows, x: Rows, own: float, bias: Rows, second: Rows, second_bias: Rows, activate: bool, z: Rows,
    ptr: Ints, part_of: Ints, blocks: Ints, sums: Sums,
) -> None:  # fmt: skip
    """A layer from its sum over neighbours to the input of BatchNorm.

    Args:
        hidden: N x d, A x; becomes relu(own x + A x + bias).
        x: N x d.
        own: Weight of a node itself in the sum.
        bias: d.
        second: d x d, output x input.
        second_bias: d.
        activate: Whether a ReLU follows the product, before BatchNorm.
        z: N x d, set to relu(hidden @ second.T + second_bias).
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        sums: 2 x parts x d; the sums of z and of its squares are added.
    """
    zero = np.float32(0)
    floor = zero if activate else np.float32(-np.inf)
    weight = np.float32(own)
    width = z.shape[1]
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        for i in range(start, stop):
            for j in range(width):
                hidden[i, j] = max(hidden[i, j] + weight * x[i, j] + bias[j], zero)
        _product(hidden[start:stop], second.T, z[start:stop])
        for i in range(start, stop):
            for j in range(width):
                z[i, j] = max(z[i, j] + second_bias[j], floor)
        _add_sums(z[start:stop], sums[0, part])
        _add_products(z[start:stop], z[start:stop], sums[1, part])


@compiled
def batch_norm(
    sums: Sums, nodes: Sums, scale: Rows, shift: Rows, eps: float, shares: Sums, running_mean: Rows,
    running_variance: Rows, moments: Sums, affine: Rows,
) -> None:  # fmt: skip
    """BatchNorm's moments, from sums over nodes.

    Args:
        sums: 2 x parts x d, see `activate_and_project`.
        nodes: parts, numbers of nodes.
        scale: d.
        shift: d.
        eps: Added to the variance.
        shares: parts, the share of each part in the running statistics.
        running_mean: d, updated.
        running_variance: d, updated.
        moments: 2 x parts x d, set to mean and inverse deviation.
        affine: 2 x parts x d, set to slope and intercept.
    """
    for part in range(len(nodes)):
        for j in range(len(scale)):
            mean = sums[0, part, j] / nodes[part]
            variance = max(sums[1, part, j] / nodes[part] - mean * mean, 0.0)
            inverse = 1 / np.sqrt(variance + eps)
            moments[0, part, j], moments[1, part, j] = mean, inverse
            affine[0, part, j] = inverse * scale[j]
            affine[1, part, j] = shift[j] - mean * inverse * scale[j]
            running_mean[j] += shares[part] * (mean - running_mean[j])
            unbiased = variance * nodes[part] / (nodes[part] - 1)
            running_variance[j] += shares[part] * (unbiased - running_variance[j])


@compiled
def normalise_and_project(
    z: Rows, affine: Rows, rectify: bool, first: Rows, nodes: Rows, pooled: Rows, out: Rows, ptr: Ints,
    part_of: Ints, blocks: Ints,
) -> None:  # fmt: skip
    """BatchNorm, the layer's readout, and the first product of the next layer.

    Args:
        z: N x d.
        affine: 2 x parts x d, slope and intercept of BatchNorm.
        rectify: Whether a ReLU follows BatchNorm.
        first: d x d, output x input, of the next layer.
        nodes: N x d, set to the output of the layer. This and the next two are left out if without rows.
        pooled: G x d, set to its sums per graph.
        out: N x d, set to its product with `first.T`.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
    """
    scratch = _scratch(ptr, blocks, z.shape[1])
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        x = nodes[start:stop] if len(nodes) else scratch[: stop - start]
        _normalise(z[start:stop], affine[0, part], affine[1, part], rectify, x)
        if len(pooled):
            _pool(x, ptr, blocks[k], blocks[k + 1], pooled)
        if len(out):
            _product(x, first.T, out[start:stop])


@compiled
def add_gradients(
    gradient: Rows, of_nodes: Rows, of_graphs: Rows, z: Rows, affine: Rows, rectify: bool, ptr: Ints,
    part_of: Ints, blocks: Ints, sums: Sums,
) -> None:  # fmt: skip
    """Add the gradients of a layer's readout to that of its output; g is the gradient of BatchNorm's output.

    Args:
        gradient: N x d, of the layer's output; becomes g.
        of_nodes: N x d; left out if it has no rows.
        of_graphs: G x d, gradients of sums over nodes; left out if it has no rows.
        z: N x d, the input of BatchNorm.
        affine: 2 x parts x d, slope and intercept of BatchNorm.
        rectify: Whether a ReLU follows BatchNorm.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        sums: 2 x parts x d; the sums of g and of g z are added.
    """
    for k in range(len(blocks) - 1):
        part = part_of[blocks[k]]
        _add_gradients(
            gradient, of_nodes, of_graphs, z, affine[:, part], rectify, ptr, blocks[k], blocks[k + 1],
            sums[:, part],
        )  # fmt: skip


@compiled
def _add_gradients(
    gradient: Rows, of_nodes: Rows, of_graphs: Rows, z: Rows, affine: Rows, rectify: bool, ptr: Ints,
    start: int, stop: int, sums: Sums,
) -> None:  # fmt: skip
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
    if rectify:
        zero = np.float32(0)
        for i in range(first, end):
            for j in range(z.shape[1]):
                gradient[i, j] = gradient[i, j] if affine[0, j] * z[i, j] + affine[1, j] > zero else zero
    _add_sums(gradient[first:end], sums[0])
    _add_products(gradient[first:end], z[first:end], sums[1])


@compiled
def batch_norm_backward(
    sums: Sums, nodes: Sums, scale: Rows, moments: Sums, coefficients: Rows, to_scale: Rows, to_shift: Rows
) -> None:
    """The gradient of BatchNorm's input z, as coefficients, and of its weights.

    Args:
        sums: 2 x parts x d, see `add_gradients`.
        nodes: parts, numbers of nodes.
        scale: d.
        moments: 2 x parts x d.
        coefficients: 3 x parts x d, set to a, b, c; the gradient by z is a g + b z + c. It has a part through
            the output, one through the deviation and one through the mean.
        to_scale: d, set to the gradient.
        to_shift: d, set to the gradient.
    """
    to_scale[:] = 0
    to_shift[:] = 0
    for part in range(len(nodes)):
        for j in range(len(scale)):
            mean, inverse, total = moments[0, part, j], moments[1, part, j], sums[0, part, j]
            of_scale = inverse * (sums[1, part, j] - mean * total)
            to_scale[j] += of_scale
            to_shift[j] += total
            a = inverse * scale[j]
            b = -a * inverse * of_scale / nodes[part]
            coefficients[0, part, j] = a
            coefficients[1, part, j] = b
            coefficients[2, part, j] = -a * total / nodes[part] - b * mean


@compiled
def activate_and_project_backward(
    gradient: Rows, coefficients: Rows, z: Rows, hidden: Rows, second: Rows, activate: bool, to_hidden: Rows,
    ptr: Ints, part_of: Ints, blocks: Ints, to_second: Rows, to_biases: Sums,
) -> None:  # fmt: skip
    """Backward from the output of BatchNorm to the sum over neighbours.

    Args:
        gradient: N x d, of the output; overwritten.
        coefficients: 3 x parts x d, see `batch_norm_backward`.
        z: N x d, the input of BatchNorm.
        hidden: N x d.
        second: d x d, output x input.
        activate: Whether z is the output of a ReLU.
        to_hidden: N x d, set to the gradient before the first ReLU.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        to_second: d x d, output x input; the gradient of `second` is added.
        to_biases: 2 x d; the gradients of the two biases are added.
    """
    zero = np.float32(0)
    floor = zero if activate else np.float32(-np.inf)
    width = z.shape[1]
    scratch = np.empty_like(second)
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        a, b, c = coefficients[0, part], coefficients[1, part], coefficients[2, part]
        for i in range(start, stop):
            for j in range(width):
                value = a[j] * gradient[i, j] + b[j] * z[i, j] + c[j]
                gradient[i, j] = value if z[i, j] > floor else zero
        _add_sums(gradient[start:stop], to_biases[1])
        _add_product_of_columns(gradient[start:stop], hidden[start:stop], to_second, scratch)
        _product(gradient[start:stop], second, to_hidden[start:stop])
        for i in range(start, stop):
            for j in range(width):
                to_hidden[i, j] = to_hidden[i, j] if hidden[i, j] > zero else zero
        _add_sums(to_hidden[start:stop], to_biases[0])


@compiled
def normalise_and_project_backward(
    gradient: Rows, to_hidden: Rows, own: float, z: Rows, affine: Rows, rectify: bool, first: Rows,
    of_nodes: Rows, of_graphs: Rows, out: Rows, ptr: Ints, part_of: Ints, blocks: Ints, to_first: Rows,
    sums: Sums,
) -> None:  # fmt: skip
    """Backward from the sum over neighbours to the output of BatchNorm in the layer before.

    Args:
        gradient: N x d, the sum of `to_hidden` over neighbours; overwritten.
        to_hidden: N x d.
        own: Weight of a node itself in the sum.
        z: N x d, of the layer before.
        affine: 2 x parts x d, of its BatchNorm.
        rectify: Whether a ReLU follows its BatchNorm.
        first: d x d, output x input.
        of_nodes: N x d, see `add_gradients`.
        of_graphs: G x d, see `add_gradients`.
        out: N x d, set to the gradient of the output of that BatchNorm.
        ptr: G + 1.
        part_of: G.
        blocks: B + 1.
        to_first: d x d, output x input; the gradient of `first` is added.
        sums: 2 x parts x d, see `add_gradients`.
    """
    weight = np.float32(own)
    scratch, x = np.empty_like(first), _scratch(ptr, blocks, z.shape[1])
    for k in range(len(blocks) - 1):
        start, stop, part = ptr[blocks[k]], ptr[blocks[k + 1]], part_of[blocks[k]]
        for i in range(start, stop):
            for j in range(z.shape[1]):
                gradient[i, j] += weight * to_hidden[i, j]
        _normalise(z[start:stop], affine[0, part], affine[1, part], rectify, x)
        _add_product_of_columns(gradient[start:stop], x[: stop - start], to_first, scratch)
        _product(gradient[start:stop], first, out[start:stop])
        _add_gradients(
            out, of_nodes, of_graphs, z, affine[:, part], rectify, ptr, blocks[k], blocks[k + 1],
            sums[:, part],
        )  # fmt: skip


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
