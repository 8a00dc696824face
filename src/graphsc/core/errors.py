"""The errors a user can cause, each with the exit code of the command line.

An error message is one sentence: what is wrong, where, and what to do about it.
"""

from __future__ import annotations

_MAX_LENGTH = 600  # characters of `what` and of `hint` that are printed


class GraphscError(Exception):
    """Base of every error that the caller can fix; `graphsc` prints it in one line.

    Args:
        what: what is wrong.
        where: the file, line or graph concerned.
        hint: what to do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """`<what> (<where>); <hint>`, on one line, without the parts that are missing."""
        text = _shorten(self.what)
        if self.where:
            text += f" ({self.where})"
        if self.hint:
            text += f"; {_shorten(self.hint)}"
        return " ".join(text.split())


def _shorten(text: str) -> str:
    """Cut the middle out of a long text, e.g. a quoted table cell of a million characters."""
    if len(text) <= _MAX_LENGTH:
        return text
    return f"{text[: _MAX_LENGTH // 2]} ... {text[-_MAX_LENGTH // 4 :]}"


class GraphscWarning(UserWarning):
    """Something that the user should know and that stops nothing; `graphsc` prints it in one line."""


class DataError(GraphscError):
    """The input is not a usable collection of graphs."""


class DamagedFileError(GraphscError):
    """A file written by this package is truncated, altered or of another format."""


class ConfigError(GraphscError):
    """A setting has an unknown name, a wrong type or a value out of range."""


class UnsafeArchiveError(GraphscError):
    """An archive would write outside its folder, or unpack to an unreasonable size."""


class CannotWriteError(GraphscError):
    """The disk is full or the path is not writable; an older file at that path is unchanged."""


class NotFoundError(GraphscError):
    """A data set, method or file does not exist."""


class MissingExtraError(GraphscError):
    """An optional dependency is not installed."""


class DivergedError(GraphscError):
    """A loss or gradient is not finite during training."""

    exit_code = 3
