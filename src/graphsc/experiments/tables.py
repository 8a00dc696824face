"""Tables of stored results: comparisons, accuracies on inner folds, and transfer.

A column of the long table is one entry of `RECORD_COLUMNS`; the terminal, CSV files and the paper's CSV files
are made of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphsc.core.errors import ConfigError
from graphsc.core.tables import Cell as TableCell
from graphsc.core.tables import Table, Value, escape_markdown
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.datasets.sources import parse_sources
from graphsc.evaluation.significance import average_ranks
from graphsc.experiments.comparison import Cell, Comparison, column_names, compare_results
from graphsc.experiments.plan import AnyTable, TablePlan, TransferTable
from graphsc.experiments.published import published, published_transfer
from graphsc.experiments.result import Result, ResultStore
from graphsc.experiments.trial import MODEL, ProbeTrial
from graphsc.finetuning.ensemble import PART_TITLES, PARTS, parts_of
from graphsc.finetuning.result import RULES, TransferResult

LEVEL = 0.05
MOLECULE_SETS = ("BBBP", "Tox21", "ToxCast", "SIDER", "ClinTox", "MUV", "HIV", "BACE")  # the paper's order
SIX_SETS = tuple(name for name in MOLECULE_SETS if name not in ("MUV", "HIV"))  # that later papers average
ALLOWED_LOSS = 0.5  # points by which an ensemble may be below its best part


def cell_text(cell: Cell) -> str:
    """`87.2 ± 1.3 *`: mean, deviation over seeds, and a mark where it differs from the control."""
    text = f"{cell.summary.mean:.2f}"
    if cell.summary.seeds > 1:
        text += f" ± {cell.summary.over_seeds_ddof1:.2f}"
    return text + significance_mark(cell) + (" LEAKY" if cell.leaky else "")


def significance_mark(cell: Cell) -> str:
    """` *` for significantly above the control, ` †` for significantly below, nothing otherwise."""
    if cell.p_value is None or math.isnan(cell.p_value) or cell.p_value >= LEVEL:
        return ""
    return " *" if (cell.difference or 0) > 0 else " †"


def comparison_table(
    comparison: Comparison,
    *,
    title: str = "",
    last: Mapping[str, float] | None = None,
    last_title: str = "average rank",
    last_published: Mapping[str, object] | None = None,
    published_everywhere: bool = False,
    notes: Sequence[str] | None = None,
) -> Table:
    """The wide table: a row per method, a column per data set, published numbers below ours.

    Args:
        comparison: What to show.
        title: Caption.
        last: The last column; by default average ranks.
        last_title: Title of the last column.
        last_published: Published values of the last column.
        published_everywhere: Show published numbers also where nothing has run.
        notes: Sentences below; by default `comparison_notes`.
    """
    best = {
        column: max(
            (c.summary.mean for (_, name), c in comparison.cells.items() if name == column), default=0.0
        )
        for column in comparison.columns
    }
    last = comparison.ranks if last is None else last
    rows: list[tuple[Value, ...]] = []
    for method in comparison.methods:
        row: list[Value] = [method]
        for column in comparison.columns:
            cell = comparison.cells.get((method, column))
            numbers = None if cell is None else cell.published
            if published_everywhere:
                numbers = published().get(method, {}).get(column.partition(" (")[0])
            below = "" if numbers is None else f"{numbers[0]:.2f} ± {numbers[1]:.2f}"
            if cell is None:
                row.append(TableCell("", below))
            else:
                row.append(TableCell(cell_text(cell), below, cell.summary.mean == best[column]))
        value = last.get(method, math.nan)
        below = str((last_published or {}).get(method, ""))
        rows.append((*row, TableCell("" if math.isnan(value) else f"{value:.2f}", below)))
    return Table(
        ("method", *comparison.columns, last_title), tuple(rows), title,
        tuple(comparison_notes(comparison) if notes is None else notes),
    )  # fmt: skip


def comparison_notes(comparison: Comparison) -> list[str]:
    """What a reader must know to read the table, in whole sentences."""
    notes = [*comparison.words]
    seeds = sorted({cell.summary.seeds for cell in comparison.cells.values()})
    if seeds == [1]:
        notes.append("Accuracy in per cent of one seed; no deviation over seeds is known.")
    elif seeds:
        *few, most = map(str, seeds)
        counts = f"{', '.join(few)} or {most}" if few else most
        notes.append(
            f"Mean accuracy in per cent over {counts} seeds ± the standard deviation of the seeds' means "
            "(ddof = 1); a seed is a whole repetition: initialisation, training and folds."
        )
    spreads = [cell.over_fold_seeds for cell in comparison.cells.values() if cell.over_fold_seeds is not None]
    if spreads:
        notes.append(
            f"Re-splitting one seed's embeddings moves its accuracy by {min(spreads):.2f} to "
            f"{max(spreads):.2f} (deviation over fold seeds, ddof = 1); that is not a deviation over runs."
        )
    common = int((~np.isnan(comparison.means()).any(axis=0)).sum())
    if comparison.ranks and common < len(comparison.columns):
        notes.append(f"Average ranks are over the data sets that every method has: {common}.")
    if comparison.control in comparison.methods:
        notes.append(
            f"\\* significantly above *{comparison.control}*, † significantly below (p < {LEVEL:g}: "
            "corrected resampled t-test over common folds, Holm's correction over the methods of a column); "
            "no mark: within noise."
        )
    if any(cell.published for cell in comparison.cells.values()):
        notes.append(
            'Published numbers (<span class="published">grey</span>) were made with other features, epochs '
            "and selection rules."
        )
    if comparison.leaky:
        notes.insert(0, "**LEAKY numbers chose their epoch by test accuracy and are not results.**")
    return notes


@dataclass(frozen=True)
class RecordColumn:
    """A column of the long table, one row per method and data set."""

    title: str
    value: Callable[[str, str, Cell], object]  # of data set, method and cell; None where there is none
    decimals: int = 2


RECORD_COLUMNS = (
    RecordColumn("data", lambda data, method, cell: data),
    RecordColumn("method", lambda data, method, cell: method + (" LEAKY" if cell.leaky else "")),
    RecordColumn("mean", lambda data, method, cell: cell.summary.mean),
    RecordColumn(
        "over seeds",
        lambda data, method, cell: cell.summary.over_seeds_ddof1 if cell.summary.seeds > 1 else None,
    ),
    RecordColumn("over folds", lambda data, method, cell: cell.summary.over_folds_ddof0),
    RecordColumn("seeds", lambda data, method, cell: cell.summary.seeds),
    RecordColumn("against CONTROL", lambda data, method, cell: cell.difference),
    RecordColumn("p", lambda data, method, cell: cell.p_value, decimals=3),
    RecordColumn("published", lambda data, method, cell: cell.published[0] if cell.published else None),
    RecordColumn(
        "published deviation", lambda data, method, cell: cell.published[1] if cell.published else None
    ),
)


def records_table(
    comparison: Comparison, *, exact: bool = False, extra: Mapping[str, str] | None = None
) -> Table:
    """The long table: one row per method and data set, with both deviations and the test.

    Args:
        comparison: What to show.
        exact: For machines: four decimals, empty cells, and a row also for what has not run.
        extra: Columns before the others that have the same value in every row.
    """
    rows: list[tuple[Value, ...]] = []
    for data in comparison.columns:
        for method in comparison.methods:
            cell = comparison.cells.get((method, data))
            if cell is not None:
                values = [
                    _shown(column.value(data, method, cell), 4 if exact else column.decimals, exact)
                    for column in RECORD_COLUMNS
                ]
            elif exact:
                numbers = published().get(method, {}).get(data.partition(" (")[0], ("", ""))
                values = [data, method, *[""] * (len(RECORD_COLUMNS) - 4), *numbers]
            else:
                continue
            rows.append((*(extra or {}).values(), *values))
    titles = [column.title.replace("CONTROL", comparison.control) for column in RECORD_COLUMNS]
    return Table((*(extra or {}), *titles), tuple(rows), "Comparison")


def full_table(comparison: Comparison) -> Table:
    """The long table with every digit, for spreadsheets: also ranks, and a column per seed and fold."""
    means = comparison.means()
    ranks = {
        (method, data): float(rank)
        for k, data in enumerate(comparison.columns)
        for method, rank in zip(comparison.methods, average_ranks(means[:, k : k + 1]), strict=True)
    }
    folds = max((len(row) for cell in comparison.cells.values() for row in cell.accuracies), default=0)
    seeds = sorted({seed for cell in comparison.cells.values() for seed in cell.seeds})
    rows: list[tuple[Value, ...]] = []
    for data in comparison.columns:
        for method in comparison.methods:
            cell = comparison.cells.get((method, data))
            if cell is None:
                continue
            by_seed = dict(zip(cell.seeds, cell.accuracies, strict=True))
            values = [
                by_seed[seed][fold] if seed in by_seed and fold < len(by_seed[seed]) else None
                for seed in seeds
                for fold in range(folds)
            ]
            own = [_plain(column.value(data, method, cell)) for column in RECORD_COLUMNS]
            rows.append((*own, ranks[method, data], comparison.ranks.get(method), *values))
    titles = [column.title.replace("CONTROL", comparison.control) for column in RECORD_COLUMNS]
    places = [f"seed {seed} fold {fold}" for seed in seeds for fold in range(folds)]
    return Table((*titles, "rank", "average rank", *places), tuple(rows), "Comparison")


def _plain(value: object) -> Value:
    return value if value is None or isinstance(value, (int, float)) else str(value)


def _shown(value: object, decimals: int, exact: bool) -> Value:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "" if exact else "-"
    if isinstance(value, float):
        return round(value, decimals) if exact else f"{value:.{decimals}f}"
    return value if isinstance(value, int) else str(value)


def inner_table(results: Sequence[Result], labels: Sequence[str], rows: Sequence[str]) -> Table:
    """Mean accuracy on inner folds, which hold training graphs only, with average ranks."""
    titles = column_names(results)
    columns = list(dict.fromkeys(titles))
    means = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for k, column in enumerate(columns):
            accuracies = [
                result.inner_accuracy
                for label, title, result in zip(labels, titles, results, strict=True)
                if (label, title) == (row, column)
            ]
            means[i, k] = 100 * np.mean(accuracies) if accuracies else np.nan
    ranks = average_ranks(means)
    lines = [
        (row, *("" if np.isnan(value) else f"{value:.2f}" for value in (*values, values.mean(), rank)))
        for row, values, rank in zip(rows, means, ranks, strict=True)
    ]
    note = "Accuracy in per cent on inner folds; no outer test fold is looked at."
    return Table(("setting", *columns, "mean", "average rank"), tuple(lines), notes=(note,))


@dataclass(frozen=True)
class TransferCell:
    """Scores in per cent, one per seed."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def text(self) -> str:
        """Mean and deviation over seeds (ddof 1)."""
        return f"{self.mean:.2f}" + (f" ± {np.std(self.scores, ddof=1):.2f}" if len(self.scores) > 1 else "")


