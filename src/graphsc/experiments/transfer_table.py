"""The transfer table: ROC-AUC by pre-training method and set of molecules, from stored results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphsc.experiments.published import published_transfer
from graphsc.experiments.transfer_plan import TransferTable
from graphsc.experiments.transfer_run import TransferStore
from graphsc.finetuning.result import RULES, TransferResult

COLUMNS = ("BBBP", "Tox21", "ToxCast", "SIDER", "ClinTox", "MUV", "HIV", "BACE")


@dataclass(frozen=True)
class TransferCell:
    """Scores in per cent, one a seed."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))

    @property
    def text(self) -> str:
        """Mean and deviation over seeds (ddof 0)."""
        return f"{self.mean:.2f}" + (f" ± {np.std(self.scores):.2f}" if len(self.scores) > 1 else "")


Cells = Mapping[tuple[str, str], TransferCell]  # by row and column


def cells_of(found: Sequence[tuple[str, TransferResult]], rule: str) -> dict[tuple[str, str], TransferCell]:
    """Results by row and data set; a fitted model has one rule, which stands in every table."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row, result in found:
        chosen = rule if rule in result.rules else "fit" if "fit" in result.rules else "last"
        scores.setdefault((row, str(result.trial["data"])), []).append(100 * result.score(chosen))
    return {place: TransferCell(tuple(values)) for place, values in scores.items()}


def transfer_text(table: TransferTable, store: TransferStore) -> str:
    """A table of the plan as Markdown, one part a rule, with how much of it has run."""
    rows = table.rows()
    found = [(name, kept) for name, trial in rows if (kept := store.get(trial)) is not None]
    if not found:
        return f"*{table.title}: none of {len(rows)} trials has run yet.*\n"
    missing = len(rows) - len(found)
    rest = f" {missing} of {len(rows)} trials have not run yet." if missing else ""
    names = list(dict.fromkeys(name for name, _ in rows))
    parts = [f"**{table.title}.**{rest}"]
    for rule in table.rules:
        if len(table.rules) > 1:
            parts.append(f"*The model {RULES[rule]}:*")
        parts.append(markdown(cells_of(found, rule), names, columns_of(rows)))
    return "\n\n".join([*parts, *notes(table, found)]) + "\n"


def columns_of(rows: Sequence[tuple[str, object]]) -> list[str]:
    """The paper's columns first, in its order, then any other of the plan."""
    used = list(dict.fromkeys(trial.data_name for _, trial in rows))  # type: ignore[attr-defined]
    return [*(name for name in COLUMNS if name in used), *(name for name in used if name not in COLUMNS)]


def markdown(cells: Cells, rows: Sequence[str], columns: Sequence[str]) -> str:
    """Rows by columns and an average, published numbers in grey below ours; empty where nothing has run."""
    heads = ["pre-training", *columns, "average"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' + ' ---: |' * (len(heads) - 1)}"]
    best = {
        column: max((cell.mean for (_, head), cell in cells.items() if head == column), default=np.nan)
        for column in columns
    }
    for row in rows:
        printed = published_transfer().get(row, {})
        texts = [row]
        for column in columns:
            cell = cells.get((row, column))
            text = "" if cell is None else cell.text
            if cell is not None and cell.mean == best[column]:
                text = f"**{text}**"
            if column in printed:
                text = _with_grey(text, f"{printed[column][0]:.2f} ± {printed[column][1]:.2f}")
            texts.append(text)
        means = [cells[row, column].mean for column in columns if (row, column) in cells]
        average = f"{np.mean(means):.2f}" if len(means) == len(columns) else ""
        if all(column in printed for column in columns):
            average = _with_grey(average, f"{np.mean([printed[column][0] for column in columns]):.2f}")
        lines.append(f"| {' | '.join([*texts, average])} |")
    return "\n".join(lines)


def _with_grey(ours: str, published: str) -> str:
    return f'{ours}{"<br>" if ours else ""}<span class="published">{published}</span>'


def notes(table: TransferTable, results: Sequence[tuple[str, TransferResult]]) -> list[str]:
    """What the reader must know to read the table, in whole sentences."""
    found = list(dict.fromkeys(result.words for _, result in results))
    data, number, epochs = (table.pretraining.get(key) for key in ("data", "molecules", "epochs"))
    if any(trial.needs_weights for trial in table.trials()):
        count = f"{number:,}" if isinstance(number, int) else "all"
        found.append(
            f"Weights are pre-trained on {count} molecules of {str(data).upper()} for {epochs} epochs; they "
            "stand in for the two million of ZINC that the published numbers are made with."
        )
        if table.pretraining.get("precision") == "bf16":
            found.append("Encoders multiply in 16 bits (bf16), in pre-training and in fine-tuning.")
    several = any(len(cell.scores) > 1 for cell in cells_of(results, table.rules[0]).values())
    found.append(
        "Mean test ROC-AUC in per cent over the tasks that have both classes"
        + (", over seeds ± their deviation." if several else ".")
        + " Averages are given where every column has a number."
    )
    found.append(
        'Published numbers (<span class="published">grey</span>) are of fine-tuned encoders, with other '
        "weights, epochs and rules for choosing a model."
    )
    return found
