"""What the order of a file does to inner folds: how far they lie below the test, by data set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from graphsc.evaluation.protocol import ORDERS, InnerOrder
from graphsc.experiments.result import Result


def orders_markdown(results: Sequence[Result]) -> str:
    """Data sets by orders: mean test accuracy minus mean inner accuracy, and of how many results."""
    gaps: dict[tuple[str, InnerOrder], list[float]] = defaultdict(list)
    for result in results:
        if result.whole:
            gaps[result.data, result.inner_order].append(100 * (result.accuracy - result.inner_accuracy))
    orders = [order for order in ORDERS if any(order == one for _, one in gaps)]
    lines = [
        f"| data | {' | '.join(f'{ORDERS[order]} | results' for order in orders)} |",
        "| --- |" + " ---: |" * 2 * len(orders),
    ]
    for data in dict.fromkeys(data for data, _ in gaps):
        found = [gaps.get((data, order), []) for order in orders]
        cells = [f"{np.mean(one):+.1f} | {len(one)}" if one else " | " for one in found]
        lines.append(f"| {data} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\nMean test accuracy minus mean accuracy on inner folds, in points.\n"
