"""Tables of a plan by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from graphsc.core.errors import ConfigError
from graphsc.core.registry import nearest


class Named(Protocol):
    """A table of any kind of plan."""

    @property
    def name(self) -> str: ...


Table = TypeVar("Table", bound=Named)


def chosen(tables: Sequence[Table], names: str | None, plan: Path) -> list[Table]:
    """Those that are asked for, with commas; all of them for None. A name the plan has not is answered."""
    if names is None:
        return list(tables)
    found = {table.name: table for table in tables}
    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in found:
            raise ConfigError(f"the plan has no table {name!r}", where=str(plan), hint=nearest(name, found))
    return [found[name] for name in asked]
