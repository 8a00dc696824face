"""Freezes the settings that the search of Table 3 chose, as the file of the preset `tuned`.

Settings are chosen by accuracy on inner folds: for each data set the point with the best mean over outer
folds and seeds, and for each kind of graph the point with the best mean over its data sets, each relative to
the mean of all points on that data set. A search that has not ended chooses nothing. Inner folds of one
outer fold hold none of its test graphs, but those of all outer folds hold every graph: the preset is for new
graphs, and its accuracy on the searched ones is no result.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import numpy as np

from graphsc.core.errors import ConfigError
from graphsc.experiments.result import ResultStore
from graphsc.experiments.trial import graph_kind
from graphsc.paper.gather import RecipeResults, gather
from graphsc.paper.nested_search import finished_searches
from graphsc.paper.recipe import Recipe, Request, read_recipe

Settings = Mapping[str, object]
INTRODUCTION = """\
# Settings of the preset `tuned`, written by `graphsc reproduce freeze` from the search of Table 3. They have
# the best accuracy on inner folds, on average over all outer folds. So every graph of these data sets took
# part in the choice, and an accuracy of this preset on them is too high: the nested search has the honest
# one. Settings of a data set are used for graphs of that name; others have those of their kind: `labelled`
# if nodes have labels or attributes, `unlabelled` if not.
"""


def frozen_yaml(results: Path, recipe: Recipe | None = None) -> str:
    """The text of the file.

    Args:
        results: Folder of stored results.
        recipe: A comparison with a search; by default Table 3.

    Raises:
        ConfigError: Nothing of the search has run.
    """
    if recipe is None:
        table3 = read_recipe("table3")
        assert isinstance(table3, Recipe)  # noqa: S101 - narrows the type
        recipe = table3
    chosen = frozen_settings(gather(recipe, Request(search=True), ResultStore(results)))
    if not chosen:
        raise ConfigError("no search has ended", hint="run graphsc reproduce table3 --search")
    lines = []
    for method, by_name in chosen.items():
        lines.append(f"{method}:")
        for name, (settings, note) in by_name.items():
            lines += [f"  # {note}", f"  {name}: {json.dumps(settings)}"]
    return INTRODUCTION + "\n".join(lines) + "\n"


def frozen_settings(results: RecipeResults) -> dict[str, dict[str, tuple[Settings, str]]]:
    """By method, then by kind of graph and by data set: the chosen settings, and a note on their origin."""
    inner: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    points: dict[str, Settings] = {}
    kinds: dict[str, str] = {}
    finished = finished_searches(results)
    for (method, column), searches in finished.items():
        for candidate in chain.from_iterable(completed for _, completed in searches):
            cell = candidate.planned
            if cell.trial.features == "auto":
                key = repr(cell.point)
                points[key] = cell.point
                kinds[column] = graph_kind(cell.trial.data)
                inner[method][column][key].append(100 * candidate.result.inner_accuracy)
    chosen: dict[str, dict[str, tuple[Settings, str]]] = {}
    for method, by_data in inner.items():
        means = {
            data: {key: float(np.mean(values)) for key, values in by_point.items()}
            for data, by_point in by_data.items()
        }
        of_method: dict[str, tuple[Settings, str]] = {}
        for kind in sorted({kinds[data] for data in means}):
            sets = [data for data in means if kinds[data] == kind]
            best, gain = _best_of_kind([means[data] for data in sets])
            note = f"{gain:+.2f} points above the mean of all points on {', '.join(sets)}"
            of_method[kind] = points[best], note
        for data, by_point in means.items():
            best = max(by_point, key=lambda key: by_point[key])
            seeds = len(finished[method, data])
            note = (
                f"{by_point[best]:.2f} % on inner folds, the best of {len(by_point)} points, "
                f"{seeds} seed{'' if seeds == 1 else 's'}"
            )
            of_method[data] = points[best], note
        chosen[method] = of_method
    return chosen


def _best_of_kind(means: list[dict[str, float]]) -> tuple[str, float]:
    """The point that all data sets have with the best mean gain over the mean of these points."""
    common = [key for key in means[0] if all(key in other for other in means)]
    gains = {
        key: float(np.mean([of_data[key] - np.mean([of_data[k] for k in common]) for of_data in means]))
        for key in common
    }
    best = max(gains, key=lambda key: gains[key])
    return best, gains[best]
