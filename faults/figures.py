"""What the long commands measured: a small file each, and the tables of the page made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "reliability"
PAGE = ROOT / "docs" / "reliability.md"
_MARK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)

Stored = dict[str, dict[str, object]]  # by verb or reader

COLUMNS = {
    "soak": (
        "rounds",
        "kills",
        "resumes",
        "damaged",
        "left_over",
        "mismatches",
        "processes_left",
        "seconds",
    ),
    "fuzz": ("inputs", "survivors", "findings", "slowest_s", "peak_mb", "seconds"),
    "bits": (
        "bytes",
        "flips",
        "cuts",
        "refused",
        "edited",
        "same",
        "earlier",
        "silent",
        "errors",
        "seconds",
    ),
}


def store(name: str, figures: Stored) -> None:
    """Keep the figures of one command."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")


def load(name: str) -> Stored:
    """The figures of the last run of a command; none where it has not run."""
    path = RESULTS / f"{name}.json"
    found: Stored = json.loads(path.read_text()) if path.exists() else {}
    return found


def fill(text: str) -> str:
    """The page with every marked table made anew from what is stored."""
    return _MARK.sub(lambda match: f"{match[1]}\n{table(match['name'])}\n{match[4]}", text)


def write_page() -> bool:
    """Rebuild the page; True if anything changed."""
    before = PAGE.read_text()
    after = fill(before)
    PAGE.write_text(after)
    return after != before


def table(name: str) -> str:
    """One command's figures as Markdown."""
    found = load(name)
    if not found:
        return f"*`make {name}` has not run yet.*\n"
    if name not in COLUMNS:
        return _beside(name, found)
    columns = COLUMNS[name]
    rows = [[key, *(row.get(column, "") for column in columns)] for key, row in found.items()]
    # A column that is newer than some of the rows has no sum.
    complete = [column for column in columns if all(column in row for row in found.values())]
    counts = [column for column in complete if column not in ("bytes", "slowest_s", "peak_mb", "seconds")]
    sums = {column: sum(int(str(row[column])) for row in found.values()) for column in counts}
    rows.append(["all", *(sums.get(column, "") for column in columns)])
    return _lines((name, *(column.replace("_", " ") for column in columns)), rows)


def _beside(name: str, found: Stored) -> str:
    """Few verbs and many figures: a column a verb."""
    keys = dict.fromkeys(key for row in found.values() for key in row)
    rows = [[key.replace("_", " "), *(row.get(key, "") for row in found.values())] for key in keys]
    return _lines((name, *found), rows)


def _lines(header: tuple[str, ...], rows: list[list[object]]) -> str:
    def shown(value: object) -> str:
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(shown(cell) for cell in line)} |\n" for line in lines)