TransferRows = Sequence[tuple[str, TransferResult]]


def transfer_cells(results: TransferRows, rule: str) -> dict[tuple[str, str], TransferCell]:
    """Scores by row and data set. A fitted model has one rule, which stands in every table."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row, result in results:
        chosen = rule if rule in result.rules else "fit" if "fit" in result.rules else "last"
        scores.setdefault((row, str(result.trial["data"])), []).append(100 * result.score(chosen))
    return {place: TransferCell(tuple(values)) for place, values in scores.items()}


def transfer_columns(plan: TransferTable) -> list[str]:
    """Data sets: the paper's first, in its order, then the others of the plan."""
    used = list(dict.fromkeys(trial.data_name for trial in plan.trials()))
    return [name for name in MOLECULE_SETS if name in used] + [n for n in used if n not in MOLECULE_SETS]


def transfer_titles(plan: TransferTable) -> list[str]:
    """The rows of a plan's table; the parts of an ensemble stand above it."""
    titles: dict[str, None] = {}
    for row, trial in plan.rows():
        if trial.way == "ensemble":
            titles |= dict.fromkeys(map(_part_title, parts_of("ensemble", trial.method)))
        titles[row] = None
    return list(titles)


def stored_rows(plan: TransferTable, store: ResultStore) -> list[tuple[str, TransferResult]]:
    """Stored results of a plan's table, each with the title of its row; of an ensemble also its parts."""
    rows = []
    for row, trial in plan.rows():
        result = store.get(trial)
        if result is None:
            continue
        rows.append((row, result))
        if trial.way == "ensemble":
            rows += [
                (_part_title(part), replace(result, rules={"fit": result.rules[part]}))
                for part in PARTS
                if part in result.rules
            ]
    return rows


