"""Tables on a page, made anew from stored results between two marks; the prose around them stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.experiments.candidates import looks_markdown, read_looks
from graphsc.experiments.comparison import compare_results
from graphsc.experiments.deviations import deviations_markdown
from graphsc.experiments.gains import gains_markdown
from graphsc.experiments.label_free import correlations_markdown
from graphsc.experiments.plan import TablePlan
from graphsc.experiments.result import Result
from graphsc.experiments.store import ResultStore
from graphsc.experiments.table import inner_markdown, to_markdown

# Tables of their own kind, made of the results of all the others.
OF_ALL: Mapping[str, Callable[[Sequence[Result]], str]] = {
    "deviations": deviations_markdown,
    "label-free": correlations_markdown,
    "gains": lambda results: gains_markdown(results, "graphsc-plus"),
    "gains-of-training": lambda results: gains_markdown(results, "graphsc-plus", "untrained-plus"),
}
SEARCH = "search"  # made of the log of candidates, beside the results
_MARK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def fill(text: str, plan: Sequence[TablePlan], store: ResultStore) -> str:
    """The page with every marked table rebuilt; a trial without a result leaves its cell empty."""
    tables = {table.name: table for table in plan}

    def made(match: re.Match[str]) -> str:
        name = match["name"]
        if name in OF_ALL:
            return f"{match[1]}\n{OF_ALL[name](stored_results(plan, store))}\n{match[4]}"
        if name == SEARCH:
            looks = read_looks(store.folder / "search" / "log.jsonl")
            return f"{match[1]}\n{looks_markdown(looks)}\n{match[4]}"
        if name not in tables:
            raise ConfigError(f"the page has a table {name!r} that the plan has not")
        return f"{match[1]}\n{table_text(tables[name], store)}\n{match[4]}"

    return _MARK.sub(made, text)


def stored_results(plan: Sequence[TablePlan], store: ResultStore) -> list[Result]:
    """What has run of a plan; tables share some trials."""
    trials = {trial.key(): trial for table in plan for trial in table.trials()}
    return [kept for trial in trials.values() if (kept := store.get(trial)) is not None]


def table_text(table: TablePlan, store: ResultStore) -> str:
    """One table of the plan as Markdown, with how much of it has run."""
    rows = table.rows()
    found = [(name, kept) for name, trial in rows if (kept := store.get(trial)) is not None]
    if not found:
        return f"*{table.title}: none of {len(rows)} trials has run yet.*\n"
    names = list(dict.fromkeys(name for name, _ in rows))
    results, labels = [result for _, result in found], [name for name, _ in found]
    if table.inner:
        text = inner_markdown(results, labels, names)
    else:
        text = to_markdown(compare_results(results, labels=labels, methods=names))
    missing = len(rows) - len(found)
    rest = f" {missing} of {len(rows)} trials have not run yet." if missing else ""
    return f"**{table.title}.**{rest}\n\n{text}"


def write_page(path: Path, plan: Sequence[TablePlan], store: ResultStore) -> bool:
    """Rebuild the tables of a page file; True if anything changed."""
    try:
        before = path.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read the page: {error.strerror}", where=str(path)) from error
    after = fill(before, plan, store)
    if after != before:
        write_atomic(path, after)
    return after != before
