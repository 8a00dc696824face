"""Tables: one class that is written as Markdown, LaTeX, CSV or terminal text."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from numbers import Number


@dataclass(frozen=True)
class Cell:
    """A cell with two lines: a value, and the published value below it. `best` sets the value in bold."""

    text: str = ""
    published: str = ""
    best: bool = False


Value = Cell | str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows under column titles, with notes below.

    Args:
        columns: Column titles. The first column usually names the row.
        rows: One value per column. `None` and NaN are written as empty cells.
        title: Caption, without a full stop.
        notes: Whole sentences to be printed below, in Markdown.
        align: One letter per column, `l` or `r`. By default the first column is `l` and the others `r`.
        second_line: What the second line of a `Cell` holds.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    align: str = ""
    second_line: str = "published"

    def __post_init__(self) -> None:
        if not self.align:
            object.__setattr__(self, "align", "l" + "r" * (len(self.columns) - 1))
        if any(len(row) != len(self.columns) for row in self.rows) or len(self.align) != len(self.columns):
            raise ValueError("every row needs one value per column")

    def markdown(self) -> str:
        """A GitHub-flavoured table with its title and notes."""
        rules = {"l": "---", "r": "---:"}
        lines = [f"**{escape_markdown(self.title)}.**", ""] if self.title else []
        lines.append(f"| {' | '.join(_markdown(title) for title in self.columns)} |")
        lines.append(f"| {' | '.join(rules[side] for side in self.align)} |")
        lines += [f"| {' | '.join(map(_markdown, row))} |" for row in self.rows]
        return "\n".join([*lines, *(f"\n{escape_markdown(note)}" for note in self.notes)]) + "\n"

    def html(self) -> str:
        """A table with its title and notes, for a notebook; all text is escaped."""
        sides = {"l": "left", "r": "right"}
        styles = [f' style="text-align:{sides[side]}"' for side in self.align]
        head = "".join(f"<th{s}>{escape(c)}</th>" for s, c in zip(styles, self.columns, strict=True))
        body = "".join(
            f"<tr>{''.join(f'<td{s}>{_html(v)}</td>' for s, v in zip(styles, row, strict=True))}</tr>"
            for row in self.rows
        )
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        notes = "".join(f"<p>{escape(plain_text(note))}</p>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.html()

    def latex(self) -> str:
        """A `table*` environment that needs the package booktabs only; notes become comments."""
        lines = [
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_latex(self.title)}.}}",
            rf"\begin{{tabular}}{{{self.align}}}",
            r"\toprule",
            " & ".join(map(_latex, self.columns)) + r" \\",
            r"\midrule",
        ]
        for row in self.rows:
            cells = [value if isinstance(value, Cell) else Cell(_text(value)) for value in row]
            texts = [rf"\textbf{{{_latex(c.text)}}}" if c.best else _latex(c.text) for c in cells]
            lines.append(" & ".join(texts) + r" \\")
            if any(cell.published for cell in cells):
                below = [rf"\footnotesize {_latex(c.published)}" if c.published else "" for c in cells]
                below[0] = rf"\quad\footnotesize {_latex(self.second_line)}"
                lines.append(" & ".join(below) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
        lines += [f"% {plain_text(note)}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Comma-separated values: a header and the first line of every cell."""
        rows = [[v if isinstance(v, int) or v == v else "" for v in row] for row in self.rows]  # NaN
        return csv_text(self.columns, [["" if v is None else v for v in row] for row in rows])

    def show(self) -> None:
        """Print a ruled table on a terminal, tab-separated lines elsewhere."""
        if not sys.stdout.isatty():
            for row in [self.columns, *self.rows]:
                sys.stdout.write("\t".join(map(_text, row)) + "\n")
            return
        from rich import table as rich_table
        from rich.console import Console
        from rich.text import Text

        ruled = rich_table.Table(title=self.title or None, title_justify="left")
        for position, title in enumerate(self.columns):
            numeric = bool(self.rows) and all(isinstance(row[position], (int, float)) for row in self.rows)
            ruled.add_column(title, justify="right" if numeric else "left")
        for row in self.rows:
            # Text, not str: a name like "[red]" is data, not markup.
            ruled.add_row(*(Text(_text(value)) for value in row))
        Console().print(ruled)


def csv_text(columns: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """Comma-separated lines that a spreadsheet opens without running formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([safe_cell(value) for value in row] for row in rows)
    return text.getvalue()


def safe_cell(value: object) -> str:
    """A text cell that no spreadsheet takes for a formula; numbers keep their sign."""
    text = _text(value) if isinstance(value, Cell) else str(value)
    is_number = isinstance(value, Number)
    return f"'{text}" if not is_number and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def escape_markdown(text: str) -> str:
    """A Markdown text without HTML, links and line breaks, which a name of a data set may hold.

    Markup such as `**` stays, and so does the element of published numbers.
    """
    text = re.sub(r"&(?=#?\w+;)", "&amp;", " ".join(text.split())).replace("](", r"]\(")
    return _ELEMENT.sub(lambda match: match[0] if match[1] else "&lt;", text)


def plain_text(note: str) -> str:
    """A Markdown note without markup, on one line."""
    without = re.sub(r"<[^>]+>|\\|\*\*|(?<=\s)\*(?=\w)|(?<=\w)\*(?=[,.\s])", "", note)
    return " ".join(without.split())


def _text(value: Value) -> str:
    if isinstance(value, Cell):
        return value.text
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


_ELEMENT = re.compile(r'(<span(?: class="published")?>|</span>)|<(?=[a-zA-Z/!?])')


def _markdown(value: Value) -> str:
    if not isinstance(value, Cell):
        return escape_markdown(_text(value)).replace("|", r"\|")
    text = escape_markdown(value.text).replace("*", r"\*").replace("|", r"\|")
    if value.best and text:
        text = f"**{text}**"
    below = f'<span class="published">{escape_markdown(value.published)}</span>' if value.published else ""
    return "<br>".join(part for part in (text, below) if part)


def _html(value: Value) -> str:
    if not isinstance(value, Cell):
        return escape(_text(value))
    text = f"<b>{escape(value.text)}</b>" if value.best and value.text else escape(value.text)
    below = f'<small style="color:#666">{escape(value.published)}</small>' if value.published else ""
    return "<br/>".join(part for part in (text, below) if part)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{",
    "}": r"\}", "±": r"$\pm$", "†": r"$^\dagger$", "*": "$^*$", "λ": r"$\lambda$", "~": r"\~{}",
    "₁": "$_1$", "₂": "$_2$", "₃": "$_3$", "^": r"\^{}",
}  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
