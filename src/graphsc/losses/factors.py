"""A vector as a row of equal factors, the parts that are masked one by one and kept independent."""

from __future__ import annotations

from torch import Tensor


def split_factors(y: Tensor, factors: int) -> Tensor:
    """Cut each vector into its factors: B x d -> B x n x d_c where d_c = d / n. Before Eq. 10."""
    d = y.shape[-1]
    if factors < 1 or d % factors:
        raise ValueError(
            f"{d} dimensions cannot be cut into {factors} equal factors; choose a number that divides {d}"
        )
    return y.reshape(*y.shape[:-1], factors, d // factors)