def _part_title(part: str) -> str:
    return f"part: {PART_TITLES[part]}"


def transfer_tables(
    plan: TransferTable, store: ResultStore, averages: Mapping[str, float] | None = None
) -> list[Table]:
    """One table per rule of choosing a model: rows by data sets, with the average over data sets.

    `averages` are published averages by row; by default the means of the published numbers.
    """
    rows, results, columns = plan.rows(), stored_rows(plan, store), transfer_columns(plan)
    stored = [trial in store for _, trial in rows]
    missing = stored.count(False)
    left = [f"{missing} of {len(rows)} trials have not run yet."] if missing else []
    left += missing_notes([(row, trial.data_name) for row, trial in rows], stored)
    means = _means(columns)
    first = "model" if any(trial.way == "ensemble" for _, trial in rows) else "pre-training"
    tables = []
    for rule in plan.rules:
        title = plan.title if len(plan.rules) == 1 else f"{plan.title}, the model {RULES[rule]}"
        cells = transfer_cells(results, rule)
        body = [_transfer_row(row, columns, means, cells, averages) for row in transfer_titles(plan)]
        # The notes are the same for all rules, and stand below the last table.
        notes = (*left, *_loss_notes(plan, cells), *transfer_notes(plan, results))
        tables.append(
            Table(
                (first, *columns, *means), tuple(body), title,
                notes if rule == plan.rules[-1] else (),
            )
        )  # fmt: skip
    return tables


