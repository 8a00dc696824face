"""The version of every file format we write, and the refusal of files from the future."""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphsc.core.errors import DamagedFileError

# Raise a number only when older readers would misread the new file.
KINDS = (
    "collection",
    "checkpoint",
    "model",
    "embeddings",
    "run",
    "environments",
    "result",
    "card",
    "statistics",
    "predictor",
    "predictions",
    "transfer-result",
)
VERSIONS = dict.fromkeys(KINDS, 1)


def stamp(kind: str) -> dict[str, str]:
    """The two header fields that every file of ours begins with."""
    return {"format": f"graphsc-{kind}", "format_version": str(VERSIONS[kind])}


def check_stamp(kind: str, header: Mapping[str, str], where: str) -> None:
    """Refuse a file of another kind, or one written by a newer version of this package."""
    found = header.get("format")
    if found != f"graphsc-{kind}":
        other = str(found).removeprefix("graphsc-")
        told = f" but a {other} file" if other in KINDS else ""
        raise DamagedFileError(f"not a GraphSC {kind} file{told}", where=where)
    version = header.get("format_version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise DamagedFileError(f"{kind} file has no format version", where=where)
    if int(version) > VERSIONS[kind]:
        raise DamagedFileError(
            f"{kind} file has format version {int(version)}, this package reads up to {VERSIONS[kind]}",
            where=where,
            hint="upgrade graphsc",
        )
