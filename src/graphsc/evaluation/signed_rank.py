"""Two methods over several data sets: Wilcoxon's signed-rank test, exact also with ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from graphsc.core.errors import DataError
from graphsc.evaluation.statistics import DECIMALS


@dataclass(frozen=True)
class WilcoxonResult:
    """The signed-rank test of two methods: T, its exact two-sided p-value, and what p could be at best.

    `pairs` counts the data sets on which the two differ, `smallest_p` is the p-value if all of them agreed.
    """

    statistic: float
    p_value: float
    pairs: int
    smallest_p: float

    def caveat(self, level: float = 0.05) -> str | None:
        """Say that no result on so few data sets could have been significant; None where one could."""
        if self.smallest_p < level:
            return None
        return (
            f"{self.pairs} data sets on which two methods differ cannot give p below {level:g}: "
            f"the smallest possible is {self.smallest_p:.3g}"
        )


def wilcoxon(a: ArrayLike, b: ArrayLike) -> WilcoxonResult:
    """Test over data sets whether one method tends to be better than the other.

    a, b: one accuracy a data set, nan where it is missing; a pair with a nan or without a difference is left
    out. The statistic is the smaller of the two sums of ranks. The p-value counts, among all 2^n ways of
    giving signs to the ranks, those at least as extreme; ties, with their averaged ranks, are counted as
    they are. Six pairs are the fewest that can reach p < 0.05. No pair: p = 1.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(
            f"the two methods have accuracies of shapes {first.shape} and {second.shape}",
            hint="give one number a data set, the same data sets for both",
        )
    differences = (first - second).round(DECIMALS)
    differences = differences[np.isfinite(differences) & (differences != 0.0)]
    n = len(differences)
    if n == 0:
        return WilcoxonResult(0.0, 1.0, 0, 1.0)
    ranks = stats.rankdata(np.abs(differences))
    statistic = float(min(ranks[differences > 0].sum(), ranks[differences < 0].sum()))
    return WilcoxonResult(statistic, _signed_rank_p(ranks, statistic), n, 2.0 ** (1 - n))


def _signed_rank_p(ranks: NDArray[np.float64], statistic: float) -> float:
    """Two-sided, from the distribution of the sum over all choices of sign; ranks are whole or half."""
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(chance)
        shifted[rank:] = chance[: len(chance) - rank]
        chance = (chance + shifted) / 2.0
    return float(min(1.0, 2.0 * chance[: round(2.0 * statistic) + 1].sum()))