def _means(columns: Sequence[str]) -> dict[str, Sequence[str]]:
    """The columns of averages, and what each averages."""
    six = {"without MUV and HIV": SIX_SETS} if set(SIX_SETS) < set(columns) else {}
    return {"average": columns, **six}


def transfer_value(plan: TransferTable, store: ResultStore, row: str, column: str) -> float | None:
    """A number of a plan's table, by the last of its rules; None where a trial has not run.

    Args:
        plan: The table.
        store: Its results.
        row: The title of a row.
        column: A data set or a column of averages.

    Raises:
        ConfigError: The table has no such row or column.
    """
    means = _means(transfer_columns(plan))
    averaged = means.get(column, [column])
    if row not in transfer_titles(plan) or not set(averaged) <= set(means["average"]):
        raise ConfigError(f"table {plan.name!r} has no cell {row!r}, {column!r}")
    cells = transfer_cells(stored_rows(plan, store), plan.rules[-1])
    values = [cells[row, name].mean for name in averaged if (row, name) in cells]
    return float(np.mean(values)) if len(values) == len(averaged) else None


def transfer_ahead(
    plan: TransferTable, store: ResultStore, rows: Sequence[str], others: Sequence[str] | None = None
) -> tuple[int, int]:
    """On how many data sets the best of some rows is above all of the others, by the last rule of the plan.

    Args:
        plan: The table.
        store: Its results.
        rows: Titles of rows.
        others: Titles of the rows to compare with; by default all other rows.

    Returns:
        The number of data sets on which it is, and the number on which both sides have a result.

    Raises:
        ConfigError: The table has no such row.
    """
    titles = transfer_titles(plan)
    others = [title for title in titles if title not in rows] if others is None else others
    for row in (*rows, *others):
        if row not in titles:
            raise ConfigError(f"table {plan.name!r} has no row {row!r}")
    cells = transfer_cells(stored_rows(plan, store), plan.rules[-1])
    wins = []
    for column in transfer_columns(plan):
        sides = [
            [cells[row, column].mean for row in side if (row, column) in cells] for side in (rows, others)
        ]
        if all(sides):
            wins.append(max(sides[0]) > max(sides[1]))
    return sum(wins), len(wins)


def transfer_records(plan: TransferTable, store: ResultStore) -> Table:
    """The long table, for machines: one row per rule, pre-training method and data set."""
    results = stored_rows(plan, store)
    rows: list[tuple[Value, ...]] = []
    for rule in plan.rules:
        cells = transfer_cells(results, rule)
        for row in transfer_titles(plan):
            for data in transfer_columns(plan):
                cell, numbers = cells.get((row, data)), published_transfer().get(row, {}).get(data, ("", ""))
                values: tuple[Value, ...] = ("", "", "")
                if cell is not None:
                    seeds = len(cell.scores)
                    over = round(float(np.std(cell.scores, ddof=1)), 4) if seeds > 1 else ""
                    values = (round(cell.mean, 4), over, seeds)
                rows.append((plan.name, rule, data, row, *values, *numbers))
    columns = (
        "table", "rule", "data", "pre-training", "mean", "over seeds", "seeds", "published",
        "published deviation",
    )  # fmt: skip
    return Table(columns, tuple(rows))


