"""Reconstruction losses: node features, embeddings that should not change, and a Gaussian prior."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity


def one_hot_mse(prediction: Tensor, columns: Tensor, floats: Tensor | None = None) -> Tensor:
    """Mean squared error against one-hot codes and floats, without building the dense target.

    Args:
        prediction: N x w.
        columns: N x K, the columns in which a row's target is 1; the target is 0 elsewhere.
        floats: N x F, the last F columns of the target.

    Returns:
        A scalar, 0 for no rows.
    """
    error = prediction.scatter_add(1, columns, prediction.new_tensor(-1.0).expand(columns.shape))
    if floats is not None and floats.shape[1]:
        error = torch.cat([error[:, : -floats.shape[1]], error[:, -floats.shape[1] :] - floats], dim=1)
    return error.square().sum() / max(error.numel(), 1)


def rmse(one: Tensor, other: Tensor, rows: Tensor | None = None) -> Tensor:
    """Root mean squared error of two N x d tensors, over all rows or those where the mask `rows` (N) is true.

    Where the tensors are equal, or no row is selected, value and gradient are 0.
    """
    difference = one - other if rows is None else (one - other)[rows]
    length: Tensor = torch.linalg.vector_norm(difference)
    return length / math.sqrt(max(difference.numel(), 1))


def gaussian_kl(mean: Tensor, log_std: Tensor) -> Tensor:
    """Divergence of Gaussians with independent coordinates from the standard one, KL(N(m, s^2) || N(0, 1)).

    Args:
        mean: N x d.
        log_std: N x d, log s.

    Returns:
        N: 1/2 sum_j m_j^2 + s_j^2 - 1 - 2 log s_j, at least 0.
    """
    return (mean.square() + (2 * log_std).exp() - 1 - 2 * log_std).sum(1) / 2


def scaled_cosine_error(prediction: Tensor, target: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Mean over rows of (1 - cos(prediction, target))^gamma, both N x w (GraphMAE, Eq. 2).

    The length of a row does not matter, and a gamma above 1 gives rows that are nearly right less weight. A
    zero row has cosine 0.

    Returns:
        A scalar from 0 to 2^gamma, 0 for no rows.
    """
    if gamma < 1:
        raise ValueError(f"gamma must be at least 1, not {gamma}")
    # Rounding can push a cosine above 1, where a power of the difference is not a number.
    errors = (1 - cosine_similarity(prediction, target, dim=1)).clamp(min=0)
    return errors.pow(gamma).sum() / max(len(errors), 1)
