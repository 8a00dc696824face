"""What the tables' stored results say of the claims made with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphsc.evaluation.ranks import average_ranks
from graphsc.experiments.comparison import Comparison
from graphsc.experiments.reproduce.verdict import NOT_TESTED, Finding, by_share
from graphsc.experiments.table import LEVEL

OURS = "graphsc"
YARDSTICKS = ("raw", "untrained")  # rows that the paper has not
FEWEST = 3  # data sets below which ranks are not spoken of
FIRST = 5 / 8  # of the data sets, as the paper has it
AMONG = 3  # places that still count as near the top


def first_places(table: Comparison) -> Finding:
    """On how many sets GraphSC is first among the systems of the paper."""
    systems, sets = _systems(table)
    if len(sets) < FEWEST:
        return _too_few(systems, sets)
    best = {}
    for column in sets:
        means = {method: table.cells[method, column].summary.mean for method in systems}
        best[column] = max(means, key=lambda method: means[method])
    first = [column for column in sets if best[column] == OURS]
    said = ", ".join(f"{column}: {method}" for column, method in best.items())
    text = f"First on {len(first)} of the {len(sets)} data sets that every system has ({said})."
    if len(first) >= FIRST * len(sets):
        return Finding("holds", text)
    return Finding("holds partly" if first else "does not hold", text)


def average_rank(table: Comparison) -> Finding:
    """Whether GraphSC has the best average rank."""
    systems, sets = _systems(table)
    if len(sets) < FEWEST:
        return _too_few(systems, sets)
    means = np.array([[table.cells[method, c].summary.mean for c in sets] for method in systems])
    ranks = dict(zip(systems, average_ranks(means).tolist(), strict=True))
    order = sorted(systems, key=lambda method: (ranks[method], method))
    place = order.index(OURS) + 1
    shown = ", ".join(f"{method} {ranks[method]:.2f}" for method in order[:AMONG])
    text = (
        f"Average ranks over {len(sets)} data sets: {shown}; {OURS} has {ranks[OURS]:.2f}, place {place} of "
        f"{len(systems)}."
    )
    if place == 1:
        return Finding("holds", text)
    return Finding("holds partly" if place <= AMONG else "does not hold", text)


def below(table: Comparison, ablation: str) -> Finding:
    """Whether an ablation is below the full model, set by set."""
    sets = _complete(table, [OURS, ablation])
    if not sets:
        return NOT_TESTED
    gaps = {c: table.cells[OURS, c].summary.mean - table.cells[ablation, c].summary.mean for c in sets}
    lower = [c for c in sets if gaps[c] > 0]
    p_values = {c: table.cells[ablation, c].p_value for c in lower}
    sure = [c for c, p_value in p_values.items() if p_value is not None and p_value < LEVEL]
    said = ", ".join(f"{c} {gap:+.2f}" for c, gap in gaps.items())
    text = (
        f"The full model minus {ablation}, in points: {said}. Above on {len(lower)} of {len(sets)}, "
        f"significantly on {len(sure)}."
    )
    return Finding(by_share(len(lower), len(sets)), text)


def _systems(table: Comparison) -> tuple[list[str], list[str]]:
    systems = [method for method in table.methods if method not in YARDSTICKS]
    return systems, _complete(table, systems)


def _complete(table: Comparison, methods: Sequence[str]) -> list[str]:
    """Columns in which every method has a number."""
    return [c for c in table.columns if all((method, c) in table.cells for method in methods)]


def _too_few(systems: Sequence[str], sets: Sequence[str]) -> Finding:
    return Finding("not tested", f"All {len(systems)} systems have run on {len(sets)} data sets only.")
