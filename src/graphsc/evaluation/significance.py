"""Means with deviations, and whether a difference between methods is more than noise.

- One data set, two methods, common folds: `corrected_t_test`, with `holm` for several comparisons.
- Several data sets, two methods, one accuracy each: `wilcoxon`.
- One test set, any score: `bootstrap` over its rows, with `percentile_interval`.
- Several data sets, several methods: `average_ranks`, `critical_difference` and
  `indistinct_groups`, after Demsar, "Statistical comparisons of classifiers over multiple data sets",
  JMLR 7 (2006). Their tables are methods x data sets, larger is better, NaN where a result is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator

# Accuracies are ratios of at most a few million graphs, so a smaller difference is rounding.
DECIMALS = 12


@dataclass(frozen=True)
class Summary:
    """Accuracy of a method on one data set, over seeds (whole repetitions) and the folds of each.

    `over_seeds` is the deviation of the run means. Papers usually print it with ddof 0 (NumPy's default);
    inference needs ddof 1. `over_folds` is the deviation over the folds of a run, averaged over runs; it is
    larger, because a fold has few graphs, and says little about the method. Deviations with ddof 1 are NaN
    for a single value.
    """

    mean: float
    over_seeds_ddof0: float
    over_seeds_ddof1: float
    over_folds_ddof0: float
    over_folds_ddof1: float
    seeds: int
    folds: int


def summarise(accuracy: ArrayLike) -> Summary:
    """Summarise accuracies, seeds x folds: the mean of the run means, and every deviation."""
    values = np.asarray(accuracy, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise DataError(f"accuracies of shape {values.shape} are not seeds x folds")
    if not np.isfinite(values).all():
        raise DataError("an accuracy is not a number", hint="summarise only runs that are complete")
    seeds, folds = values.shape
    means = values.mean(axis=1)
    return Summary(
        mean=float(means.mean()),
        over_seeds_ddof0=float(means.std()),
        over_seeds_ddof1=float(means.std(ddof=1)) if seeds > 1 else np.nan,
        over_folds_ddof0=float(values.std(axis=1).mean()),
        over_folds_ddof1=float(values.std(axis=1, ddof=1).mean()) if folds > 1 else np.nan,
        seeds=seeds,
        folds=folds,
    )


@dataclass(frozen=True)
class TestResult:
    """A paired test: statistic, two-sided p-value, and the mean difference that was tested.

    `error` is the corrected standard error of the mean, `degrees` the degrees of freedom.
    """

    statistic: float
    p_value: float
    mean: float
    error: float
    degrees: int


def corrected_t_test(differences: ArrayLike, test_share: float) -> TestResult:
    """Test over repeated cross-validation whether the mean paired difference is zero.

    The training sets of the folds overlap, which the usual t-test ignores. Nadeau and Bengio (2003) enlarge
    its variance (for r runs of k folds: Bouckaert and Frank, 2004):

        t = mean / sqrt((1/n + test_share / (1 - test_share)) s^2), n - 1 degrees of freedom.

    All differences zero: p = 1. All equal and not zero: p = 0. One difference: p is NaN.

    Args:
        differences: accuracies of one method minus those of another on common folds, in any shape, n in all.
        test_share: the share of graphs in a test fold, 1/k for k folds.
    """
    from scipy import stats  # slow to import

    values = np.asarray(differences, dtype=np.float64).ravel().round(DECIMALS)
    if not 0.0 < test_share < 1.0:
        raise ConfigError(
            f"test_share is {test_share:g}", hint="give the share of a test fold, e.g. 0.1 of 10"
        )
    if not len(values) or not np.isfinite(values).all():
        raise DataError(
            "there are no differences to test" if not len(values) else "a difference is not a number",
            hint="test only folds that both methods finished",
        )
    n, mean = len(values), float(values.mean())
    if n == 1:
        return TestResult(np.nan, np.nan, mean, np.nan, 0)
    if np.ptp(values) == 0.0:
        statistic = float(np.copysign(np.inf, mean)) if mean else 0.0
        return TestResult(statistic, 0.0 if mean else 1.0, mean, 0.0, n - 1)
    error = float(np.sqrt((1.0 / n + test_share / (1.0 - test_share)) * values.var(ddof=1)))
    statistic = mean / error
    return TestResult(statistic, float(2.0 * stats.t.sf(abs(statistic), n - 1)), mean, error, n - 1)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down correction of the p-values of several comparisons, in their order.

    The i-th smallest of m (i from 0) is multiplied by m - i; the result is at least its predecessor and at
    most 1. NaN, for a comparison that was not made, stays NaN and does not count.
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    present = np.flatnonzero(~np.isnan(p))
    if ((p[present] < 0.0) | (p[present] > 1.0)).any():
        raise DataError("a p-value lies outside 0 and 1")
    order = present[np.argsort(p[present], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted


def verdict(p_value: float, level: float = 0.05) -> str:
    """A p-value in words: significant, within noise, or not tested (NaN)."""
    if np.isnan(p_value):
        return "not tested"
    return "significant" if p_value < level else "within noise"


def bootstrap(
    statistic: Callable[[NDArray[np.int64]], ArrayLike], rows: int, *, resamples: int = 1000, seed: int = 0
) -> NDArray[np.float64]:
    """Draw rows with replacement and compute a statistic of each sample: resamples x values.

    Args:
        statistic: Takes the positions of the drawn rows (`rows` of them) and returns its values.
        rows: Number of rows, such as test molecules, that are drawn together.
        resamples: Number of samples.
        seed: Seed of the draws; statistics of the same rows and seed are paired.
    """
    generator = numpy_generator(seed, "bootstrap")
    draws = [np.atleast_1d(statistic(generator.integers(rows, size=rows))) for _ in range(resamples)]
    return np.asarray(draws, dtype=np.float64)


def percentile_interval(draws: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """The central interval of bootstrapped values; NaN ones are left out, and (NaN, NaN) is of none."""
    values = np.asarray(draws, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values):
        return np.nan, np.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class WilcoxonResult:
    """The signed-rank test of two methods: the statistic T and its exact two-sided p-value.

    `pairs` is the number of data sets on which the methods differ, `smallest_p` the p-value that this number
    of data sets gives if one method is better on all of them.
    """

    statistic: float
    p_value: float
    pairs: int
    smallest_p: float


def wilcoxon(a: ArrayLike, b: ArrayLike) -> WilcoxonResult:
    """Test over data sets whether one method tends to be better than the other.

    The statistic is the smaller of the two rank sums. The p-value is the share of the 2^n assignments of
    signs to the ranks that are at least as extreme, exact also for tied (averaged) ranks. Six pairs are the
    fewest that can reach p < 0.05. No pair: p = 1.

    Args:
        a: the accuracies of one method, one per data set, NaN where missing.
        b: those of the other. Data sets with a NaN or without a difference are left out.
    """
    from scipy import stats  # slow to import

    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(
            f"the two methods have accuracies of shapes {first.shape} and {second.shape}",
            hint="give one number per data set, the same data sets for both",
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
    """The exact two-sided p-value, from the distribution of the rank sum over all signs.

    Not by scipy: its `wilcoxon(method="exact")` ignores ties, and its permutation method enumerates 2^n
    signs, which takes seconds for 13 data sets and minutes for 20. Ranks are multiples of a half.
    """
    doubled = np.rint(2.0 * ranks).astype(np.int64)
    probability = np.zeros(int(doubled.sum()) + 1)
    probability[0] = 1.0
    for rank in doubled:
        shifted = np.zeros_like(probability)
        shifted[rank:] = probability[: len(probability) - rank]
        probability = (probability + shifted) / 2.0
    return float(min(1.0, 2.0 * probability[: round(2.0 * statistic) + 1].sum()))


def average_ranks(table: ArrayLike) -> NDArray[np.float64]:
    """The average rank of each method: 1 is the best on a data set, ties share the mean of their ranks.

    A method is ranked on the data sets where it has a result, among the methods that have one too; NaN for a
    method without any. Where much is missing, averages are over unequal comparisons: the critical
    difference then applies to the complete data sets only.
    """
    from scipy import stats  # slow to import

    values = _as_table(table)
    ranks = stats.rankdata(-values, axis=0, nan_policy="omit")
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    sums = np.where(present, ranks, 0.0).sum(axis=1)
    averages: NDArray[np.float64] = np.full(len(values), np.nan)
    np.divide(sums, counts, out=averages, where=counts > 0)
    return averages


def complete(table: ArrayLike) -> NDArray[np.float64]:
    """The columns of the data sets on which every method has a result."""
    values = _as_table(table)
    return values[:, ~np.isnan(values).any(axis=0)]


def critical_difference(methods: int, datasets: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference: average ranks that differ by less are not significantly different.

    CD = q sqrt(k (k + 1) / (6 N)) with q the upper `level` point of the studentised range of k means with
    infinite degrees of freedom, divided by sqrt(2).
    """
    from scipy import stats  # slow to import

    if methods < 2 or datasets < 1 or not 0.0 < level < 1.0:
        raise ConfigError(
            f"no critical difference for {methods} methods, {datasets} data sets and level {level:g}",
            hint="give two methods or more, a data set or more, and a level between 0 and 1",
        )
    q = float(stats.studentized_range.isf(level, methods, np.inf)) / np.sqrt(2.0)
    return float(q * np.sqrt(methods * (methods + 1) / (6.0 * datasets)))


def indistinct_groups(ranks: Sequence[float] | NDArray[np.float64], difference: float) -> list[list[int]]:
    """The largest groups of methods, by position, whose ranks differ by less than `difference`; best first.

    Groups may overlap; a method that differs from all others is in none, nor is one without a rank (NaN).
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


def _as_table(table: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(table, dtype=np.float64).round(DECIMALS)
    if values.ndim != 2 or not values.size:
        raise DataError(f"a table of shape {values.shape} is not methods x data sets")
    if np.isinf(values).any():
        raise DataError("a result of the table is infinite", hint="write nan where a result is missing")
    return values
