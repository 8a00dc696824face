"""Feature schemes: which node features an encoder sees.

A scheme is written as blocks joined by "+": `labels`, `degree` (or `degree:CAP`), `constant`,
`attributes`, all of nodes, and `edges`, the columns of edges. The resolved scheme is stored with a
collection and with every model trained on it, so that a model is never applied to features with another
meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.columns import Column, FeatureTable, columns_from_json, columns_to_json

DEGREE_CAP = 64
# Names of computed columns; readers refuse column names in parentheses.
DEGREE, CONSTANT = "(degree)", "(constant)"
# Value of the code that marks a node whose features are masked in training; no stored node has it.
HIDDEN = "(hidden)"
EDGES = "edges"
BLOCKS = ("labels", "degree", "constant", "attributes", EDGES)


@dataclass(frozen=True)
class FeatureScheme:
    """Feature blocks in order, resolved against the columns of a collection."""

    name: str
    columns: tuple[Column, ...]  # categorical features, one-hot in dense form
    float_names: tuple[str, ...]
    degree_cap: int | None = None
    edge_columns: tuple[Column, ...] = ()  # of edges, for encoders that use them
    edge_float_names: tuple[str, ...] = ()

    @property
    def has_edges(self) -> bool:
        """Whether the scheme has columns of edges."""
        return bool(self.edge_columns or self.edge_float_names)

    @property
    def width(self) -> int:
        """Number of dense features per node: one-hot codes, then floats."""
        return sum(column.cardinality for column in self.columns) + len(self.float_names)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        return tuple(column.cardinality for column in self.columns)

    @property
    def hidden(self) -> int | None:
        """The first column's code for masked features, or None if it has none."""
        values = (self.columns[0].values if self.columns else None) or ()
        return values.index(HIDDEN) if HIDDEN in values else None

    def differences(self, other: FeatureScheme) -> list[str]:
        """Each difference between the two schemes, as a sentence."""
        differences = []
        if self.name != other.name:
            differences.append(f"features {self.name!r} against {other.name!r}")
        if self.cardinalities != other.cardinalities:
            differences.append(f"categories {self.cardinalities} against {other.cardinalities}")
        elif self.columns != other.columns:
            differences.append("categories of the same number but another meaning")
        if self.float_names != other.float_names:
            differences.append(f"attributes {self.float_names} against {other.float_names}")
        if (self.edge_columns, self.edge_float_names) != (other.edge_columns, other.edge_float_names):
            differences.append("other columns of edges")
        return differences

    def to_json(self) -> dict[str, object]:
        stored: dict[str, object] = {
            "name": self.name,
            "columns": columns_to_json(self.columns),
            "float_names": list(self.float_names),
            "degree_cap": self.degree_cap,
        }
        if self.has_edges:  # left out otherwise: it is part of the content hash of collections
            stored["edge_columns"] = columns_to_json(self.edge_columns)
            stored["edge_float_names"] = list(self.edge_float_names)
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> FeatureScheme:
        """Inverse of `to_json`; raises `ValueError` if the content is malformed."""
        cap = stored["degree_cap"]
        names = tuple(cast(list[str], stored["float_names"]))
        of_edges = tuple(cast(list[str], stored.get("edge_float_names", [])))
        if not all(isinstance(name, str) for name in (*names, *of_edges)):
            raise ValueError("attribute names are not text")
        scheme = cls(
            str(stored["name"]),
            columns_from_json(stored["columns"]),
            names,
            cast("int | None", cap),
            columns_from_json(stored.get("edge_columns", [])),
            of_edges,
        )
        degrees = [column.cardinality for column in scheme.columns if column.name == DEGREE]
        if (cap is None and degrees) or (cap is not None and degrees != [cast(int, cap) + 1]):
            raise ValueError(f"a degree cap of {cap!r} does not fit its column")
        return scheme

    def fits(self, nodes: FeatureTable, edges: FeatureTable) -> bool:
        """Whether the scheme's labels and attributes, if any, are those of these nodes and edges."""
        labels = tuple(column for column in self.columns if column.name not in (DEGREE, CONSTANT))
        return (
            labels in ((), nodes.columns)
            and self.float_names in ((), nodes.float_names)
            and (not self.edge_columns or self.edge_columns == edges.columns)
            and (not self.edge_float_names or self.edge_float_names == edges.float_names)
        )


