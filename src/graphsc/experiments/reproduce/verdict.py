"""A claim of the paper, what we found, and a verdict that follows from a written rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "holds partly", "does not hold", "not tested"]


@dataclass(frozen=True)
class Finding:
    """What stored results say of one claim; `figures` are whole sentences with the numbers."""

    verdict: Verdict
    figures: str


@dataclass(frozen=True)
class Claim:
    """One claim: where the paper makes it, what it says, and the rule of our verdict, in words."""

    name: str
    where: str
    says: str
    rule: str


NOT_TESTED = Finding("not tested", "Nothing of it has run yet.")


def by_share(true: int, of: int) -> Verdict:
    """Everywhere, somewhere, nowhere; and nothing where nothing was looked at."""
    if not of:
        return "not tested"
    if true == of:
        return "holds"
    return "holds partly" if 2 * true > of else "does not hold"
