"""Whether a difference in accuracy is more than noise: paired tests and their correction for many.

Two questions are kept apart. On one data set, over common folds: `corrected_t_test`, here. Over data sets,
one accuracy each: `signed_rank` for two methods, `ranks` for more.
"""

from __future__ import annotations

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
