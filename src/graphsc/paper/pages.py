"""Rebuilds the tables of Markdown pages from stored results, and leaves the prose around them.

A table of a plan or an analysis is between `<!-- table: NAME -->` and `<!-- end -->`. A table, a figure or
the claims of the paper are between `<!-- NAME -->` and `<!-- end -->`.

Figures in sentences come from the same results, so that a sentence and its table cannot differ:

- `<!-- value: TABLE; ROW; COLUMN -->88.75<!-- / -->`: a mean accuracy,
- `<!-- gain: TABLE; ROW; OTHER ROW; COLUMN -->+1.20<!-- / -->`: the difference of two means, over the seeds
  that both rows have,
- `<!-- rank: TABLE; ROW -->1.86<!-- / -->`: an average rank,
- `<!-- above: TABLE; ROW -->3 of 8<!-- / -->`, `<!-- below: TABLE; ROW -->`: on how many data sets a row is
  significantly above or below the control of the table,
- `<!-- ahead: TABLE; ROW | ROW; OTHER ROW | OTHER ROW -->7 of 8<!-- / -->`: of a transfer table, on how
  many data sets the best of some rows is above all of the others, which are all other rows if none are named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.core.tables import Table
from graphsc.experiments.comparison import Comparison
from graphsc.experiments.plan import AnyTable, TablePlan, TransferTable
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.search_log import log_markdown, read_log
from graphsc.experiments.tables import (
    significance_mark,
    stored_comparison,
    table_text,
    transfer_ahead,
    transfer_value,
)
from graphsc.experiments.transfer import CardStore, cards_table
from graphsc.experiments.trial import MODEL, TransferTrial
from graphsc.paper.analyses import (
    deviations_table,
    gains_table,
    ideas_table,
    label_free_table,
)

# Analyses of all results of a plan, by their name on pages.
ANALYSES: Mapping[str, Callable[[Sequence[Result]], Table]] = {
    "deviations": deviations_table,
    "label-free": label_free_table,
    "gains": lambda results: gains_table(results, "graphsc-plus"),
    "gains-of-training": lambda results: gains_table(results, "graphsc-plus", "untrained-plus"),
}
NOT_RUN = "(not run yet)"
FIGURE = re.compile(
    r"(<!-- (?P<kind>value|gain|rank|above|below|ahead): (?P<places>[^<>]*?) -->)(.*?)(<!-- / -->)", re.S
)
_MARK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def rebuild_tables(text: str, plan: Sequence[AnyTable], store: ResultStore) -> str:
    """The text of a page with every table of the plan rebuilt; trials without a result leave empty cells."""
    tables = {table.name: table for table in plan}

    def body(name: str) -> str:
        if name in tables:
            return table_text(tables[name], store)
        if name in ANALYSES:
            return ANALYSES[name](plain_results(plan, store)).markdown()
        if name == "search":
            return log_markdown(read_log(store.folder / "search" / "log.jsonl"))
        if name == "ideas":
            return ideas_table(read_log(store.folder / "search" / "exploration.jsonl")).markdown()
        if name == "weights":
            cards = cards_table(_pretrained(plan), CardStore(store.folder))
            return "*No weights have been pre-trained yet.*\n" if cards is None else cards.markdown()
        raise ConfigError(f"the page has a table {name!r} that the plan does not have")

    comparisons: dict[str, Comparison | None] = {}

    def figure(match: re.Match[str]) -> str:
        name, *places = (part.strip() for part in match["places"].split(";"))
        table = tables.get(name)
        if isinstance(table, TransferTable):
            return f"{match[1]}{_transfer_figure(match['kind'], places, table, store, match[1])}{match[5]}"
        if not isinstance(table, TablePlan):
            raise ConfigError(f"the page has a figure of a table {name!r} that the plan does not have")
        if name not in comparisons:
            comparisons[name] = stored_comparison(table, store)
        return f"{match[1]}{_figure(match['kind'], places, comparisons[name], match[1])}{match[5]}"

    text = _MARK.sub(lambda match: f"{match[1]}\n{body(match['name'])}\n{match[4]}", text)
    return FIGURE.sub(figure, text)


def _figure(kind: str, places: Sequence[str], comparison: Comparison | None, mark: str) -> str:
    """The text of a figure in a sentence."""
    if len(places) != {"value": 2, "gain": 3, "rank": 1, "above": 1, "below": 1}.get(kind):
        raise ConfigError(f"a figure of a page has too many or too few parts: {mark}")
    if comparison is None:
        return NOT_RUN
    if places[0] not in comparison.methods:
        raise ConfigError(f"a figure of a page names a row that its table does not have: {mark}")
    if kind == "rank":
        rank = comparison.ranks.get(places[0])
        return NOT_RUN if rank is None else f"{rank:.2f}"
    if kind in ("above", "below"):
        cells = [cell for (row, _), cell in comparison.cells.items() if row == places[0]]
        sign = " *" if kind == "above" else " †"
        return (
            f"{sum(significance_mark(cell) == sign for cell in cells)} of {len(cells)}" if cells else NOT_RUN
        )
    *rows, column = places
    found = [comparison.cells[row, column] for row in rows if (row, column) in comparison.cells]
    if len(found) < len(rows):
        return NOT_RUN
    if kind == "value":
        return f"{found[0].summary.mean:.2f}"
    one, other = (dict(zip(cell.seeds, cell.accuracies, strict=True)) for cell in found)
    # A seed that only one of them has would be a difference of seeds, not of methods.
    differences = [np.mean(one[seed]) - np.mean(other[seed]) for seed in sorted(one.keys() & other.keys())]
    return f"{np.mean(differences):+.2f}" if differences else NOT_RUN


def _transfer_figure(
    kind: str, places: Sequence[str], table: TransferTable, store: ResultStore, mark: str
) -> str:
    """As `_figure`, of a table of transfer trials."""
    if kind == "ahead" and len(places) in (1, 2):
        rows, *others = ([row.strip() for row in place.split("|")] for place in places)
        count, columns = transfer_ahead(table, store, rows, others[0] if others else None)
        return f"{count} of {columns}" if columns else NOT_RUN
    if len(places) != {"value": 2, "gain": 3}.get(kind):
        raise ConfigError(f"a figure of a transfer table is `value`, `gain` or `ahead`: {mark}")
    *rows, column = places
    values = [transfer_value(table, store, row, column) for row in rows]
    if any(value is None for value in values):
        return NOT_RUN
    first, second = (*values, 0.0)[:2]
    assert first is not None  # noqa: S101 - returned above
    assert second is not None  # noqa: S101 - likewise
    return f"{first:.2f}" if kind == "value" else f"{first - second:+.2f}"


def plain_results(plan: Sequence[AnyTable], store: ResultStore) -> list[Result]:
    """Stored results of a plan with default settings; rows that change a setting are left out."""
    blocks = [
        block
        for table in plan
        if isinstance(table, TablePlan)
        for block in table.blocks
        if not (block.settings or block.training)
    ]
    trials = {trial.key(): trial for block in blocks for trial in block.trials()}  # tables share some
    return [result for trial in trials.values() if (result := store.get(trial)) is not None]


def _pretrained(plan: Sequence[AnyTable]) -> list[TransferTrial]:
    """A trial of each method that starts from pre-trained weights."""
    trials = [trial for table in plan if isinstance(table, TransferTable) for trial in table.trials()]
    own = [trial for trial in trials if trial.needs_weights and MODEL not in trial.pretraining]
    return list({trial.method: trial for trial in own}.values())


def write_tables(page: Path, plan: Sequence[AnyTable], store: ResultStore) -> bool:
    """Rebuild the tables of a page file; returns whether it changed."""
    return _rewrite(page, lambda text: rebuild_tables(text, plan, store))


def write_part(page: Path, name: str, body: str) -> bool:
    """Replace the text between `<!-- name -->` and the next `<!-- end -->`; returns whether it changed."""
    mark = re.compile(rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- end -->)", re.DOTALL)

    def change(text: str) -> str:
        if not mark.search(text):
            raise ConfigError(
                f"the page has no place for {name}", where=str(page),
                hint=f"add <!-- {name} --> and <!-- end -->",
            )  # fmt: skip
        return mark.sub(lambda match: f"{match[1]}\n{body}\n{match[3]}", text)

    return _rewrite(page, change)


def _rewrite(page: Path, change: Callable[[str], str]) -> bool:
    try:
        before = page.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read the page: {error.strerror}", where=str(page)) from error
    after = change(before)
    if after != before:
        write_atomic(page, after)
    return after != before
