"""`metrics.csv`: one row an epoch, columns as they come, cut back to where a resumed run starts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import write_atomic

TIMES = ("seconds", "graphs_per_second")  # the only columns that differ between two equal runs


class Metrics:
    """Rows of numbers by name. The file is rewritten whole: it is small, and never partial."""

    def __init__(self, path: Path | None, keep: int = 0) -> None:
        """Start with the first `keep` epochs of what is already there."""
        self.path = path
        self.rows: list[dict[str, float]] = []
        if path is not None and path.exists() and keep:
            try:
                with open(path, newline="", encoding="utf-8") as file:
                    found = [
                        {name: float(text) for name, text in row.items() if name and text}
                        for row in csv.DictReader(file)
                    ]
            except (ValueError, TypeError, csv.Error) as error:
                raise DamagedFileError(
                    f"metrics are damaged: {error}", where=str(path),
                    hint="remove the file to go on without the epochs before",
                ) from error  # fmt: skip
            self.rows = [row for row in found if row.get("epoch", keep + 1) <= keep]

    def add(self, row: dict[str, float]) -> None:
        self.rows.append(row)
        if self.path is None:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows([{name: _plain(value) for name, value in row.items()} for row in self.rows])
        write_atomic(self.path, text.getvalue())


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
