"""BatchNorm whose batch is that of all ranks; torch's own refuses tensors on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphsc.encoders.counted_norm import CountedBatchNorm
from graphsc.training.ranks import sum_over_ranks


class SharedBatchNorm(CountedBatchNorm):
    """In training, mean and variance over the nodes of all ranks; in evaluation, as ever."""

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width; every rank must call it equally often, with as many parts."""
        if not self.training:
            return nn.BatchNorm1d.forward(self, rows)
        sizes = [len(rows)] if parts is None else list(parts)
        weights = rows.new_ones(len(rows)) if counts is None else counts.to(rows.dtype)
        pairs = zip(torch.split(rows, sizes), torch.split(weights, sizes), strict=True)
        return torch.cat([self._whole(part, share) for part, share in pairs])

    def _whole(self, rows: Tensor, weights: Tensor) -> Tensor:
        nodes = sum_over_ranks(weights.sum())
        mean = sum_over_ranks(weights @ rows) / nodes
        centred = rows - mean
        # Centred first: the difference of two large means would lose digits.
        variance = sum_over_ranks(weights @ centred.square()) / nodes
        self.move(mean.detach(), variance.detach(), nodes.detach())
        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias


def share_batchnorm(module: nn.Module) -> None:
    """Let every BatchNorm of the module see the whole batch; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # without weights it takes no part in training
            part.__class__ = SharedBatchNorm
