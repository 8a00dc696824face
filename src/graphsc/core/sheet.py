"""A table as text: Markdown for pages, LaTeX (booktabs) for papers, CSV for machines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphsc.core.tables import safe_cell


@dataclass(frozen=True)
class Entry:
    """A cell: ours, and under it what the paper prints; `best` of its column in bold."""

    text: str = ""
    under: str = ""
    best: bool = False


@dataclass(frozen=True)
class Sheet:
    """Rows of entries with a name each, and whole sentences that belong below them."""

    title: str
    heads: tuple[str, ...]  # of the names, then of the entries
    rows: tuple[tuple[str, tuple[Entry, ...]], ...]
    notes: tuple[str, ...] = ()
    beside: str = "published"  # what the lower line of an entry is
    numeric: bool = True
    # The same numbers, one a line, for machines.
    record_heads: tuple[str, ...] = ()
    records: tuple[tuple[object, ...], ...] = field(default=())

    def markdown(self) -> str:
        """A table that a page can hold, with its notes."""
        rule = " ---: |" if self.numeric else " --- |"
        lines = [f"**{self.title}.**", "", f"| {' | '.join(self.heads)} |"]
        lines.append(f"| --- |{rule * (len(self.heads) - 1)}")
        lines += [
            f"| {' | '.join([name, *(_in_markdown(entry) for entry in entries)])} |"
            for name, entries in self.rows
        ]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def latex(self) -> str:
        """A table environment that needs the package booktabs and nothing else."""
        columns = "l" + ("r" if self.numeric else "l") * (len(self.heads) - 1)
        lines = [
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_escaped(self.title)}.}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(_escaped(head) for head in self.heads) + r" \\",
            r"\midrule",
        ]
        for name, entries in self.rows:
            cells = [rf"\textbf{{{_escaped(e.text)}}}" if e.best else _escaped(e.text) for e in entries]
            lines.append(" & ".join([_escaped(name), *cells]) + r" \\")
            if any(entry.under for entry in entries):
                under = [rf"\footnotesize {_escaped(e.under)}" if e.under else "" for e in entries]
                beside = rf"\quad\footnotesize {_escaped(self.beside)}"
                lines.append(" & ".join([beside, *under]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
        lines += [f"% {_plain(note)}" for note in self.notes]
        return "\n".join(lines) + "\n"


def csv_of(sheets: Sequence[Sheet]) -> str:
    """The records of all sheets as one table; sheets of one output have the same heads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheets[0].record_heads)
    for sheet in sheets:
        writer.writerows([safe_cell(value) for value in record] for record in sheet.records)
    return text.getvalue()


def _in_markdown(entry: Entry) -> str:
    text = entry.text.replace("*", r"\*")
    if entry.best and text:
        text = f"**{text}**"
    under = f'<span class="published">{entry.under}</span>' if entry.under else ""
    return "<br>".join(part for part in (text, under) if part)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{",
    "}": r"\}", "±": r"$\pm$", "†": r"$^\dagger$", "*": "$^*$", "λ": r"$\lambda$", "~": r"\~{}",
    "₁": "$_1$", "₂": "$_2$", "₃": "$_3$", "^": r"\^{}",
}  # fmt: skip


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _plain(text: str) -> str:
    """A note as a comment: no markup, one line."""
    return " ".join(re.sub(r"<[^>]+>|\\", "", text).split())
