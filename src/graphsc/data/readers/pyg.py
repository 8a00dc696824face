"""PyTorch Geometric: a list of `Data`, a data set or a `Batch` in; `to_pyg` gives them back, without loss.

Integer (or bool) `x` and `edge_attr` are categories, one column each; so is float `x` that is one-hot
throughout, because an encoder looks codes up instead of multiplying (`one_hot="keep"` leaves it float).
Other floats are attributes, kept in 32 bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, GraphscError
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import (
    Column,
    FeatureTable,
    columns_from_json,
    columns_to_json,
    encode_integers,
    side_by_side,
)
from graphsc.data.readers import READERS, Reader

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data


# What PyG's `Data` has no name for: ids, the meaning of codes, names of tasks.
#
# It leaves with every graph as the attributes `graphsc_id` and `graphsc_about`, and is read back from there.


ID, ABOUT = "graphsc_id", "graphsc_about"


@dataclass(frozen=True)
class About:
    """What a collection knows that numbers do not tell."""

    tables: dict[str, FeatureTable]  # "x" and "edge_attr", without rows
    features: str
    undirected: bool
    tasks: tuple[str, ...]
    classes: dict[str, tuple[str, ...]]

    def to_json(self) -> str:
        tables = {
            attribute: [columns_to_json(table.columns), table.float_names]
            for attribute, table in self.tables.items()
        }
        return json.dumps({**vars(self), "tables": tables})

    @classmethod
    def of_json(cls, text: str) -> About:
        """Read what `to_json` wrote; any of five errors if it is something else."""
        saved = json.loads(text)
        tables = {}
        for attribute in ("x", "edge_attr"):
            stored, float_names = saved["tables"][attribute]
            known = columns_from_json(stored)
            codes, floats = np.zeros((0, len(known)), np.int64), np.zeros((0, len(float_names)))
            tables[attribute] = FeatureTable.of(0, codes, known, floats, tuple(float_names))
        classes = {task: tuple(names) for task, names in saved["classes"].items()}
        return cls(tables, str(saved["features"]), bool(saved["undirected"]), tuple(saved["tasks"]), classes)


def about_of(graphs: Sequence[Data]) -> About | None:
    """What all graphs say of themselves; they must say the same, for codes mean nothing without it."""
    said = [graph.get(ABOUT) for graph in graphs]
    for index, text in enumerate(said):
        if text != said[0]:
            raise DataError(
                f"{ABOUT} of graph {index} is not that of graph 0: equal numbers may mean other things",
                hint="join by GraphCollection.concatenate, or remove the attribute from all graphs",
            )
    if not said or said[0] is None:
        return None
    try:
        return About.of_json(said[0])
    except (ValueError, TypeError, KeyError, AttributeError, GraphscError) as error:
        raise DataError(f"{ABOUT} of graph 0 is damaged", hint="remove the attribute") from error


def ids_of(graphs: Sequence[Data]) -> Ids | None:
    """The ids that left with the graphs, if all have one of one kind."""
    ids = [graph.get(ID) for graph in graphs]
    # A Batch makes tensors of whole numbers.
    ids = [identity.item() if getattr(identity, "numel", int)() == 1 else identity for identity in ids]
    if all(isinstance(identity, str) for identity in ids):
        return Strings.of(ids)
    if all(type(identity) is int for identity in ids):
        return np.array(ids, dtype=np.int64)
    return None


# A table as PyG has it, `x` or `edge_attr`: one tensor of numbers a graph, and what they mean.
#
# Whole numbers are categories, one column each, and so are floats that are one-hot throughout; other floats
# are attributes. A table that left by `to_tensor` is told by `described` from one that was changed since.


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


def interpreted(attribute: str, values: Tensor | None, rows: int, one_hot: str) -> FeatureTable:
    """What a table of numbers means if nobody says."""
    if values is None or values.shape[1] == 0:
        return FeatureTable.empty(rows)
    names = [f"{attribute}{k}" for k in range(values.shape[1])]
    if not values.is_floating_point():
        whole = [encode_integers(column, values[:, k].numpy()) for k, column in enumerate(names)]
        return side_by_side(rows, whole)
    if one_hot == "auto" and _is_one_hot(values):
        return FeatureTable.of(
            rows, values.argmax(1, keepdim=True).numpy(), [Column(ONE_HOT, values.shape[1])]
        )
    with np.errstate(over="ignore"):  # too large for 32 bits becomes infinite, and is refused as such
        return FeatureTable.of(rows, floats=values.numpy(), float_names=names)


def described(known: FeatureTable, values: Tensor | None, rows: int) -> FeatureTable | None:
    """The table that left by `to_pyg`, or None where the numbers were changed to others since."""
    columns, float_names = known.columns, known.float_names
    if rows == 0:
        return known
    if values is None:
        return None if columns or float_names else FeatureTable.empty(rows)
    if [column.name for column in columns] == [ONE_HOT] and not float_names:
        fits = (
            values.is_floating_point() and values.shape[1] == columns[0].cardinality and _is_one_hot(values)
        )
        return FeatureTable.of(rows, values.argmax(1, keepdim=True).numpy(), columns) if fits else None
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
    return FeatureTable.of(rows, codes, columns, numbers[:, len(columns) :], float_names)


def to_tensor(table: FeatureTable) -> Tensor | None:
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


# The way out to PyTorch Geometric: a collection as a list of `Data`, without loss.


def to_pyg(collection: GraphCollection) -> list[Data]:
    """One `Data` a graph; `read_pyg` gives an equal collection back.

    Codes leave as the whole numbers they stand for, else as codes; with attributes beside them, as
    floats before these. `y` is a class number of shape (1,) where all labels are whole numbers of one
    task, floats of shape (1, tasks) otherwise.
    """
    import torch
    from torch_geometric.data import Data

    collection.verify_hashes()
    about = About(
        tables={"x": collection.nodes, "edge_attr": collection.edges},
        features=collection.features.name,
        undirected=collection.undirected,
        tasks=collection.tasks,
        classes=dict(collection.classes),
    ).to_json()
    x, edge_attr = to_tensor(collection.nodes), to_tensor(collection.edges)
    edge_index = torch.from_numpy(collection.edge_index.astype(np.int64))
    y = None
    if collection.labels is not None:
        y = torch.from_numpy(np.array(collection.labels))
        if y.shape[1] == 1 and bool(((y == y.round()) & (y.abs() <= EXACT_FLOAT)).all()):
            y = y.long().view(-1)
    node_ptr, edge_ptr = collection.node_ptr.tolist(), collection.edge_ptr.tolist()
    graphs = []
    for index, identity in enumerate(collection.ids):
        nodes = slice(node_ptr[index], node_ptr[index + 1])
        edges = slice(edge_ptr[index], edge_ptr[index + 1])
        # Clones: a view would drag the whole collection along into whatever file a graph is saved in.
        graph = Data(edge_index=edge_index[:, edges].clone())
        if x is None:
            graph.num_nodes = nodes.stop - nodes.start
        else:
            graph.x = x[nodes].clone()
        if edge_attr is not None:
            graph.edge_attr = edge_attr[edges].clone()
        if y is not None:
            graph.y = y[index : index + 1].clone()
        graph[ID] = identity if isinstance(identity, str) else int(identity)
        graph[ABOUT] = about
        graphs.append(graph)
    return graphs


def accepts_pyg(source: object) -> bool:
    """Whether this is PyG's, or a list of PyG's; looks at types only."""
    first = source[0] if isinstance(source, (list, tuple)) and source else source
    if type(first).__module__ == "torch.utils.data.dataset":  # a Subset of a data set
        first = vars(first).get("dataset")
    return any(base.__module__.startswith("torch_geometric.data.") for base in type(first).__mro__)


def read_pyg(
    source: object,
    /,
    *,
    name: str = "graphs",
    features: str = "auto",
    one_hot: Literal["auto", "keep"] = "auto",
    allow_empty: bool = False,
) -> GraphCollection:
    """Read `Data` objects; nodes are counted by `x`, else `num_nodes`, `pos`, or the edges' ends."""
    graphs = _listed(source)
    ends = [_edge_index(index, graph) for index, graph in enumerate(graphs)]
    counted = [_count(index, graph, end) for index, (graph, end) in enumerate(zip(graphs, ends, strict=True))]
    node_counts = np.array(counted, dtype=np.int64)
    edge_counts = np.array([end.shape[1] for end in ends], dtype=np.int64)
    empty = np.flatnonzero(node_counts == 0)
    if len(graphs) and len(empty) and not allow_empty:
        raise DataError(
            f"graph {empty[0]} has no nodes",
            hint="give it x or num_nodes, leave it out, or pass allow_empty",
        )
    about = about_of(graphs)
    fits = about is not None
    tables = {}
    for attribute, counts in (("x", node_counts), ("edge_attr", edge_counts)):
        values = stack_rows(attribute, [graph.get(attribute) for graph in graphs], counts)
        rows = int(counts.sum())
        table = None if about is None else described(about.tables[attribute], values, rows)
        fits = fits and table is not None
        tables[attribute] = interpreted(attribute, values, rows, one_hot) if table is None else table
    labels = _labels(graphs)
    named = about is not None and labels is not None and len(about.tasks) == labels.shape[1]
    joined = np.concatenate(ends, axis=1) if ends else np.zeros((2, 0), np.int64)
    collection = build_collection(
        node_counts=node_counts,
        edge_counts=edge_counts,
        source=joined[0],
        destination=joined[1],
        nodes=tables["x"],
        edges=tables["edge_attr"],
        labels=labels,
        tasks=about.tasks if about is not None and named else (),
        classes=about.classes if about is not None and named else None,
        ids=ids_of(graphs),
        name=name,
        features=about.features if about is not None and fits and features == "auto" else features,
        allow_empty=allow_empty,
    )
    if about is not None and not about.undirected:
        # Part of a directed collection stays directed, even where its edges happen to be symmetric.
        collection = replace(collection, undirected=False)
    return collection


