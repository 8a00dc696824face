"""What training is good for: how far a trained method lies above an untrained one, condition by condition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from graphsc.experiments.comparison import CONTROL
from graphsc.experiments.result import Result

CONDITIONS = (
    "1 % of labels",
    "5 % of labels",
    "10 % of labels",
    "all labels",
    "unseen graphs",
    "other sizes",
)


@dataclass(frozen=True)
class Gain:
    """Points of accuracy above the control, and their standard error over seeds (nan for one)."""

    points: float
    error: float
    seeds: int


def condition_of(result: Result) -> str:
    """Which of the conditions a result was made under."""
    protocol = cast(Mapping[str, object], result.trial["protocol"])
    if protocol.get("splitting") == "size":
        return "other sizes"
    if "label_share" in protocol:
        return f"{100 * cast(float, protocol['label_share']):g} % of labels"
    return "unseen graphs" if result.trial["inductive"] else "all labels"


def gains(results: Sequence[Result], method: str, control: str = CONTROL) -> dict[str, dict[str, Gain]]:
    """By condition and data set, over the seeds that both have, with the usual features and presets.

    Of results whose inner folds had another order, those are taken that there are more pairs of.
    """
    found: dict[tuple[str, str], dict[tuple[str, int], dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for result in results:
        usual = all(
            result.trial[key] == value
            for key, value in (("features", "auto"), ("preset", "default"), ("selection", "last"))
        )
        if usual and result.method in (method, control) and not result.resplit:
            pair = found[condition_of(result), result.data][result.inner_order, result.seed]
            pair[result.method] = 100 * result.accuracy
    gained: dict[str, dict[str, Gain]] = {}
    for condition in CONDITIONS:
        for here, data in found:
            if here != condition:
                continue
            differences: dict[str, list[float]] = {"shuffled": [], "file": []}
            for (order, _), pair in sorted(found[here, data].items()):
                if len(pair) == len({method, control}):
                    differences[order].append(pair[method] - pair[control])
            most = np.array(max(differences.values(), key=len))
            if len(most):
                error = most.std(ddof=1) / np.sqrt(len(most)) if len(most) > 1 else np.nan
                gained.setdefault(condition, {})[data] = Gain(float(most.mean()), float(error), len(most))
    return gained


def gains_markdown(results: Sequence[Result], method: str, control: str = CONTROL) -> str:
    """Conditions by data sets."""
    gained = gains(results, method, control)
    columns = list(dict.fromkeys(data for row in gained.values() for data in row))
    lines = [f"| condition | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    for condition, row in gained.items():
        cells = [_cell(row[data]) if data in row else "" for data in columns]
        lines.append(f"| {condition} | {' | '.join(cells)} |")
    words = f"Points of accuracy of *{method}* above *{control}* ± the standard error over seeds."
    return "\n".join(lines) + f"\n\n{words}\n"


def _cell(gain: Gain) -> str:
    return f"{gain.points:+.2f}" + ("" if np.isnan(gain.error) else f" ± {gain.error:.2f}")
