"""BatchNorm whose batch is that of all ranks; torch's own refuses tensors on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from graphsc.encoders.counted_norm import CountedBatchNorm, parted


class SharedBatchNorm(CountedBatchNorm):
    """In training, mean and variance over the nodes of all ranks; in evaluation, as ever."""

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width; every rank must call it equally often, with as many parts."""
        if not self.training:
            return super().forward(rows)
        return self.normalise(rows, counts, [len(rows)] if parts is None else list(parts))

    def merged(self, moments: Tensor) -> Tensor:
        """Those of all ranks' nodes, from the moments of each rank's (Chan et al.), in one message."""
        found = [torch.empty_like(moments) for _ in range(dist.get_world_size())]
        dist.all_gather(found, moments)
        nodes, means, variances = parted(torch.stack(found))
        total = nodes.sum(0)
        mean = (nodes * means).sum(0) / total
        variance = (nodes * (variances + (means - mean).square())).sum(0) / total
        return torch.cat([total, mean, variance], dim=1)

    def total(self, sums: Tensor) -> Tensor:
        """Over the rows of all ranks."""
        dist.all_reduce(sums)
        return sums


def share_batchnorm(module: nn.Module) -> None:
    """Let every BatchNorm of the module see the whole batch; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # without weights it takes no part in training
            part.__class__ = SharedBatchNorm