def resolve_scheme(text: str, nodes: FeatureTable, edges: FeatureTable | None = None) -> FeatureScheme:
    """Resolve a scheme such as `labels+degree:10` against the tables of nodes and edges.

    `auto` is `labels` if the nodes have labels, else `attributes` if they have some, else `degree`.

    Raises:
        ConfigError: If the scheme is malformed.
        DataError: If the graphs lack the labels or attributes it asks for.
    """
    if text == "auto":
        text = "labels" if nodes.columns else "attributes" if nodes.float_names else "degree"
    columns: list[Column] = []
    float_names: tuple[str, ...] = ()
    edge_columns: tuple[Column, ...] = ()
    edge_names: tuple[str, ...] = ()
    cap: int | None = None
    names: list[str] = []
    for part in text.split("+"):
        block, _, argument = part.strip().partition(":")
        if block not in BLOCKS:
            raise ConfigError(
                f"unknown feature block {block!r}", hint=f"join any of {', '.join(BLOCKS)} by '+'"
            )
        if argument and block != "degree":
            raise ConfigError(f"feature block {block!r} takes no number")
        if block in names or (block == "degree" and cap is not None):
            raise ConfigError(f"feature block {block!r} appears twice")
        if block == "labels":
            if not nodes.columns:
                raise DataError("these graphs have no node labels", hint="use features 'degree'")
            columns.extend(nodes.columns)
        elif block == "degree":
            cap = _degree_cap(argument)
            columns.append(Column(DEGREE, cap + 1))
        elif block == "constant":
            columns.append(Column(CONSTANT, 1))
        elif block == EDGES:
            if edges is not None:
                edge_columns, edge_names = edges.columns, edges.float_names
            if not (edge_columns or edge_names):
                raise DataError("these graphs have no edge attributes", hint="leave out 'edges'")
        else:
            if not nodes.float_names:
                raise DataError("these graphs have no node attributes", hint="use features 'degree'")
            float_names = nodes.float_names
        names.append(block if block != "degree" or cap == DEGREE_CAP else f"degree:{cap}")
    if names == [EDGES]:
        raise ConfigError("features 'edges' need some of nodes", hint="such as 'labels+edges'")
    return FeatureScheme("+".join(names), tuple(columns), float_names, cap, edge_columns, edge_names)


def _degree_cap(argument: str) -> int:
    if not argument:
        return DEGREE_CAP
    if not argument.isdecimal() or not 1 <= int(argument) <= 100_000:
        raise ConfigError(f"degree cap must be a whole number from 1 to 100000, not {argument!r}")
    return int(argument)


def recode(table: FeatureTable, scheme: FeatureScheme) -> FeatureTable:
    """Translate the label codes of nodes to those of `scheme`, by value.

    Two sources may number the same labels differently ("C", "N" in one file, "C", "N", "O" in another). Nodes
    may have more columns than the scheme, which are then found by name.

    Raises:
        DataError: If a node has a label value that the scheme does not know.
    """
    wanted = [column for column in scheme.columns if column.name not in (DEGREE, CONSTANT)]
    return _recode(table, wanted, "node")


def recode_edges(table: FeatureTable, scheme: FeatureScheme) -> FeatureTable:
    """Translate the label codes of edges, where the scheme has them; see `recode`."""
    return _recode(table, scheme.edge_columns, "edge")


def _recode(table: FeatureTable, wanted: Sequence[Column], what: str) -> FeatureTable:
    if not wanted or tuple(wanted) == table.columns:
        return table
    names = [column.name for column in table.columns]
    if len(wanted) < len(names) and all(column.name in names for column in wanted):
        places = [names.index(column.name) for column in wanted]
        codes, columns = table.codes[:, places], [table.columns[place] for place in places]
        return _recode(
            FeatureTable.of(len(table), codes, columns, table.floats, table.float_names), wanted, what
        )
    if len(wanted) != len(names):
        raise DataError(f"graphs have {len(table.columns)} {what} label columns, {len(wanted)} are needed")
    codes = np.empty(table.codes.shape, np.int64)
    for k, (have, want) in enumerate(zip(table.columns, wanted, strict=True)):
        codes[:, k] = _translate(table.codes[:, k], have, want, what)
    return FeatureTable.of(len(table), codes, wanted, table.floats, table.float_names)


def _translate(
    codes: NDArray[np.unsignedinteger], have: Column, want: Column, what: str
) -> NDArray[np.int64]:
    if have.values is None or want.values is None:
        if have.cardinality > want.cardinality:
            raise DataError(
                f"{what} labels {have.name!r} have {have.cardinality} categories, "
                f"at most {want.cardinality} are known here"
            )
        return codes.astype(np.int64)
    known = {value: code for code, value in enumerate(want.values)}
    lookup = np.array([known.get(value, -1) for value in have.values], dtype=np.int64)
    translated: NDArray[np.int64] = lookup[codes]
    if (translated < 0).any():
        value = have.values[int(codes[int(np.argmax(translated < 0))])]
        raise DataError(
            f"{what} label {value!r} of {have.name!r} was never seen before",
            hint="train on graphs that have it, or use features 'degree'",
        )
    return translated
