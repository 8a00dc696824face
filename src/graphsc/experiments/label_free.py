"""Can a run be judged without labels? How figures of the representation go with accuracy over stored results.

Within a data set and a seed, because folds differ from seed to seed: there, over the methods, the rank
correlation of each figure with accuracy. Then the mean over seeds and sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from graphsc.experiments.result import Result

FIGURES = ("effective_rank", "uniformity", "alignment", "mean_cosine")
LEAST = 4  # methods; a rank correlation of fewer says nothing


def correlations(results: Sequence[Result], figure: str) -> dict[str, list[float]]:
    """By data set, a rank correlation a seed."""
    groups: dict[tuple[str, str, int], list[Result]] = defaultdict(list)
    for result in results:
        usual = result.trial["features"] == "auto" and result.trial["preset"] == "default"
        if figure in result.health and usual and result.whole:
            groups[result.data, result.inner_order, result.seed].append(result)
    found: dict[str, list[float]] = defaultdict(list)
    for (data, _, _), group in sorted(groups.items()):
        if len(group) >= LEAST:
            found[data].append(
                rank_correlation([r.health[figure] for r in group], [r.accuracy for r in group])
            )
    return dict(found)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's: Pearson's of the ranks; 0 where all are equal."""
    a, b = rankdata(one), rankdata(other)
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def correlations_markdown(results: Sequence[Result]) -> str:
    """Figures by data sets."""
    by_figure = {figure: found for figure in FIGURES if (found := correlations(results, figure))}
    columns = list(dict.fromkeys(data for found in by_figure.values() for data in found))
    lines = [
        f"| figure | {' | '.join(columns)} | mean |",
        "| --- |" + " ---: |" * (len(columns) + 1),
    ]
    for figure, found in by_figure.items():
        values = [float(np.mean(found[data])) if data in found else np.nan for data in columns]
        cells = ["" if np.isnan(value) else f"{value:+.2f}" for value in [*values, float(np.nanmean(values))]]
        lines.append(f"| {figure.replace('_', ' ')} | {' | '.join(cells)} |")
    count = max((sum(map(len, found.values())) for found in by_figure.values()), default=0)
    words = (
        f"Spearman's rank correlation with test accuracy over the trained methods of a seed, mean over the "
        f"seeds of a data set; {count} pairs of a set and a seed."
    )
    return "\n".join(lines) + f"\n\n{words}\n"
