"""Array operations that are two to six times faster in NumPy or SciPy than in torch on a CPU.

On other devices the same operation runs in torch. Nothing here is differentiable.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def use_numpy(values: Tensor) -> bool:
    """Whether NumPy can read these values in place."""
    return values.is_cpu


def compress(values: Tensor, mask: Tensor) -> Tensor:
    """The values (1-d) where the mask is true."""
    if use_numpy(values):
        return torch.from_numpy(values.numpy().compress(mask.numpy()))
    return values.masked_select(mask)


def flatnonzero(mask: Tensor) -> Tensor:
    """The indices where a mask is true, int64."""
    if use_numpy(mask):
        return torch.from_numpy(np.flatnonzero(mask.numpy()))
    return mask.nonzero().flatten()


def set_flags(mask: Tensor, index: Tensor, value: bool) -> Tensor:
    """Set the mask in place at an int64 index, which may contain duplicates; returns the mask."""
    if use_numpy(mask):
        mask.numpy()[index.numpy()] = value
        return mask
    return mask.index_fill_(0, index, value)


def repeat(values: Tensor, counts: Tensor, total: int) -> Tensor:
    """Repeat each value as often as its count (int64); `total` is the sum of the counts."""
    if use_numpy(values):
        return torch.from_numpy(np.repeat(values.numpy(), counts.numpy()))
    return torch.repeat_interleave(values, counts, output_size=total)


def take(values: Tensor, index: Tensor) -> Tensor:
    """Rows of `values` by an int32 or int64 index."""
    if values.dtype is torch.bool:  # torch gathers bytes faster than booleans
        return values.view(torch.uint8).index_select(0, index).view(torch.bool)
    return values.index_select(0, index)


def sort(values: Tensor) -> Tensor:
    """The values in ascending order."""
    if use_numpy(values):
        return torch.from_numpy(np.sort(values.numpy()))
    return values.sort().values


def cumulative_count(mask: Tensor) -> Tensor:
    """The number of true entries before each position, int32, with the total appended."""
    if use_numpy(mask):
        total = np.zeros(len(mask) + 1, dtype=np.int32)
        np.cumsum(mask.numpy(), dtype=np.int32, out=total[1:])
        return torch.from_numpy(total)
    return torch.cat([mask.new_zeros(1, dtype=torch.int32), mask.cumsum(0, dtype=torch.int32)])


def pointer(counts: Tensor) -> Tensor:
    """The CSR pointer of segments of these lengths: [0, c0, c0 + c1, ...]."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def counting_sort(values: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Stable argsort of int32 values from 0 to size - 1, in linear time on a CPU.

    Returns:
        The sorting indices, and a pointer (size + 1) to where each value begins in the sorted order.
    """
    if not use_numpy(values):
        order = values.sort(stable=True)
        every = torch.arange(size + 1, dtype=values.dtype, device=values.device)
        return order.indices, torch.searchsorted(order.values, every, out_int32=True)
    if len(values) == 0:
        return torch.zeros(0, dtype=torch.int32), torch.zeros(size + 1, dtype=torch.int32)
    from scipy.sparse import csr_array  # imported here because it is slow to import

    # Converting a one-row sparse matrix from CSR to CSC is a counting sort.
    row = (np.arange(len(values), dtype=np.int32), values.numpy(), np.array([0, len(values)], np.int32))
    columns = csr_array(row, shape=(1, size)).tocsc()
    return torch.from_numpy(columns.data), torch.from_numpy(columns.indptr)


def searchsorted_right(values: Tensor, queries: Tensor) -> Tensor:
    """The number of sorted values that are <= each query, int64; fastest if queries are sorted too."""
    if use_numpy(values):
        return torch.from_numpy(np.searchsorted(values.numpy(), queries.numpy(), side="right"))
    return torch.searchsorted(values, queries, right=True)
