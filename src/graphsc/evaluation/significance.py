"""Whether a difference in accuracy is more than noise: paired tests and their correction for many.

Two questions are kept apart. On one data set, over common folds: `corrected_t_test`, here. Over data sets,
one accuracy each: `signed_rank` for two methods, `ranks` for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from graphsc.core.errors import ConfigError, DataError

# Accuracies are shares of at most a few million graphs: a smaller difference is only rounding.
DECIMALS = 12


@dataclass(frozen=True)
class TestResult:
    """A paired test: its statistic, two-sided p-value, and the mean difference it is about.

    `error` is the corrected standard error of the mean; `degrees` are those of freedom.
    """

    statistic: float
    p_value: float
    mean: float
    error: float
    degrees: int


def corrected_t_test(differences: ArrayLike, test_share: float) -> TestResult:
    """Test over repeated cross-validation whether the mean paired difference is zero.

    differences: accuracy of one method minus another's on common folds, runs x folds or flat, n in all.
    test_share: the share of graphs in a test fold, 1/k for k folds. The training sets of folds overlap, which
    the usual t-test takes for independence; Nadeau and Bengio (2003) widen its variance (for r runs of k
    folds: Bouckaert and Frank, 2004):

        t = mean / sqrt((1/n + test_share / (1 - test_share)) s^2), n - 1 degrees of freedom.

    All differences zero: p = 1. All equal and not zero: p = 0. One difference: no test, p is nan.
    """
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
    """Correct the p-values of several comparisons with one control: Holm's step-down, in their order.

    The i-th smallest of m (i from 0) times m - i, never below its predecessor, at most 1. Compare with the
    level as usual. A nan, a comparison that could not be made, stays nan and does not count.
    """
    given = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    present = np.flatnonzero(~np.isnan(given))
    if ((given[present] < 0.0) | (given[present] > 1.0)).any():
        raise DataError("a p-value lies outside 0 and 1")
    order = present[np.argsort(given[present], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    return adjusted


def verdict(p_value: float, level: float = 0.05) -> str:
    """Return the plain word for a p-value: significant, within noise, or not tested (nan)."""
    if np.isnan(p_value):
        return "not tested"
    return "significant" if p_value < level else "within noise"


# One number for many runs, and the two deviations that papers mix up.


@dataclass(frozen=True)
class Summary:
    """Accuracy of a method on one data set, over seeds (whole repetitions) and the folds within each.

    `over_seeds` is the deviation of the run means; papers print the one with ddof 0 (numpy's default),
    inference wants ddof 1. `over_folds` is the deviation of the folds of a run, averaged over the runs;
    it is larger, because a fold has few graphs, and says little about the method. The deviations with ddof 1
    are nan where there is one value only.
    """

    mean: float
    over_seeds_ddof0: float
    over_seeds_ddof1: float
    over_folds_ddof0: float
    over_folds_ddof1: float
    seeds: int
    folds: int


def run_means(accuracy: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Average seeds x folds over the folds: one accuracy a seed."""
    means: np.ndarray[tuple[int], np.dtype[np.float64]] = _seeds_by_folds(accuracy).mean(axis=1)
    return means


def summarise(accuracy: ArrayLike) -> Summary:
    """Take seeds x folds together: the mean of the run means, and each deviation under its own name."""
    values = _seeds_by_folds(accuracy)
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


def _seeds_by_folds(accuracy: ArrayLike) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    values = np.asarray(accuracy, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise DataError(f"accuracies of shape {values.shape} are not seeds x folds")
    if not np.isfinite(values).all():
        raise DataError("an accuracy is not a number", hint="summarise only runs that are complete")
    return values


# Two methods over several data sets: Wilcoxon's signed-rank test, exact also with ties.


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


# Several methods over several data sets: average ranks and which of them can be told apart.
#
# After Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006). A table is
# methods x data sets, larger is better, nan where a result is missing.


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
