"""Which published numbers of Table 3 are reached, and by what: in sentences computed from stored results.

Every number has three counterparts of ours: the fixed default, settings tuned on inner folds, and the doubly
leaky choice of settings and epoch by test accuracy. Beside each is the untrained encoder, chosen as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from graphsc.core.tables import Cell, Table, Value
from graphsc.evaluation.significance import Summary
from graphsc.experiments.comparison import Comparison, compare_results
from graphsc.experiments.published import published
from graphsc.experiments.result import ResultStore
from graphsc.experiments.tables import LEVEL, comparison_table
from graphsc.paper.gather import gather
from graphsc.paper.nested_search import DOUBLY_LEAKY, compare_maxima, search_results
from graphsc.paper.recipe import SEARCH, Recipe, Request, read_recipe
from graphsc.paper.tables import compare_fixed_settings

Way = Literal["fixed", "tuned", "leaky"]
WAYS: dict[Way, str] = {"fixed": "fixed default", "tuned": "tuned on inner folds", "leaky": DOUBLY_LEAKY}
METHODS = ("graphsc", "graphcl")  # whose published numbers the page is about
BASELINE = "untrained"


@dataclass(frozen=True)
class Reproduction:
    """Our numbers by way of choosing."""

    columns: Sequence[str]
    by_way: dict[Way, Comparison]

    def number(self, method: str, way: Way, data: str) -> Summary | None:
        """Ours, or None where it has not run."""
        cell = self.by_way[way].cells.get((method, data))
        return None if cell is None else cell.summary

    def reached(self, of: str, by: str, way: Way) -> tuple[list[str], list[str], list[str]]:
        """Data sets on which a method reaches the published numbers of a method.

        Returns:
            Those with a mean at or above the published one, those no more than one published deviation below
            it, and all that have run.
        """
        above, near, ran = [], [], []
        for data in self.columns:
            ours, numbers = self.number(by, way, data), published()[of].get(data)
            if ours is None or numbers is None:
                continue
            ran.append(data)
            if round(ours.mean, 2) >= numbers[0]:
                above.append(data)
            elif round(ours.mean, 2) >= numbers[0] - numbers[1]:
                near.append(data)
        return above, near, ran


def reproduction(store: ResultStore, recipe: Recipe | None = None) -> Reproduction:
    """Gather what is stored of Table 3 and its search.

    Args:
        store: Stored results.
        recipe: A comparison with a search; by default Table 3.
    """
    if recipe is None:
        table3 = read_recipe("table3")
        assert isinstance(table3, Recipe)  # noqa: S101 - narrows the type
        recipe = table3
    fixed = gather(recipe, Request(methods=[BASELINE, *METHODS]), store)
    searched = list(dict.fromkeys((*METHODS, *(recipe.search.methods if recipe.search else ()), BASELINE)))
    candidates = gather(recipe, Request(methods=searched, search=True), store).filtered(
        lambda planned: planned.part == SEARCH
    )
    chosen = search_results(candidates)
    columns = [data for data in fixed.columns if any(result.trial["data"] == data for result in chosen)]
    nested = compare_results(chosen, methods=searched, columns=columns, control=BASELINE)
    return Reproduction(
        fixed.columns,
        {"fixed": compare_fixed_settings(fixed), "tuned": nested, "leaky": compare_maxima(candidates)},
    )


def reproduction_markdown(results: Path) -> str:
    """The sentences, a table per method, and one of all methods that were tuned."""
    found = reproduction(ResultStore(results))
    lines = [f"{number}. {text}" for number, text in enumerate(sentences(found), start=1)]
    tables = [table(found, method) for method in METHODS]
    tables.append(
        comparison_table(found.by_way["tuned"], title=f"All methods of the search, {WAYS['tuned']}")
    )
    return "\n".join(["\n".join(lines) + "\n", *(each.markdown() for each in tables)])


def table(found: Reproduction, method: str) -> Table:
    """A row per data set: the published number, and for each way ours and that of the untrained encoder."""
    rows: list[tuple[Value, ...]] = []
    for data in found.columns:
        numbers = published()[method].get(data)
        cells = [
            _cell(found.number(by, way, data), None if numbers is None else numbers[0], way)
            for way in WAYS
            for by in (method, BASELINE)
        ]
        rows.append((data, "" if numbers is None else f"{numbers[0]:.2f} ± {numbers[1]:.2f}", *cells))
    titles = [title for words in WAYS.values() for title in (words, f"{BASELINE}, {words}")]
    missing = [
        f"{data} "
        f"({', '.join(words for way, words in WAYS.items() if found.number(method, way, data) is None)})"
        for data in found.columns
        if any(found.number(method, way, data) is None for way in WAYS)
    ]
    notes = [f"Not run: {'; '.join(missing)}."] if missing else []
    notes.append(f"Seeds: {_seeds(found, method)}.")
    notes.append(
        "Accuracy in per cent, mean over seeds ± their deviation. **Bold**: at or above the published mean. "
        "LEAKY numbers chose settings and epoch by test accuracy and are not results."
    )
    notes += found.by_way["leaky"].words
    return Table(("data", "published", *titles), tuple(rows), f"{method} in Table 3", tuple(notes))


def _seeds(found: Reproduction, method: str) -> str:
    """How many seeds each number is a mean of."""
    texts = []
    for way, words in WAYS.items():
        summaries = {data: found.number(method, way, data) for data in found.columns}
        counts = [f"{data} {ours.seeds}" for data, ours in summaries.items() if ours is not None]
        texts.append(f"{words} ({', '.join(counts) or 'none'})")
    return "; ".join(texts)


def _cell(ours: Summary | None, target: float | None, way: Way) -> Cell:
    if ours is None:
        return Cell("")
    text = f"{ours.mean:.2f}" + (f" ± {ours.over_seeds_ddof1:.2f}" if ours.seeds > 1 else "")
    text += " LEAKY" if way == "leaky" else ""
    return Cell(text, best=target is not None and round(ours.mean, 2) >= target)


def sentences(found: Reproduction) -> list[str]:
    """What the stored results say; a sentence about nothing that has run says so."""
    texts = [_reached_sentence(found, method, way) for method in METHODS for way in WAYS]
    texts += [_only_leaky_sentence(found, method) for method in METHODS]
    return [*texts, _gain_of_leaks(found), _gain_of_training(found)]


def _reached_sentence(found: Reproduction, method: str, way: Way) -> str:
    above, near, ran = found.reached(method, method, way)
    start = f"*{method}*, {WAYS[way]}"
    if not ran:
        return f"{start}: not run yet."
    text = f"{start}: {len(above)} of {len(ran)} published numbers are reached{_listed(above)}"
    text += f", {len(near)} more within one published deviation{_listed(near)}"
    by_baseline, _, baseline_ran = found.reached(method, BASELINE, way)
    if baseline_ran:
        text += (
            f"; *{BASELINE}*, chosen the same way, reaches {len(by_baseline)} of {len(baseline_ran)}"
            f"{_listed(by_baseline)}"
        )
    return f"{text}."


def _only_leaky_sentence(found: Reproduction, method: str) -> str:
    leak_free = {data for way in ("fixed", "tuned") for data in found.reached(method, method, way)[0]}
    leaky, _, ran = found.reached(method, method, "leaky")
    if not ran:
        return f"Which numbers of *{method}* are reached by leaks alone is not known yet."
    only = [data for data in leaky if data not in leak_free]
    never = [data for data in ran if data not in leak_free and data not in leaky]
    return (
        f"Of the published numbers of *{method}*, {len(only)} {'is' if len(only) == 1 else 'are'} reached by "
        f"choosing on test accuracy alone{_listed(only)}, and {len(never)} not even so{_listed(never)}."
    )


def _gain_of_leaks(found: Reproduction) -> str:
    texts = []
    for method in (*METHODS, BASELINE):
        gains = _differences(found, (method, "leaky"), (method, "tuned"))
        if gains:
            texts.append(f"{np.mean(list(gains.values())):+.2f} for *{method}* ({_sets(gains)})")
    if not texts:
        return "What choosing by test accuracy adds to choosing on inner folds is not known yet."
    return (
        "Choosing settings and epoch by test accuracy instead of settings on inner folds changes the number "
        f"by {', '.join(texts)}, in points on average."
    )


def _gain_of_training(found: Reproduction) -> str:
    texts = []
    for way in WAYS:
        for method in METHODS:
            gains = _differences(found, (method, way), (BASELINE, way))
            if not gains:
                continue
            text = f"*{method}* {np.mean(list(gains.values())):+.2f} ({WAYS[way]}, {_sets(gains)}"
            if way != "leaky":
                cells = [found.by_way[way].cells[method, data] for data in gains]
                significant = [
                    c.difference or 0 for c in cells if c.p_value is not None and c.p_value < LEVEL
                ]
                up, down = sum(d > 0 for d in significant), sum(d < 0 for d in significant)
                text += f"; significantly above on {up}, below on {down}"
            texts.append(f"{text})")
    if not texts:
        return f"What training adds to *{BASELINE}* is not known yet."
    return f"Above *{BASELINE}* chosen the same way, in points on average: {', '.join(texts)}."


def _differences(found: Reproduction, one: tuple[str, Way], other: tuple[str, Way]) -> dict[str, float]:
    """Differences of means on the data sets that both have."""
    pairs = {data: (found.number(*one, data), found.number(*other, data)) for data in found.columns}
    return {d: a.mean - b.mean for d, (a, b) in pairs.items() if a is not None and b is not None}


def _listed(data: Sequence[str]) -> str:
    return f" ({', '.join(data)})" if data else ""


def _sets(data: dict[str, float]) -> str:
    return f"{len(data)} data set{'' if len(data) == 1 else 's'}"