def _listed(source: object) -> list[Data]:
    """The graphs of whatever holds them, each a `Data`."""
    from torch_geometric.data import Batch, Data

    graphs: list[Data] = []
    try:
        if isinstance(source, Batch):
            source = source.to_data_list()
        elif isinstance(source, Data):
            source = [source]
        graphs.extend(cast("Iterable[Data]", source))
    except GraphscError:
        raise
    except Exception as error:  # a data set runs its own code, so anything can come out of it
        raise DataError(f"graph {len(graphs)} could not be read: {type(error).__name__}: {error}") from error
    for index, graph in enumerate(graphs):
        if not isinstance(graph, Data) or isinstance(graph, Batch):
            raise DataError(
                f"graph {index} is a {type(graph).__name__}, not a torch_geometric.data.Data",
                hint="pass a list of Data, or one Batch",
            )
    return graphs


def _edge_index(index: int, graph: Data) -> NDArray[np.int64]:
    """2 x edges of one graph; whether they are in range is seen later, for all graphs at once."""
    import torch

    value = graph.get("edge_index")
    if value is None:
        for other in ("adj_t", "adj", "face"):
            if graph.get(other) is not None:
                raise DataError(
                    f"graph {index} has {other} instead of edge_index",
                    hint="give its edges as edge_index",
                )
        return np.zeros((2, 0), np.int64)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        raise DataError(f"edge_index of graph {index} is not a dense tensor")
    if value.numel() == 0:  # of whatever dtype: torch.tensor([[], []]) is float
        return np.zeros((2, 0), np.int64)
    if value.ndim != 2 or value.shape[0] != 2:
        raise DataError(f"edge_index of graph {index} has shape {tuple(value.shape)}, not (2, edges)")
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise DataError(
            f"edge_index of graph {index} is {dtype_name(value)}", hint="give whole numbers (torch.long)"
        )
    array: NDArray[np.int64] = value.detach().cpu().long().numpy()
    return array


