"""What the figures' stored results say of the claims made with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphsc.experiments.reproduce.convergence import curve_of
from graphsc.experiments.reproduce.expand import Cell
from graphsc.experiments.reproduce.gather import Found, Series, sets_of
from graphsc.experiments.reproduce.negatives import BATCH, SAMPLED, by_negatives
from graphsc.experiments.reproduce.rates import accuracies, axes_of, reference_of
from graphsc.experiments.reproduce.verdict import NOT_TESTED, Finding, by_share
from graphsc.experiments.reproduce.weights import SYMBOLS, by_weight

OURS = "graphsc"
STABLE = 2.0  # points between the best and the worst within which accuracy counts as stable
RISE = 0.5  # points above the untrained encoder up to which nothing was learned
DROP = 2.0  # points below the best from which accuracy has fallen off

Rule = Callable[[Sequence[Cell], Sequence[Found]], Finding]


def rdt_does_not_learn(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    gains = {
        data: curve.gain
        for data in sets_of(cells)
        if (curve := curve_of(found, data, "graphsc-rdt")) is not None
    }
    if not gains:
        return NOT_TESTED
    flat = sum(gain <= RISE for gain in gains.values())
    said = ", ".join(f"{data} {gain:+.2f}" for data, gain in gains.items())
    return Finding(
        by_share(flat, len(gains)), f"The end of graphsc-rdt minus the untrained encoder, in points: {said}."
    )


def twenty_not_sixty(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    pairs = _epochs(cells, found, ["graphsc-nm"])
    if not pairs:
        return NOT_TESTED
    said = f"Epochs to come near the end, {OURS} and the variant: {_said(pairs)}."
    if all(ours <= 20 and theirs > 60 for _, _, ours, theirs in pairs):
        return Finding("holds", said)
    faster = sum(ours < theirs for _, _, ours, theirs in pairs)
    return Finding("holds partly" if 2 * faster > len(pairs) else "does not hold", said)


def faster_than_others(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    pairs = _epochs(cells, found, ["graphsc-rd", "graphsc-nb"])
    if not pairs:
        return NOT_TESTED
    faster = sum(ours < theirs for _, _, ours, theirs in pairs)
    said = f"Epochs to come near the end, {OURS} and the variant: {_said(pairs)}."
    return Finding(by_share(faster, len(pairs)), said)


def _epochs(
    cells: Sequence[Cell], found: Sequence[Found], others: Sequence[str]
) -> list[tuple[str, str, int, int]]:
    """Data set, variant, our epochs, its epochs."""
    pairs = []
    for data in sets_of(cells):
        ours = curve_of(found, data, OURS)
        for other in others:
            theirs = curve_of(found, data, other)
            if ours is not None and theirs is not None:
                pairs.append((data, other, ours.near, theirs.near))
    return pairs


def _said(pairs: Sequence[tuple[str, str, int, int]]) -> str:
    return ", ".join(f"{data} {ours} and {theirs} ({other})" for data, other, ours, theirs in pairs)


def graphcl_depends(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    drops = {}
    for data in sets_of(cells):
        for part, words in ((BATCH, "batch size varied"), (SAMPLED, "K drawn")):
            line = _complete(by_negatives(cells, found, data, part, "graphcl"))
            if line:
                drops[f"{data}, {words}"] = max(line) - line[0]
    if not drops:
        return NOT_TESTED
    fallen = sum(drop >= DROP for drop in drops.values())
    said = "; ".join(f"{where} {drop:.2f}" for where, drop in drops.items())
    return Finding(
        by_share(fallen, len(drops)), f"GraphCL at its smallest K below its best, in points: {said}."
    )


def graphsc_does_not_depend(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    spreads = {
        data: max(line) - min(line)
        for data in sets_of(cells)
        if (line := _complete(by_negatives(cells, found, data, BATCH, OURS)))
    }
    return _stable("Best minus worst over the batch sizes", spreads)


def stable_over_weights(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    spreads = {
        f"{data} {symbol}": max(line) - min(line)
        for data in sets_of(cells)
        for part, symbol in SYMBOLS.items()
        if (line := _complete(by_weight(cells, found, data, part, OURS)))
    }
    return _stable("Best minus worst over the six values", spreads)


def stable_over_rates(cells: Sequence[Cell], found: Sequence[Found]) -> Finding:
    weak, strong = axes_of(cells)
    possible = np.array([[low < high for high in strong] for low in weak])
    narrow, above, said = [], [], []
    for data in sets_of(cells):
        values = accuracies(cells, found, data, OURS)[possible]
        beside = reference_of(found, data).mean
        if np.isnan(values).any() or np.isnan(beside):
            continue
        spread, share = float(np.ptp(values)), float((values > beside).mean())
        narrow.append(spread <= STABLE)
        above.append(share >= 0.75)
        said.append(f"{data}: within {spread:.2f} points, above GraphCL at {share:.0%} of the pairs")
    if not said:
        return NOT_TESTED
    text = f"{'; '.join(said)}."
    if all(narrow) and all(above):
        return Finding("holds", text)
    partly = max(2 * sum(narrow), 2 * sum(above)) > len(said)
    return Finding("holds partly" if partly else "does not hold", text)


def _complete(line: dict[float, Series] | dict[int, Series]) -> list[float]:
    """Means along a sweep; nothing where a point of it is missing."""
    means = [one.mean for one in line.values()]
    return means if means and not np.isnan(means).any() else []


def _stable(words: str, spreads: dict[str, float]) -> Finding:
    if not spreads:
        return NOT_TESTED
    said = ", ".join(f"{where} {spread:.2f}" for where, spread in spreads.items())
    narrow = sum(spread <= STABLE for spread in spreads.values())
    return Finding(by_share(narrow, len(spreads)), f"{words}, in points: {said}.")
