"""The page of claims, rebuilt from stored results between two marks; the prose around them stays."""

from __future__ import annotations

import re
from pathlib import Path

from graphsc.core.errors import ConfigError
from graphsc.core.files import write_atomic
from graphsc.experiments.reproduce.claims import claims, counts

_MARK = re.compile(r"(<!-- claims -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_SEVERAL = {"holds": "hold", "holds partly": "hold partly", "does not hold": "do not hold"}


def claims_markdown(results: Path) -> str:
    """Every claim with what we found, its verdict and the rule of the verdict."""
    found = claims(results)
    summary = ", ".join(
        f"{count} {name if count == 1 else _SEVERAL.get(name, name)}"
        for name, count in counts(found).items()
        if count
    )
    lines = [f"Of {len(found)} claims: {summary}.", "", "| claim | where | verdict |", "| --- | --- | --- |"]
    lines += [f"| {claim.says} | {claim.where} | **{finding.verdict}** |" for claim, finding in found]
    for claim, finding in found:
        lines += [
            "", f"### {claim.name}", "", f"{claim.says} ({claim.where})", "",
            f"**{finding.verdict.capitalize()}.** {finding.figures}", "", f"*Rule.* {claim.rule}",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def fill_claims(text: str, results: Path, where: str = "the page") -> str:
    """The page with what is between its marks made anew."""
    if not _MARK.search(text):
        raise ConfigError(
            "the page has no place for claims", where=where, hint="add <!-- claims --> and <!-- end -->"
        )
    body = claims_markdown(results)
    return _MARK.sub(lambda match: f"{match[1]}\n{body}\n{match[3]}", text)


def write_claims(path: Path, results: Path) -> bool:
    """Rebuild the claims of a page file; True if anything changed."""
    try:
        before = path.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read the page: {error.strerror}", where=str(path)) from error
    after = fill_claims(before, results, str(path))
    if after != before:
        write_atomic(path, after)
    return after != before
