"""BatchNorm whose batch is that of all ranks; torch's own refuses tensors on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch.distributed as dist
from torch import Tensor, nn

from graphsc.encoders.counted_norm import CountedBatchNorm


class SharedBatchNorm(CountedBatchNorm):
    """In training, mean and variance over the nodes of all ranks; in evaluation, as ever."""

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width; every rank must call it equally often, with as many parts."""
        if self.training and counts is None:
            counts = rows.new_ones(len(rows))
        return super().forward(rows, counts, parts)

    def total(self, sums: Tensor) -> Tensor:
        """Over the rows of all ranks."""
        sums = sums.contiguous()
        dist.all_reduce(sums)
        return sums


def share_batchnorm(module: nn.Module) -> None:
    """Let every BatchNorm of the module see the whole batch; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # without weights it takes no part in training
            part.__class__ = SharedBatchNorm
