"""Several methods over several data sets: average ranks and which of them can be told apart.

After Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006). A table is
methods x data sets, larger is better, nan where a result is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.statistics import DECIMALS


def average_ranks(table: ArrayLike) -> NDArray[np.float64]:
    """Return one average rank a method: 1 is the best on a data set, ties share the mean of their places.

    A method's average is over the data sets where it is present, its rank there among those present; nan for
    a method without any. Where much is missing, ranks come from unequal contests: `friedman` and the
    critical difference then speak only of the complete data sets.
    """
    values = _table(table)
    # `omit` ranks among what is there and leaves nan where it was.
    ranks = stats.rankdata(-values, axis=0, nan_policy="omit")
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    sums = np.where(present, ranks, 0.0).sum(axis=1)
    averages: NDArray[np.float64] = np.full(len(values), np.nan)
    np.divide(sums, counts, out=averages, where=counts > 0)
    return averages


def complete(table: ArrayLike) -> NDArray[np.float64]:
    """Keep the data sets on which every method has a result."""
    values = _table(table)
    return values[:, ~np.isnan(values).any(axis=0)]


@dataclass(frozen=True)
class FriedmanResult:
    """Friedman's chi-square and its sharper F form by Iman and Davenport, each with its p-value.

    `datasets` are the complete ones that were used.
    """

    chi_square: float
    chi_square_p: float
    f: float
    f_p: float
    datasets: int


def friedman(table: ArrayLike, *, tie_correction: bool = True) -> FriedmanResult:
    """Test whether all methods are equal, over the data sets on which every one has a result.

    With N data sets, k methods and average ranks R_j:

        chi2 = 12 N / (k (k + 1)) (sum_j R_j^2 - k (k + 1)^2 / 4),  F = (N - 1) chi2 / (N (k - 1) - chi2),

    with k - 1, and k - 1 and (k - 1)(N - 1) degrees of freedom. The correction divides chi2 by the
    share of the ranks' variance that ties leave; Demsar's example does without. All tied everywhere: p = 1.
    The same order on every data set: F is infinite and its p is 0. Two methods and two complete data sets
    are needed.
    """
    values = complete(table)
    k, n = values.shape
    if k < 2 or n < 2:
        raise DataError(
            f"{k} methods on {n} data sets complete for all of them cannot be compared",
            hint="give at least two methods and two data sets without gaps",
        )
    ranks = stats.rankdata(-values, axis=0)
    chi = 12.0 * n / (k * (k + 1)) * float(((ranks.mean(axis=1) - (k + 1) / 2.0) ** 2).sum())
    if tie_correction:
        untied = 12.0 * float(((ranks - (k + 1) / 2.0) ** 2).sum()) / (n * k * (k**2 - 1))
        chi = chi / untied if untied > 0.0 else 0.0
    rest = n * (k - 1) - chi
    f = float((n - 1) * chi / rest) if rest > 1e-9 else np.inf
    return FriedmanResult(
        chi_square=chi,
        chi_square_p=float(stats.chi2.sf(chi, k - 1)),
        f=f,
        f_p=float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
        datasets=n,
    )


def critical_difference(methods: int, datasets: int, level: float = 0.05) -> float:
    """Nemenyi's: two average ranks nearer than this cannot be told apart.

    CD = q sqrt(k (k + 1) / (6 N)), q the upper `level` point of the studentised range of k means with
    infinite degrees of freedom, divided by sqrt(2).
    """
    if methods < 2 or datasets < 1 or not 0.0 < level < 1.0:
        raise ConfigError(
            f"no critical difference for {methods} methods, {datasets} data sets and level {level:g}",
            hint="give two methods or more, a data set or more, and a level between 0 and 1",
        )
    q = float(stats.studentized_range.isf(level, methods, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(methods * (methods + 1) / (6.0 * datasets)))


def indistinct_groups(ranks: Sequence[float] | NDArray[np.float64], difference: float) -> list[list[int]]:
    """List the largest sets of methods, by position, whose ranks all lie within `difference`; best first.

    Sets may overlap; a method that can be told from all others is in none. Methods without a rank (nan) are
    left out.
    """
    values = np.asarray(ranks, dtype=np.float64)
    order = [int(i) for i in np.argsort(values, kind="stable") if not np.isnan(values[i])]
    groups: list[list[int]] = []
    reached = 0
    for start, method in enumerate(order):
        end = start
        while end < len(order) and values[order[end]] - values[method] < difference:
            end += 1
        if end - start > 1 and end > reached:
            groups.append(order[start:end])
        reached = max(reached, end)
    return groups


def _table(table: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(table, dtype=np.float64).round(DECIMALS)
    if values.ndim != 2 or not values.size:
        raise DataError(f"a table of shape {values.shape} is not methods x data sets")
    if np.isinf(values).any():
        raise DataError("a result of the table is infinite", hint="write nan where a result is missing")
    return values