def _transfer_row(
    row: str,
    columns: Sequence[str],
    means: Mapping[str, Sequence[str]],
    cells: Mapping[tuple[str, str], TransferCell],
    averages: Mapping[str, float] | None,
) -> tuple[Value, ...]:
    """Ours above the published numbers; `means` are the columns that each of the last ones averages."""
    numbers = published_transfer().get(row, {})
    values: list[Value] = [row]
    for column in columns:
        below = f"{numbers[column][0]:.2f} ± {numbers[column][1]:.2f}" if column in numbers else ""
        cell = cells.get((row, column))
        if cell is None:
            values.append(TableCell("", below))
        else:
            best = max(other.mean for (_, name), other in cells.items() if name == column)
            values.append(TableCell(cell.text, below, cell.mean == best))
    for averaged in means.values():
        own = [cells[row, column].mean for column in averaged if (row, column) in cells]
        average = f"{np.mean(own):.2f}" if len(own) == len(averaged) else ""
        below = ""
        if averages is not None and averaged is not SIX_SETS:  # the paper prints the average of all eight
            below = f"{averages[row]:.2f}" if row in averages and set(averaged) >= set(MOLECULE_SETS) else ""
        elif all(column in numbers for column in averaged):
            below = f"{np.mean([numbers[column][0] for column in averaged]):.2f}"
        values.append(TableCell(average, below))
    return tuple(values)


def _loss_notes(plan: TransferTable, cells: Mapping[tuple[str, str], TransferCell]) -> list[str]:
    """How far each ensemble is above or below the best of its parts, by data set."""
    notes = []
    for row in dict.fromkeys(row for row, trial in plan.rows() if trial.way == "ensemble"):
        gains = {}
        for column in transfer_columns(plan):
            parts = [
                cells[title, column].mean for part in PARTS if (title := _part_title(part), column) in cells
            ]
            if (row, column) in cells and parts:
                gains[column] = cells[row, column].mean - max(parts)
        if gains:
            within = sum(gain >= -ALLOWED_LOSS for gain in gains.values())
            listed = ", ".join(f"{column} {gain:+.2f}" for column, gain in gains.items())
            notes.append(
                f"The ensemble and the best of its parts on the test set: {listed}. It is at most "
                f"{ALLOWED_LOSS:g} points below on {within} of {len(gains)}; which part is best is not "
                "known before testing."
            )
    return notes


def transfer_notes(plan: TransferTable, results: TransferRows) -> list[str]:
    """What a reader must know to read the table, in whole sentences."""
    notes = _shared_said_once(list(dict.fromkeys(result.words for _, result in results)))
    data, number, epochs = (plan.pretraining.get(key) for key in ("data", "molecules", "epochs"))
    if any(trial.needs_weights and MODEL not in trial.pretraining for trial in plan.trials()):
        count = f"{number:,}" if isinstance(number, int) else "all"
        often = "once" if epochs == 1 else f"for {epochs} epochs"
        notes.append(
            f"Weights are pre-trained on {count} molecules of {_sources_named(str(data))} {often}"
            f"{_budget(plan)}; they stand in for the two million of ZINC that the published numbers are made "
            "with."
        )
        if plan.pretraining.get("precision") == "bf16":
            notes.append("Encoders multiply in 16 bits (bf16), in pre-training and in fine-tuning.")
    several = any(len(cell.scores) > 1 for cell in transfer_cells(results, plan.rules[0]).values())
    notes.append(
        "Mean test ROC-AUC in per cent over the tasks that have both classes"
        + (", over seeds ± their standard deviation (ddof = 1)." if several else ".")
        + " Averages are given where every column has a number."
    )
    if any(row in published_transfer() for row, _ in plan.rows()):
        notes.append(
            'Published numbers (<span class="published">grey</span>) are of fine-tuned encoders, with other '
            "weights, epochs and rules for choosing a model."
        )
    return notes


def _shared_said_once(notes: Sequence[str]) -> list[str]:
    """The notes without the sentences that all of them have, and these as a note of their own."""
    if len(notes) < 2:
        return list(notes)
    by_note = [re.split(r"(?<=\.) (?=[A-Z])", note) for note in notes]
    shared = [sentence for sentence in by_note[0] if all(sentence in own for own in by_note)]
    rest = [" ".join(sentence for sentence in own if sentence not in shared) for own in by_note]
    return [note for note in (*rest, " ".join(shared)) if note]


