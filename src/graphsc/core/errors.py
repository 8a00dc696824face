"""The errors a user can meet, each with the exit code its verb ends with.

An error is one sentence: what is wrong, where, and what to do about it.
"""

from __future__ import annotations

MOST = 600  # characters of what is wrong, and of what to do


class GraphscError(Exception):
    """Base of every error that is the caller's to mend; `graphsc` prints it in one line."""

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """`<what> (<where>); <what to do>`, without the parts that are not known."""
        text = _short(self.what)
        if self.where:
            text += f" ({self.where})"
        if self.hint:
            text += f"; {_short(self.hint)}"
        return " ".join(text.split())


def _short(text: str) -> str:
    """A cell of a million characters is not repeated to whoever put it there."""
    return text if len(text) <= MOST else f"{text[: MOST // 2]} ... {text[-MOST // 4 :]}"


class DataError(GraphscError):
    """The input is not a usable collection of graphs."""


class DamagedFileError(GraphscError):
    """A file of ours is truncated, altered or of another format."""


class ConfigError(GraphscError):
    """A setting has an unknown name, a wrong type or a value out of range."""


class UnsafeArchiveError(GraphscError):
    """An archive wants to write outside its folder, or to grow beyond reason."""


class CannotWriteError(GraphscError):
    """The disk is full, or a file may not be written where it should be; what was there before still is."""


class NotFoundError(GraphscError):
    """A named thing (data set, method, file) is not where we looked."""


class MissingExtraError(GraphscError):
    """An optional dependency is not installed."""


class DivergedError(GraphscError):
    """Training met a loss or gradient that is not finite."""

    exit_code = 3
