"""Feature tables of nodes and edges: categorical columns as integer codes, and float columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import smallest_unsigned


@dataclass(frozen=True)
class Column:
    """A categorical column with codes 0 .. cardinality - 1, and the value of each code where known."""

    name: str
    cardinality: int
    values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.values is not None and len(self.values) != self.cardinality:
            raise DataError(
                f"column {self.name!r} has {self.cardinality} codes but {len(self.values)} values"
            )


def columns_to_json(columns: Sequence[Column]) -> list[list[object]]:
    """Columns in the form stored in file headers."""
    return [[column.name, column.cardinality, column.values] for column in columns]


def columns_from_json(stored: object) -> tuple[Column, ...]:
    """Inverse of `columns_to_json`; raises `ValueError` if the content is malformed."""
    rows = cast("list[tuple[str, int, list[str] | None]]", stored)
    for name, cardinality, values in rows:
        texts = [name, *(() if values is None else values)]
        if (
            type(cardinality) is not int
            or cardinality < 0
            or not all(isinstance(text, str) for text in texts)
        ):
            raise ValueError("a column is not a name, a number of categories and their values")
    return tuple(
        Column(name, cardinality, None if values is None else tuple(values))
        for name, cardinality, values in rows
    )


Merge = Literal["first", "sum", "mean", "max"]
EncodedColumn = tuple[NDArray[np.int64], Column]  # codes, as `encode_column` and `encode_integers` return
FloatColumn = tuple[str, NDArray[np.float64]]  # name and values


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """One row per node (or edge) with K categorical codes and F floats; K and F may be 0."""

    codes: NDArray[np.unsignedinteger]  # rows x K
    columns: tuple[Column, ...]
    floats: NDArray[np.float32]  # rows x F
    float_names: tuple[str, ...]

    @classmethod
    def empty(cls, rows: int) -> FeatureTable:
        """A table with rows but without columns."""
        return cls(np.zeros((rows, 0), np.uint8), (), np.zeros((rows, 0), np.float32), ())

    @classmethod
    def of(
        cls,
        rows: int,
        codes: NDArray[np.integer] | None = None,
        columns: Sequence[Column] = (),
        floats: NDArray[np.floating] | None = None,
        float_names: Sequence[str] = (),
    ) -> FeatureTable:
        """A table stored in the smallest dtypes.

        Args:
            rows: Number of rows; needed when there are neither codes nor floats.
            codes: Shape (rows, K).
            columns: The K categorical columns.
            floats: Shape (rows, F).
            float_names: The F names; `attribute0`, `attribute1`, ... by default.

        Raises:
            DataError: If a code is out of its column's range or the numbers of columns disagree.
        """
        table = cls.empty(rows)
        if codes is not None:
            _check_codes(codes, columns)
            largest = max((column.cardinality - 1 for column in columns), default=0)
            narrow = np.ascontiguousarray(codes, dtype=smallest_unsigned(largest))
            table = replace(table, codes=narrow, columns=tuple(columns))
        if floats is not None:
            names = tuple(float_names) or tuple(f"attribute{i}" for i in range(floats.shape[1]))
            if len(names) != floats.shape[1]:
                raise DataError(f"{floats.shape[1]} attributes but {len(names)} names for them")
            table = replace(table, floats=np.ascontiguousarray(floats, np.float32), float_names=names)
        return table

    @classmethod
    def from_columns(
        cls, rows: int, categories: Sequence[EncodedColumn], attributes: Sequence[FloatColumn] = ()
    ) -> FeatureTable:
        """A table from separate columns, each with one entry per row."""
        return cls.of(
            rows,
            np.stack([codes for codes, _ in categories], axis=1) if categories else None,
            [column for _, column in categories],
            np.stack([values for _, values in attributes], axis=1) if attributes else None,
            [name for name, _ in attributes],
        )

    def __len__(self) -> int:
        return len(self.codes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureTable):
            return NotImplemented
        return (
            self.same_columns(other)
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.floats, other.floats, equal_nan=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def same_columns(self, other: FeatureTable) -> bool:
        """Whether both tables have the same columns, so that equal rows mean the same."""
        return self.columns == other.columns and self.float_names == other.float_names

    def take(self, rows: NDArray[np.integer] | slice) -> FeatureTable:
        """The selected rows; a slice shares memory."""
        return replace(self, codes=self.codes[rows], floats=self.floats[rows])

    def merge(self, group: NDArray[np.int64], how: Merge) -> FeatureTable:
        """One row per group: floats are merged as asked, codes are those of the group's first row.

        Args:
            group: The group of each row, 0 .. groups - 1.
            how: What the floats of a group become: those of its first row, their sum, mean or maximum.
        """
        groups = int(group.max(initial=-1)) + 1
        first = np.full(groups, len(group), np.int64)
        np.minimum.at(first, group, np.arange(len(group)))
        if how == "first" or not self.float_names:
            return self.take(first)
        if how == "max":
            floats = np.full((groups, len(self.float_names)), -np.inf)
            np.maximum.at(floats, group, self.floats)
        else:
            floats = np.zeros((groups, len(self.float_names)))
            np.add.at(floats, group, self.floats)
            if how == "mean":
                floats /= np.bincount(group, minlength=groups)[:, None]
        with np.errstate(over="ignore"):  # a sum that is too large is refused as not finite
            return replace(self, codes=self.codes[first], floats=floats.astype(np.float32))

    @staticmethod
    def concatenate(tables: Sequence[FeatureTable]) -> FeatureTable:
        """The rows of all tables, in order; their columns must agree."""
        first = tables[0]
        for position, table in enumerate(tables):
            if not table.same_columns(first):
                raise DataError(
                    f"part {position} has other columns than part 0",
                    hint="concatenate only collections of one kind",
                )
        return replace(
            first,
            codes=np.concatenate([table.codes for table in tables]),
            floats=np.concatenate([table.floats for table in tables]),
        )


def _check_codes(codes: NDArray[np.integer], columns: Sequence[Column]) -> None:
    """Refuse codes out of range: a narrower dtype would turn them into other codes."""
    if codes.shape[1] != len(columns):
        raise DataError(f"{codes.shape[1]} columns of codes but {len(columns)} columns are described")
    for k, column in enumerate(columns):
        if len(codes) and not 0 <= codes[:, k].min() <= codes[:, k].max() < column.cardinality:
            raise DataError(f"column {column.name!r} has a code that is not in 0 .. {column.cardinality - 1}")


def encode_column(name: str, values: NDArray[np.generic]) -> EncodedColumn:
    """Encode sortable values as codes, numbered in sorted order."""
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), Column(name, len(distinct), tuple(map(str, distinct.tolist())))


# Integer labels that span more than this are encoded without gaps.
GAP_LIMIT = 1024


def encode_integers(name: str, values: NDArray[np.integer]) -> EncodedColumn:
    """Encode integer labels as codes for the range from minimum to maximum, including unused labels.

    Keeping unused labels gives the one-hot widths of the literature (89 for DD, of which 82 are in use).
    """
    if len(values) == 0:
        return np.zeros(0, np.int64), Column(name, 1, ("0",))
    low, high = int(values.min()), int(values.max())
    if high - low >= GAP_LIMIT:
        return encode_column(name, values)
    ids = tuple(str(value) for value in range(low, high + 1))
    return values.astype(np.int64) - low, Column(name, len(ids), ids)