def _sources_named(text: str) -> str:
    """`moses:1,zinc250k:3` as 'MOSES and ZINC250k (3 times as often)'."""
    pairs = parse_sources(text)
    names = [NAMED[name.lower()].title if name.lower() in NAMED else name for name, _ in pairs]
    usual = pairs[0][1]
    named = [
        name if weight == usual else f"{name} ({weight / usual:g} times as often)"
        for name, (_, weight) in zip(names, pairs, strict=True)
    ]
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def _budget(plan: TransferTable) -> str:
    """Molecules seen and steps of pre-training; methods with other batches have other numbers of steps."""
    methods: dict[tuple[object, object], list[str]] = {}
    for trial in plan.trials():
        if trial.needs_weights and MODEL not in trial.pretraining:
            weights = trial.weights()
            named = methods.setdefault((weights.get("seen"), weights.get("steps")), [])
            named += [trial.method] if trial.method not in named else []
    if any(seen is None for seen, _ in methods):
        return ""
    most = max(methods, key=lambda budget: len(methods[budget]))
    others = [f"{', '.join(names)}: {budget[1]:,}" for budget, names in methods.items() if budget != most]
    return f": {most[0]:,} seen in {most[1]:,} steps" + (f" ({'; '.join(others)})" if others else "")


def table_text(plan: AnyTable, store: ResultStore) -> str:
    """A table of a plan as Markdown, with how much of it has run."""
    if isinstance(plan, TransferTable):
        if not any(trial in store for trial in plan.trials()):
            return f"*{escape_markdown(plan.title)}: none of {len(plan.trials())} trials has run yet.*\n"
        return "\n".join(table.markdown() for table in transfer_tables(plan, store))
    rows = plan.rows()
    stored = [(row, result) for row, trial in rows if (result := store.get(trial)) is not None]
    if not stored:
        return f"*{escape_markdown(plan.title)}: none of {len(rows)} trials has run yet.*\n"
    body = _body(plan, rows, [row for row, _ in stored], [result for _, result in stored])
    columns = column_names([trial for _, trial in rows])
    places = [(row, column) for (row, _), column in zip(rows, columns, strict=True)]
    missing = len(rows) - len(stored)
    left = f" {missing} of {len(rows)} trials have not run yet." if missing else ""
    notes = missing_notes(places, [trial in store for _, trial in rows])
    body = replace(body, notes=(*notes, *body.notes))
    return f"**{escape_markdown(plan.title)}.**{left}\n\n{body.markdown()}"


def stored_comparison(plan: TablePlan, store: ResultStore) -> Comparison | None:
    """The comparison that a table of a plan shows; None if nothing of it has run."""
    rows = plan.rows()
    stored = [(row, result) for row, trial in rows if (result := store.get(trial)) is not None]
    if not stored:
        return None
    return compare_results(
        [result for _, result in stored], labels=[row for row, _ in stored],
        methods=list(dict.fromkeys(row for row, _ in rows)), control=plan.control,
    )  # fmt: skip


def missing_notes(
    places: Sequence[tuple[str, str]], stored: Sequence[bool], *, seeds: bool = True
) -> list[str]:
    """Sentences that name the cells of a table without a result, and those with fewer seeds than planned.

    Args:
        places: Row and column of each planned trial.
        stored: Whether it has a result.
        seeds: Whether the trials of a cell are its seeds, so that a share of them is worth a sentence.
    """
    counts: dict[tuple[str, str], list[bool]] = {}
    for place, found in zip(places, stored, strict=True):
        counts.setdefault(place, []).append(found)
    columns = list(dict.fromkeys(column for _, column in counts))
    empty: list[str] = []
    partial: list[str] = []
    for column in columns:
        cells = {row: found for (row, other), found in counts.items() if other == column}
        left = [row for row, found in cells.items() if not any(found)]
        if len(left) == len(cells):
            empty.append(f"{column} (all rows)")
        elif left:
            empty.append(f"{column} ({', '.join(left)})")
        some = [f"{row} {sum(f)} of {len(f)}" for row, f in cells.items() if any(f) and not all(f)]
        if some:
            partial.append(f"{column} ({', '.join(some)})")
    notes = [f"Not run: {'; '.join(empty)}."] if empty else []
    return [*notes, f"Seeds so far: {'; '.join(partial)}."] if partial and seeds else notes


def _body(
    plan: TablePlan, rows: Sequence[tuple[str, ProbeTrial]], labels: Sequence[str], results: Sequence[Result]
) -> Table:
    titles = list(dict.fromkeys(row for row, _ in rows))
    if plan.inner:
        return inner_table(results, labels, titles)
    columns = list(dict.fromkeys(column_names([trial for _, trial in rows])))
    comparison = compare_results(
        results, labels=labels, methods=titles, columns=columns, control=plan.control
    )
    return comparison_table(comparison)
