"""What is known of every claim of the paper, in words."""

from __future__ import annotations

from pathlib import Path

from graphsc.experiments.reproduce.claims import claims, counts

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
