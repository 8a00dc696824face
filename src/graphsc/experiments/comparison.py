"""Results side by side: means, both deviations, and whether a difference is more than noise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import (
    Summary,
    WilcoxonResult,
    average_ranks,
    complete,
    corrected_t_test,
    holm,
    summarise,
    wilcoxon,
)
from graphsc.experiments.published import published
from graphsc.experiments.result import Result

CONTROL = "untrained"


@dataclass(frozen=True)
class Cell:
    """A method on a data set; accuracies in per cent."""

    summary: Summary
    difference: float | None = None  # to the control, over the seeds that both have
    p_value: float | None = None  # of that difference, corrected for the methods of the column
    published: tuple[float, float] | None = None
    leaky: bool = False
    # Deviation of the same embeddings re-split, averaged over seeds; says nothing of other runs.
    over_fold_seeds: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A table: methods by data sets, with empty cells for what has not run."""

    methods: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    ranks: dict[str, float]  # over the columns that every method has; empty where there is none
    words: tuple[str, ...]  # the protocols of the numbers; one, unless results of several kinds were mixed
    over_data: dict[str, WilcoxonResult] = field(default_factory=dict)  # each method against the control
    control: str = CONTROL  # the row that the others are tested against

    @property
    def leaky(self) -> bool:
        return any(cell.leaky for cell in self.cells.values())

    def means(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Methods x columns, nan where a cell is empty."""
        return np.array(
            [
                [self.cells[m, c].summary.mean if (m, c) in self.cells else np.nan for c in self.columns]
                for m in self.methods
            ]
        ).reshape(len(self.methods), len(self.columns))


def compare_results(
    results: Sequence[Result],
    *,
    labels: Sequence[str] = (),
    methods: Sequence[str] = (),
    columns: Sequence[str] = (),
    control: str = CONTROL,
) -> Comparison:
    """Line results up. `labels` are the rows of the results, by default their methods' names; `methods` and
    `columns` say which rows and columns there are and in which order, `control` against which row the others
    are tested.
    """
    grouped: dict[tuple[str, str], dict[int, Result]] = defaultdict(dict)
    again: dict[tuple[str, str], dict[int, list[Result]]] = defaultdict(lambda: defaultdict(list))
    for label, result in zip(labels or map(row_name, results), results, strict=True):
        place = (label, column_name(result))
        again[place][result.seed].append(result)
        if result.resplit:
            continue
        if result.seed in grouped[place]:
            raise DataError(f"two results for {place[0]} on {place[1]}, seed {result.seed}")
        grouped[place][result.seed] = result
    rows = list(methods) or list(dict.fromkeys(place[0] for place in grouped))
    heads = list(columns) or list(dict.fromkeys(place[1] for place in grouped))
    cells: dict[tuple[str, str], Cell] = {}
    for head in heads:
        cells |= _column(head, {row: grouped[row, head] for row in rows if (row, head) in grouped}, control)
    for place, cell in cells.items():
        spreads = [
            np.std([100 * r.accuracy for r in some]) for some in again[place].values() if len(some) > 1
        ]
        if spreads:
            cells[place] = replace(cell, over_fold_seeds=float(np.mean(spreads)))
    words = tuple(dict.fromkeys(result.words for result in results))
    table = Comparison(tuple(rows), tuple(heads), cells, {}, words, control=control)
    means = table.means()
    if not means.size:
        return table
    # Ranks among few in one column and among many in another do not average.
    common = complete(means)
    ranks = dict(zip(rows, average_ranks(common).tolist(), strict=True)) if common.size else {}
    over = {}
    if control in rows:
        beside = means[rows.index(control)]
        over = {row: wilcoxon(means[i], beside) for i, row in enumerate(rows) if row != control}
    return replace(table, ranks=ranks, over_data=over)


def row_name(result: Result) -> str:
    """The method, with its preset where that is not the default one."""
    preset = result.trial["preset"]
    return result.method if preset == "default" else f"{result.method} ({preset})"


def column_name(result: Result) -> str:
    """The data set, with its features, share of labels and splitting where they are not the usual ones."""
    unusual = []
    if result.trial["features"] != "auto":
        unusual.append(str(result.trial["features"]))
    protocol = cast(Mapping[str, object], result.trial.get("protocol", {}))
    if "label_share" in protocol:
        unusual.append(f"{100 * cast(float, protocol['label_share']):g} % of labels")
    if protocol.get("splitting") == "size":
        unusual.append("size shift")
    return f"{result.data} ({', '.join(unusual)})" if unusual else result.data


def _column(head: str, column: dict[str, dict[int, Result]], control: str) -> dict[tuple[str, str], Cell]:
    _check_same_graphs(head, column)
    beside = column.get(control, {})
    tested: dict[str, tuple[float, float]] = {}
    for row, by_seed in column.items():
        common = sorted(by_seed.keys() & beside.keys())
        if row == control or not common:
            continue
        differences = np.stack([by_seed[s].accuracies - beside[s].accuracies for s in common])
        test = corrected_t_test(differences, 1 / differences.shape[1])
        tested[row] = (100 * test.mean, test.p_value)
    corrected = dict(zip(tested, holm([p for _, p in tested.values()]).tolist(), strict=True))
    return {
        (row, head): Cell(
            summary=summarise(100 * np.stack([by_seed[s].accuracies for s in sorted(by_seed)])),
            difference=tested[row][0] if row in tested else None,
            p_value=corrected.get(row),
            published=published().get(row, {}).get(str(next(iter(by_seed.values())).data)),
            leaky=any(result.leaky for result in by_seed.values()),
        )
        for row, by_seed in column.items()
    }


def _check_same_graphs(head: str, column: dict[str, dict[int, Result]]) -> None:
    """Paired tests are of pairs: the same graphs in the same folds."""
    for seed in {seed for by_seed in column.values() for seed in by_seed}:
        here = [by_seed[seed] for by_seed in column.values() if seed in by_seed]
        first = here[0]
        for other in here[1:]:
            same = np.array_equal(first.fold, other.fold) and np.array_equal(first.labels, other.labels)
            if not same:
                raise DataError(
                    f"{first.method} and {other.method} were judged on other folds of {head}, seed {seed}",
                    hint="compare results of one data set and one number of folds",
                )
