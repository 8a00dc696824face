"""What was measured: one JSON file, the table in the terminal, and the tables of the pages on speed."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.rows import ROWS
from graphsc.core.files import write_atomic
from graphsc.core.tables import Cell, Table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
PAGES = tuple(ROOT / "docs" / f"{name}.md" for name in ("speed", "speed-training", "speed-other"))
# Rows of the page on training; the others are on the third page.
TRAINING = ("sparse", "encoder", "views", "bridge", "step", "epoch", "methods", "pretrain", "transfer")
PACKAGES = (
    "torch", "torch-geometric", "numpy", "scipy", "scikit-learn", "numba", "networkx", "rdkit", "gensim",
    "grakel", "distributed",
)  # fmt: skip

Facts = dict[str, object]
Stored = dict[str, tuple[Facts, list[Result]]]  # by row, in the order of `ROWS`

_MARK = re.compile(r"(<!-- figures: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)
_CLOCKS = {"cpu": "CPU time", "wall": "wall time"}


def machine_facts(threads: int) -> Facts:
    """What the figures depend on besides the code: the CPU, its cores, the versions."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(errors="replace"), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def load(path: Path = RESULTS) -> Stored:
    """The stored results of each row; rows that do not exist any more are left out."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    return {
        name: (stored[name]["machine"], [Result(**row) for row in stored[name]["results"]])
        for name in ROWS
        if name in stored
    }


def store(name: str, facts: Facts, results: Sequence[Result], path: Path = RESULTS) -> None:
    """Replace the results of one row and keep the others, so that short and long runs share a file."""
    stored = load(path)
    stored[name] = (facts, list(results))
    document = {
        row: {"machine": stored[row][0], "results": [result.to_json() for result in stored[row][1]]}
        for row in ROWS
        if row in stored
    }
    write_atomic(path, json.dumps(document, indent=1) + "\n")


def terminal_table(results: Sequence[Result], threads: int) -> Table:
    """All columns, for a wide terminal."""
    columns = (
        "row", "case", "ours", "CPU", "against", "", "CPU", "unit", "ratio", "median", "by", "bar (goal)",
        "repeats", "verdict",
    )  # fmt: skip
    rows = tuple(
        (
            r.benchmark, r.case, f"{r.ours_ms:.4g}", f"{r.ours_cpu_ms:.4g}", f"{r.other_ms:.4g}", r.against,
            f"{r.other_cpu_ms:.4g}", r.unit, f"{r.ratio:.2f}", f"{r.median_ratio:.2f}",
            ROWS[r.benchmark].judged_by, r.bar_text, r.repeats or "", r.verdict,
        )
        for r in results
    )  # fmt: skip
    notes = tuple(f"{r.benchmark}, {r.case}: {r.note}" for r in results if r.note)
    return Table(columns, rows, f"Benchmarks, {threads} thread of {os.cpu_count()} cores", notes)


def write_pages(pages: Sequence[Path] = PAGES, path: Path = RESULTS) -> bool:
    """Rebuild the pages; True if anything changed."""
    changed = False
    for page in pages:
        before = page.read_text()
        after = fill(before, load(path))
        if after != before:
            write_atomic(page, after)
            changed = True
    return changed


def fill(text: str, stored: Stored) -> str:
    """The page with everything between marks made anew from what is stored."""

    def results(training: bool) -> str:
        differ = len({json.dumps(facts) for facts, _ in stored.values()}) > 1
        own = {name: each for name, each in stored.items() if (name in TRAINING) == training}
        return _results(own, differ)

    parts = {
        "summary": lambda: _summary(stored),
        "rows": _rows_table,
        "results-training": lambda: results(True),
        "results-other": lambda: results(False),
    }
    return _MARK.sub(lambda match: f"{match[1]}\n{parts[match['name']]()}\n{match[4]}", text)


def _rows_table() -> str:
    # Not a `Table`, which would take the links of these texts for those of a stranger.
    rows = [
        (
            f"`{name}`" + (" (long)" if row.long else ""),
            row.ours,
            row.against if row.kind == "self" else f"{row.kind}: {row.against}",
            _CLOCKS[row.judged_by].removesuffix(" time"),
        )
        for name, row in ROWS.items()
    ]
    lines = [("row", "ours", "against", "by"), ("---",) * 4, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _summary(stored: Stored) -> str:
    results = [result for _, each in stored.values() for result in each]
    if not results:
        return "*`make bench` has not run yet.*\n"
    verdicts = [result.verdict for result in results]
    counted = f"{len(results)} cases of {len(stored)} rows: " + ", ".join(
        f"{verdicts.count(verdict)} {said}"
        for verdict, said in (("goal", "reach the goal"), ("pass", "pass"), ("MISSED", "miss the bar"))
    )
    lines = [f"{counted}.", ""]
    if missing := [f"`{name}`" for name in ROWS if name not in stored]:
        lines += [f"Not measured yet: {', '.join(missing)}.", ""]
    machines = [facts for facts, _ in stored.values()]
    if all(facts == machines[0] for facts in machines):
        lines += [f"Measured on {describe(machines[0])}.", ""]
    missed = tuple(
        (f"`{r.benchmark}`", r.case, r.against, f"{r.ratio:.2f}", r.bar_text)
        for r in results
        if r.verdict == "MISSED"
    )
    if missed:
        table = Table(("row", "case", "against", "ratio", "bar (goal)"), missed, "Missed", align="lllrr")
        lines.append(table.markdown())
    return "\n".join(lines)


def _results(stored: Stored, facts_differ: bool) -> str:
    """The tables of these rows, each with its machine where machines differ."""
    parts = []
    for name, (facts, results) in stored.items():
        row = ROWS[name]
        title = {"peer": "Peer", "floor": "Floor", "self": "Against"}[row.kind]
        parts += [
            f"## {name}",
            "",
            f"Ours: {row.ours}. {title}: {row.against}.",
            f"Equal: {row.equal}. Not equal: {row.different}. Ratio of {_CLOCKS[row.judged_by]}.",
            "",
            _case_table(results).markdown(),
        ]
        if facts_differ:
            parts += [f"On {describe(facts)}.", ""]
    return "\n".join(parts)


def _case_table(results: Sequence[Result]) -> Table:
    unit = {result.unit for result in results}
    same_unit = unit.pop() if len(unit) == 1 else None

    def measured(value: float, cpu: float, own: str) -> str:
        text = f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"
        if cpu:
            text += f" / {cpu:,.4g}" if cpu < 1e4 else f" / {cpu:,.0f}"
        return text if same_unit else f"{text} {own}"

    rows = tuple(
        (
            r.case, measured(r.ours_ms, r.ours_cpu_ms, r.unit), r.against,
            measured(r.other_ms, r.other_cpu_ms, r.unit), f"{r.ratio:.2f}", f"{r.median_ratio:.2f}",
            r.bar_text, r.repeats or "", Cell(r.verdict, best=r.verdict == "MISSED"),
        )
        for r in results
    )  # fmt: skip
    shown = f" ({same_unit})" if same_unit else ""
    columns = (
        "case", f"ours{shown}", "against", f"its{shown}", "ratio", "median", "bar (goal)", "repeats",
        "verdict",
    )  # fmt: skip
    notes: dict[str, list[str]] = {}
    for result in results:
        if result.note:
            notes.setdefault(result.note, []).append(result.case)
    said = tuple(
        f"{note[0].upper()}{note[1:]}." if len(cases) == len(results) else f"{', '.join(cases)}: {note}."
        for note, cases in notes.items()
    )
    return Table(columns, rows, notes=said, align="lrlrrrrrl")


def describe(facts: Mapping[str, object]) -> str:
    """The machine in a sentence."""
    start = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}, {facts['threads']} thread"
    packages = ", ".join(
        f"{name} {value}"
        for name, value in facts.items()
        if name not in ("cpu", "cores", "system", "threads") and value != "missing"
    )
    return f"{start}; {packages}"
