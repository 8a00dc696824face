"""A part of a page between two marks, made anew; the prose around it stays."""

from __future__ import annotations

import re
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.experiments.page import rewrite


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
