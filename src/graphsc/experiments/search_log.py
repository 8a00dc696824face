"""A search over several data sets that logs every evaluation, so that evaluations can be counted.

A line of the log holds the accuracy on inner folds, which hold training graphs only, on seeds that no table
reports. No test fold is predicted or stored.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.files import file_lock, json_line, parse_json_line, write_atomic
from graphsc.core.run_folder import RunFolder
from graphsc.core.tables import Table
from graphsc.evaluation.protocol import ORDERS
from graphsc.experiments.plan import TablePlan
from graphsc.experiments.runner import one_thread
from graphsc.experiments.sweep import DEVELOPMENT, run_inner
from graphsc.training.callbacks import Metrics

HEALTH = ("loss", "effective_rank", "uniformity", "alignment", "mean_cosine", "active_triplets")
LogEntry = Mapping[str, object]


def run_candidates(
    tables: Sequence[TablePlan], log: Path, runs: Path, say: Callable[[str], None] = lambda _: None
) -> int:
    """Run every trial that has no line in the log. The same call resumes after a stop.

    Args:
        tables: Tables whose rows are the candidates.
        log: The file to add lines to.
        runs: Parent folder of training runs.
        say: Receives a sentence per trial.

    Returns:
        The number of new lines.
    """
    rows = [(table.name, name, trial) for table in tables for name, trial in table.rows()]
    for _, name, trial in rows:
        if trial.seed < DEVELOPMENT:
            raise ConfigError(
                f"candidate {name!r} asks for seed {trial.seed}, which tables report",
                hint=f"use first_seed: {DEVELOPMENT} or more",
            )
    with file_lock(log.with_suffix(".lock")):
        done = {entry["key"] for entry in read_log(log)}
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        before = len(done)
        for table, name, trial in rows:
            if trial.key() in done:
                continue
            started = time.monotonic()
            with one_thread():
                inner = run_inner(trial, runs)
            metrics = Metrics(RunFolder(runs / trial.run_name()).metrics, keep=10**9).rows
            last = metrics[-1] if metrics else {}
            entry = {
                "search": table, "candidate": name, "method": trial.method, "data": trial.data_name,
                "seed": trial.seed, "settings": dict(trial.settings), "training": dict(trial.training),
                "folds": trial.protocol.folds, "inner_order": trial.protocol.inner_order,
                "inner": round(100 * inner, 2), "key": trial.key(),
                "seconds": round(time.monotonic() - started, 1),
                "health": {key: round(last[key], 4) for key in HEALTH if key in last},
            }  # fmt: skip
            lines.append(json_line(entry))
            write_atomic(log, "".join(lines))
            done.add(trial.key())
            say(f"{name} on {trial.data_name}, seed {trial.seed}: {100 * inner:.2f} % on inner folds")
        return len(done) - before


def read_log(log: Path) -> list[LogEntry]:
    """The lines of a log in the order of their runs; none where there is no such file."""
    if not log.exists():
        return []
    entries: list[LogEntry] = []
    for number, line in enumerate(log.read_bytes().splitlines(keepends=True), start=1):
        entry = parse_json_line(line)
        if entry is None:
            raise DamagedFileError("a line of the search log is damaged", where=f"{log}, line {number}")
        entries.append(entry)
    return entries


def log_markdown(log: Sequence[LogEntry]) -> str:
    """A table per search, in the order of their runs, and the number of evaluations."""
    searches = dict.fromkeys(str(entry["search"]) for entry in log)
    parts = [
        f"**{name}**\n\n" + _search_table([entry for entry in log if entry["search"] == name]).markdown()
        for name in searches
    ]
    candidates = {str(entry["candidate"]) for entry in log}
    note = (
        f"{len(log)} evaluations of {len(candidates)} candidates: accuracy in per cent on inner folds, mean "
        f"over development seeds ({DEVELOPMENT} and up); no test fold was used."
    )
    return "\n".join([*parts, note]) + "\n"


def _search_table(log: Sequence[LogEntry]) -> Table:
    """Candidates by data sets, means over seeds; the best first among those that ran on every data set."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for entry in log:
        values[str(entry["candidate"]), str(entry["data"])].append(float(str(entry["inner"])))
    columns = list(dict.fromkeys(data for _, data in values))
    candidates = list(dict.fromkeys(candidate for candidate, _ in values))
    means = {
        row: [float(np.mean(values[row, data])) if (row, data) in values else np.nan for data in columns]
        for row in candidates
    }
    # Incomplete rows have no mean to be ordered by, and come last.
    order = sorted(candidates, key=lambda row: float(np.nan_to_num(-np.mean(means[row]), nan=np.inf)))
    rows = [
        (row, *("" if np.isnan(v) else f"{v:.2f}" for v in [*means[row], float(np.mean(means[row]))]))
        for row in order
    ]
    folds = sorted({int(str(entry["folds"])) for entry in log})
    seeds = {data: len({entry["seed"] for entry in log if entry["data"] == data}) for data in columns}
    counts = ", ".join(f"{data} {count}" for data, count in seeds.items())
    used = {entry["inner_order"] for entry in log}
    orders = " and ".join(words for name, words in ORDERS.items() if name in used)
    note = f"Inner folds of {' or '.join(map(str, folds))} outer ones, {orders}; seeds: {counts}."
    return Table(("candidate", *columns, "mean"), tuple(rows), notes=(note,))
