"""The ways in: one file a kind of source, each giving a collection or one clear error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graphsc.core.registry import Registry
from graphsc.data.collection import GraphCollection


@dataclass(frozen=True)
class Door:
    """A kind of source: whether it takes a given object, and how it reads it.

    `accepts` is cheap and never raises. `read` takes the source and typed keyword options, `name` and
    `features` among them, and ends in `graphsc.data.assemble.assemble`.
    """

    accepts: Callable[[object], bool]
    read: Callable[..., GraphCollection]
    summary: str


DOORS: Registry[Door] = Registry("door")
