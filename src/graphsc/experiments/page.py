"""Tables on a page, made anew from stored results between two marks; the prose around them stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.experiments.candidates import Look, looks_markdown, read_looks
from graphsc.experiments.comparison import compare_results
from graphsc.experiments.deviations import deviations_markdown
from graphsc.experiments.gains import gains_markdown
from graphsc.experiments.ideas import ideas_markdown
from graphsc.experiments.label_free import correlations_markdown
from graphsc.experiments.orders import orders_markdown
from graphsc.experiments.plan import TablePlan
from graphsc.experiments.result import Result
from graphsc.experiments.store import ResultStore
from graphsc.experiments.table import inner_markdown, to_markdown

# Tables of their own kind, made of the results of all the others.
OF_ALL: Mapping[str, Callable[[Sequence[Result]], str]] = {
    "deviations": deviations_markdown,
    "orders": orders_markdown,
    "label-free": correlations_markdown,
    "gains": lambda results: gains_markdown(results, "graphsc-plus"),
    "gains-of-training": lambda results: gains_markdown(results, "graphsc-plus", "untrained-plus"),
}
# Made of logs of the search, beside the results.
OF_LOOKS: Mapping[str, tuple[str, Callable[[Sequence[Look]], str]]] = {
    "search": ("log.jsonl", looks_markdown),
    "ideas": ("exploration.jsonl", ideas_markdown),
}
_MARK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(<!-- end -->)", re.DOTALL)


def rebuilt(text: str, make: Callable[[str], str]) -> str:
    """The page with what `make` gives for its name in the place of every marked table."""
    return _MARK.sub(lambda match: f"{match[1]}\n{make(match['name'])}\n{match[4]}", text)


def fill(text: str, plan: Sequence[TablePlan], store: ResultStore) -> str:
    """The page with every marked table rebuilt; a trial without a result leaves its cell empty."""
    tables = {table.name: table for table in plan}

    def made(name: str) -> str:
        if name in OF_ALL:
            return OF_ALL[name](stored_results(plan, store))
        if name in OF_LOOKS:
            log, markdown = OF_LOOKS[name]
            return markdown(read_looks(store.folder / "search" / log))
        if name not in tables:
            raise ConfigError(f"the page has a table {name!r} that the plan has not")
        return table_text(tables[name], store)

    return rebuilt(text, made)


def stored_results(plan: Sequence[TablePlan], store: ResultStore) -> list[Result]:
    """What has run of a plan's methods as they come; rows with settings of their own are left out."""
    blocks = [block for table in plan for block in table.blocks if not (block.settings or block.training)]
    trials = {trial.key(): trial for block in blocks for trial in block.trials()}  # tables share some
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
        text = to_markdown(compare_results(results, labels=labels, methods=names, control=table.control))
    missing = len(rows) - len(found)
    rest = f" {missing} of {len(rows)} trials have not run yet." if missing else ""
    return f"**{table.title}.**{rest}\n\n{text}"


def write_page(path: Path, plan: Sequence[TablePlan], store: ResultStore) -> bool:
    """Rebuild the tables of a page file; True if anything changed."""
    return rewrite(path, lambda text: fill(text, plan, store))


def rewrite(path: Path, change: Callable[[str], str]) -> bool:
    """Change the text of a page file; True if it did change."""
    try:
        before = path.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read the page: {error.strerror}", where=str(path)) from error
    after = change(before)
    if after != before:
        write_atomic(path, after)
    return after != before


# A part of a page between two marks, made anew; the prose around it stays.


def fill_mark(text: str, name: str, body: str, where: str = "the page") -> str:
    """The page with `body` between `<!-- name -->` and the next `<!-- end -->`."""
    mark = re.compile(rf"(<!-- {re.escape(name)} -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    if not mark.search(text):
        raise ConfigError(
            f"the page has no place for {name}", where=where, hint=f"add <!-- {name} --> and <!-- end -->"
        )
    return mark.sub(lambda match: f"{match[1]}\n{body}\n{match[3]}", text)


def put_on_page(page: Path, name: str, body: str) -> bool:
    """Rebuild one part of a page file; True if anything changed."""
    return rewrite(page, lambda text: fill_mark(text, name, body, str(page)))
