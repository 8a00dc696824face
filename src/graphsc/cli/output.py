"""Output of the verbs: tables on a terminal, tab-separated lines in a pipe, and JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence


def print_json(value: object) -> None:
    """Print one JSON document: a line per key, arrays on one line, and a line per object of a list.

    NaN and infinity, which JSON does not have, are null.
    """
    sys.stdout.write(_json_text(_finite(value)) + "\n")


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json_text(value: object, pad: str = "") -> str:
    inner = pad + "  "
    if isinstance(value, Mapping) and value:
        items = (f"{inner}{json.dumps(key)}: {_json_text(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(items) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return "[\n" + ",\n".join(inner + json.dumps(item) for item in value) + f"\n{pad}]"
    return json.dumps(value)


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table on a terminal, or else tab-separated lines with a header."""
    if not sys.stdout.isatty():
        for row in [headers, *rows]:
            sys.stdout.write("\t".join(str(cell) for cell in row) + "\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for position, header in enumerate(headers):
        numeric = bool(rows) and all(isinstance(row[position], (int, float)) for row in rows)
        table.add_column(header, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        # Text, not str: a name such as "[red]" is not markup.
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, object]]) -> None:
    """Print one name and value per line; the title is shown on a terminal only."""
    if not sys.stdout.isatty():
        for name, value in facts:
            sys.stdout.write(f"{name}\t{value}\n")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(str(value)))
    Console().print(table)


def row_facts(
    read: int, reasons: Sequence[tuple[str, int]], rejected: int, listing: object = None
) -> list[tuple[str, object]]:
    """How many rows of a source were read, used and rejected, the most frequent reasons, and their list."""
    facts: list[tuple[str, object]] = [("read", read), ("used", read - rejected), ("rejected", rejected)]
    if rejected:
        facts.append(("reasons", "; ".join(f"{reason} ({count:,})" for reason, count in reasons)))
        if listing is not None:
            facts.append(("rejected rows", listing))
    return facts


def print_error(message: str) -> None:
    """Print one line on stderr; above the progress bar, if there is one."""
    sys.stderr.write(" ".join(message.split()) + "\n")