def _count(index: int, graph: Data, ends: NDArray[np.int64]) -> int:
    if "num_nodes" in graph and graph["num_nodes"] is not None:
        try:
            count = int(graph["num_nodes"])
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"num_nodes of graph {index} is not a number") from error
        if count < 0:
            raise DataError(f"num_nodes of graph {index} is {count}")
        return count
    for attribute in ("x", "pos"):
        value = graph.get(attribute)
        if getattr(value, "ndim", 0):
            return int(value.shape[0])
    return int(ends.max()) + 1 if ends.size else 0


def _labels(graphs: Sequence[Data]) -> NDArray[np.float64] | None:
    """Labels, graphs x tasks; a graph without y has NaN; None if no graph has y."""
    import torch

    rows: list[NDArray[np.float64] | None] = []
    first = -1
    for index, graph in enumerate(graphs):
        value = graph.get("y")
        if value is None:
            rows.append(None)
            continue
        try:
            row = torch.as_tensor(value).detach().cpu().double().numpy()
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"y of graph {index} is not made of numbers") from error
        if row.ndim > 2 or (row.ndim == 2 and len(row) != 1) or row.size == 0:
            raise DataError(
                f"y of graph {index} has shape {row.shape}", hint="give (1, tasks), one row a graph"
            )
        first = index if first < 0 else first
        rows.append(row.reshape(-1))
        width = len(cast("NDArray[np.float64]", rows[first]))
        if row.size != width:
            raise DataError(f"y of graph {index} has {row.size} values, that of graph {first} {width}")
        if np.isinf(row).any():
            raise DataError(f"y of graph {index} is infinite", hint="use NaN for a label that is missing")
    if first < 0:
        return None
    missing = np.full(width, np.nan)
    return np.stack([missing if row is None else row for row in rows])


READERS.register("pyg")(
    Reader(
        accepts=accepts_pyg,
        read=read_pyg,
        summary="PyTorch Geometric: a list of Data, a data set or a Batch",
    )
)
