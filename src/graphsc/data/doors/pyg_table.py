"""A table as PyG has it, `x` or `edge_attr`: one tensor of numbers a graph, and what they mean.

Whole numbers are categories, one column each, and so are floats that are one-hot throughout; other floats
are attributes. A table that left by `to_tensor` is told by `described` from one that was changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.columns import side_by_side
from graphsc.data.table import Column, Table, encode_integers

if TYPE_CHECKING:
    from torch import Tensor

ONE_HOT = "one_hot"  # name of a column that is one-hot floats to PyG
EXACT_FLOAT = 2**24  # whole numbers up to here are exact in 32 bits


def stack_rows(attribute: str, values: Sequence[object], counts: NDArray[np.int64]) -> Tensor | None:
    """All graphs' rows of one attribute in one table, or an error that names the graph that differs."""
    import torch

    parts: list[Tensor] = []
    first = -1
    missing: int | None = None
    for index, (value, count) in enumerate(zip(values, counts.tolist(), strict=True)):
        if value is None:
            missing = index if count and missing is None else missing
            continue
        if not isinstance(value, torch.Tensor):
            raise DataError(f"{attribute} of graph {index} is a {type(value).__name__}, not a tensor")
        part = value.detach().cpu()
        part = part if part.layout == torch.strided else part.to_dense()
        part = part.unsqueeze(1) if part.ndim == 1 else part
        what = f"{attribute} of graph {index}"
        if part.ndim != 2:
            raise DataError(f"{what} has {part.ndim} dimensions, not 2")
        if len(part) != count:
            rows = "nodes" if attribute == "x" else "edges"
            raise DataError(f"{what} has {len(part)} rows for {count} {rows}")
        if part.is_complex():
            raise DataError(f"{what} is {dtype_name(part)}", hint="give real numbers")
        if count == 0 and parts:
            continue  # has nothing to disagree about
        wide = torch.promote_types(part.dtype, torch.float32) if part.is_floating_point() else torch.long
        if parts and len(parts[0]) == 0:
            parts = []
        if parts:
            if part.shape[1] != parts[0].shape[1]:
                raise DataError(
                    f"{what} is {part.shape[1]} wide, that of graph {first} {parts[0].shape[1]}",
                    hint="all graphs need the same features",
                )
            if part.is_floating_point() != parts[0].is_floating_point():
                raise DataError(
                    f"{what} is {dtype_name(part)}, that of graph {first} {dtype_name(parts[0])}",
                    hint="use one dtype for all graphs",
                )
        else:
            first = index
        parts.append(part.to(wide))
    if parts and missing is not None:
        raise DataError(
            f"graph {missing} has no {attribute}, graph {first} has", hint="give it to all or none"
        )
    return torch.cat(parts) if parts else None


def interpreted(attribute: str, values: Tensor | None, rows: int, one_hot: str) -> Table:
    """What a table of numbers means if nobody says."""
    if values is None or values.shape[1] == 0:
        return Table.empty(rows)
    names = [f"{attribute}{k}" for k in range(values.shape[1])]
    if not values.is_floating_point():
        whole = [encode_integers(column, values[:, k].numpy()) for k, column in enumerate(names)]
        return side_by_side(rows, whole)
    if one_hot == "auto" and _is_one_hot(values):
        return Table.of(rows, values.argmax(1, keepdim=True).numpy(), [Column(ONE_HOT, values.shape[1])])
    with np.errstate(over="ignore"):  # too large for 32 bits becomes infinite, and is refused as such
        return Table.of(rows, floats=values.numpy(), float_names=names)


def described(known: Table, values: Tensor | None, rows: int) -> Table | None:
    """The table that left by `to_pyg`, or None where the numbers were changed to others since."""
    columns, float_names = known.columns, known.float_names
    if rows == 0:
        return known
    if values is None:
        return None if columns or float_names else Table.empty(rows)
    if [column.name for column in columns] == [ONE_HOT] and not float_names:
        fits = (
            values.is_floating_point() and values.shape[1] == columns[0].cardinality and _is_one_hot(values)
        )
        return Table.of(rows, values.argmax(1, keepdim=True).numpy(), columns) if fits else None
    if values.shape[1] != len(columns) + len(float_names) or values.is_floating_point() != bool(float_names):
        return None
    numbers = values.numpy()
    codes = np.zeros((rows, len(columns)), dtype=np.int64)
    for k, column in enumerate(columns):
        meant = _numbers(column)
        order = np.argsort(meant)
        place = np.minimum(np.searchsorted(meant[order], numbers[:, k]), column.cardinality - 1)
        if not np.array_equal(meant[order][place], numbers[:, k]):
            return None
        codes[:, k] = order[place]
    return Table.of(rows, codes, columns, numbers[:, len(columns) :], float_names)


def to_tensor(table: Table) -> Tensor | None:
    """A table as PyG has it: int64, float, or floats of both."""
    import torch

    if not table.columns and not table.float_names:
        return None
    if [column.name for column in table.columns] == [ONE_HOT] and not table.float_names:
        codes = torch.from_numpy(table.codes[:, 0].astype(np.int64))
        return torch.nn.functional.one_hot(codes, table.columns[0].cardinality).float()
    floats = torch.from_numpy(np.array(table.floats))
    if not table.columns:
        return floats
    known = [_numbers(column) for column in table.columns]
    numbers = torch.from_numpy(np.stack([of[table.codes[:, k]] for k, of in enumerate(known)], axis=1))
    if not table.float_names:
        return numbers
    exact = all(np.abs(of).max(initial=0) <= EXACT_FLOAT for of in known)
    return torch.cat([numbers.to(torch.float32 if exact else torch.float64), floats], dim=1)


def _is_one_hot(values: Tensor) -> bool:
    if values.shape[1] < 2 or len(values) == 0:
        return False
    ones = values == 1
    return bool((ones | (values == 0)).all()) and bool((ones.sum(1) == 1).all())


def _numbers(column: Column) -> NDArray[np.int64]:
    """The number each code is to PyG: the whole number it stands for, else the code."""
    try:
        if column.values is not None and all(str(int(value)) == value for value in column.values):
            return np.array([int(value) for value in column.values], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.arange(column.cardinality, dtype=np.int64)


def dtype_name(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")
