"""Cells of tables that we write for others to open."""

from __future__ import annotations

from numbers import Number


def safe_cell(value: object) -> str:
    """A text cell that no spreadsheet takes for a formula."""
    text = str(value)
    is_number = isinstance(value, Number)
    return f"'{text}" if not is_number and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
