"""What was given is to be found again: node features, and vectors that a mask must not move."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def code_error(prediction: Tensor, columns: Tensor, floats: Tensor | None = None) -> Tensor:
    """The mean square of prediction - target, for a target of one-hot codes and floats, which is never made.

    prediction: N x w. columns: N x K, the columns in which a row's target is 1. floats: N x F, the target's
    last F columns. Elsewhere the target is 0. Returns a scalar, 0 for no rows.
    """
    error = prediction.scatter_add(1, columns, prediction.new_tensor(-1.0).expand(columns.shape))
    if floats is not None and floats.shape[1]:
        error = torch.cat([error[:, : -floats.shape[1]], error[:, -floats.shape[1] :] - floats], dim=1)
    return error.square().sum() / max(error.numel(), 1)


def root_mean_square(one: Tensor, other: Tensor, rows: Tensor | None = None) -> Tensor:
    """The square root of the mean of (one - other)^2, over all rows or those where `rows` is true.

    one, other: N x d, rows: N. Returns a scalar. Where the two are equal, or no row is
    chosen, it is 0 and so is its gradient.
    """
    difference = one - other if rows is None else (one - other)[rows]
    length: Tensor = torch.linalg.vector_norm(difference)
    return length / math.sqrt(max(difference.numel(), 1))
