"""Ideas that were looked at once each before one was made a method: a table out of their log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from graphsc.experiments.candidates import Look

_MARK = "idea: "


def ideas_markdown(looks: Sequence[Look]) -> str:
    """Ideas by data sets, with all labels and with few, the mean over development seeds of each."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    counted = 0
    for look in looks:
        what = str(look.get("what", ""))
        if not what.startswith(_MARK):
            continue
        counted += 1
        for column in ("inner", "few"):
            values[what.removeprefix(_MARK), str(look["data"]).upper(), column].append(
                float(str(look[column]))
            )
    rows = list(dict.fromkeys(row for row, _, _ in values))
    sets = list(dict.fromkeys(data for _, data, _ in values))
    heads = [f"{data}, {words}" for data in sets for words in ("all labels", "5 %")]
    lines = [f"| idea | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for row in rows:
        cells = [values.get((row, data, column), []) for data in sets for column in ("inner", "few")]
        lines.append(f"| {row} | {' | '.join(f'{np.mean(c):.2f}' if c else '' for c in cells)} |")
    seeds = ", ".join(
        f"{data} {max(len(v) for (_, d, c), v in values.items() if d == data and c == 'inner')}"
        for data in sets
    )
    words = (
        f"{counted} looks: accuracy in per cent on inner folds of training parts, mean over seeds "
        f"(at most {seeds}). *Beside first weights*: vectors of the trained encoder and of the untrained "
        "one, joined."
    )
    return "\n".join(lines) + f"\n\n{words}\n"
