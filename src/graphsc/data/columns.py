"""Columns, read one by one, side by side in a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphsc.data.table import Column, Table

Category = tuple[NDArray[np.int64], Column]  # as `encode_column` and `encode_integers` give it
Attribute = tuple[str, NDArray[np.float64]]


def side_by_side(rows: int, categories: Sequence[Category], attributes: Sequence[Attribute] = ()) -> Table:
    """A table of these columns; `rows` counts where there are none."""
    return Table.of(
        rows,
        np.stack([codes for codes, _ in categories], axis=1) if categories else None,
        [column for _, column in categories],
        np.stack([numbers for _, numbers in attributes], axis=1) if attributes else None,
        [name for name, _ in attributes],
    )
