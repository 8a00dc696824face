"""PyTorch Geometric graphs: `read_pyg` reads a list of `Data`, a data set or a `Batch`; `to_pyg` exports.

Integer (or bool) `x` and `edge_attr` are categories, one column each. So is float `x` that is one-hot
throughout, because encoders look codes up instead of multiplying (`one_hot="keep"` leaves it float). Other
floats are attributes, stored in 32 bits. `edge_weight` and `pos` are kept as such. No other key is carried;
the notes of the collection and a warning name those that are lost.

`to_pyg` loses nothing: what `Data` has no attribute for (ids, meaning of codes, names of tasks and classes)
is stored with every graph as `graphsc_id` and `graphsc_about`, which `read_pyg` reads back.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, GraphscError, GraphscWarning
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import EXACT_FLOAT, GraphCollection, Ids
from graphsc.data.columns import (
    Column,
    FeatureTable,
    columns_from_json,
    columns_to_json,
    encode_integers,
)
from graphsc.data.readers import READERS, Reader

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

ID, METADATA = "graphsc_id", "graphsc_about"
CARRIED = ("x", "edge_index", "edge_attr", "edge_weight", "pos", "y")
ONE_HOT = "one_hot"  # name of a column that is one-hot floats in PyG


def accepts_pyg(source: object) -> bool:
    """Whether this is a PyG object or a list of them, by its type, without importing PyG."""
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
    """Read PyG graphs.

    Args:
        source: A list of `Data`, a data set, a `Batch` or one `Data`. The number of nodes is `num_nodes` if
            set, else the length of `x` or `pos`, else the largest node in `edge_index` plus one.
        name: Name of the collection.
        features: Feature scheme.
        one_hot: `auto` reads one-hot floats as one categorical column, `keep` as floats.
        allow_empty: Accept graphs without nodes.
    """
    graphs = _data_list(source)
    edge_indices = [_edge_index(index, graph) for index, graph in enumerate(graphs)]
    node_counts = np.array(
        [_num_nodes(index, graph, edge_indices[index]) for index, graph in enumerate(graphs)], dtype=np.int64
    )
    edge_counts = np.array([edge_index.shape[1] for edge_index in edge_indices], dtype=np.int64)
    empty = np.flatnonzero(node_counts == 0)
    if len(graphs) and len(empty) and not allow_empty:
        raise DataError(
            f"graph {empty[0]} has no nodes",
            hint="give it x or num_nodes, leave it out, or pass allow_empty",
        )
    metadata = _read_metadata(graphs)
    fits = metadata is not None
    tables = {}
    for attribute, counts in (("x", node_counts), ("edge_attr", edge_counts)):
        values = _stack_attribute(attribute, [graph.get(attribute) for graph in graphs], counts)
        rows = int(counts.sum())
        table = None if metadata is None else _decode_table(metadata.tables[attribute], values, rows)
        fits = fits and table is not None
        tables[attribute] = _infer_table(attribute, values, rows, one_hot) if table is None else table
    pos, edge_weight = _positions(graphs, node_counts), _edge_weight(graphs, edge_counts)
    labels = _labels(graphs)
    named = metadata is not None and labels is not None and len(metadata.tasks) == labels.shape[1]
    joined = np.concatenate(edge_indices, axis=1) if edge_indices else np.zeros((2, 0), np.int64)
    collection = build_collection(
        node_counts=node_counts,
        edge_counts=edge_counts,
        source=joined[0],
        destination=joined[1],
        nodes=tables["x"],
        edges=tables["edge_attr"],
        labels=labels,
        tasks=metadata.tasks if metadata is not None and named else (),
        classes=metadata.classes if metadata is not None and named else None,
        pos=pos,
        edge_weight=edge_weight,
        ids=_read_ids(graphs),
        name=name,
        features=metadata.features if metadata is not None and fits and features == "auto" else features,
        allow_empty=allow_empty,
        notes=_note_lost_keys(graphs, pos is not None),
    )
    if metadata is not None and not metadata.undirected:
        # Part of a directed collection stays directed, even if its edges happen to be symmetric.
        collection = replace(collection, undirected=False)
    return collection


def _note_lost_keys(graphs: Sequence[Data], has_pos: bool) -> list[str]:
    """A note and a warning that name the keys that a collection has no place for."""
    known = {*CARRIED, "num_nodes", "batch", "ptr", ID, METADATA} - (set() if has_pos else {"pos"})
    lost = sorted({key for graph in graphs for key in graph.keys()} - known)  # noqa: SIM118
    if not lost:
        return []
    note = f"the PyG keys {', '.join(lost)} are not carried, only {', '.join(CARRIED)}"
    if "pos" in lost:
        note += " (pos if all graphs have it)"
    warnings.warn(note, GraphscWarning, stacklevel=4)
    return [note]


def to_pyg(collection: GraphCollection) -> list[Data]:
    """Export every graph as a `Data`; `read_pyg` restores an equal collection.

    Codes become the integers they stand for, if they do, else stay codes; if there are attributes too, `x`
    holds both as floats, codes first. `y` is an integer class of shape (1,) if all labels are integers of
    one task, else floats of shape (1, tasks).
    """
    import torch
    from torch_geometric.data import Data

    collection.verify_hashes()
    metadata = _Metadata(
        tables={"x": collection.nodes, "edge_attr": collection.edges},
        features=collection.features.name,
        undirected=collection.undirected,
        tasks=collection.tasks,
        classes=dict(collection.classes),
    ).to_json()
    x, edge_attr = _to_tensor(collection.nodes), _to_tensor(collection.edges)
    edge_index = torch.from_numpy(collection.edge_index.astype(np.int64))
    pos, edge_weight = (
        None if values is None else torch.from_numpy(np.array(values))
        for values in (collection.pos, collection.edge_weight)
    )
    y = None
    if collection.labels is not None:
        y = torch.from_numpy(np.array(collection.labels))
        if collection.has_integer_labels:
            y = y.long().view(-1)
    node_ptr, edge_ptr = collection.node_ptr.tolist(), collection.edge_ptr.tolist()
    graphs = []
    for index, graph_id in enumerate(collection.ids):
        nodes = slice(node_ptr[index], node_ptr[index + 1])
        edges = slice(edge_ptr[index], edge_ptr[index + 1])
        # Clones, because saving a view would save the whole collection.
        graph = Data(edge_index=edge_index[:, edges].clone())
        if x is None:
            graph.num_nodes = nodes.stop - nodes.start
        else:
            graph.x = x[nodes].clone()
        if edge_attr is not None:
            graph.edge_attr = edge_attr[edges].clone()
        if pos is not None:
            graph.pos = pos[nodes].clone()
        if edge_weight is not None:
            graph.edge_weight = edge_weight[edges].clone()
        if y is not None:
            graph.y = y[index : index + 1].clone()
        graph[ID] = graph_id if isinstance(graph_id, str) else int(graph_id)
        graph[METADATA] = metadata
        graphs.append(graph)
    return graphs


# Parsing of `Data`


def _data_list(source: object) -> list[Data]:
    """The graphs of any supported container, each a `Data`."""
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
    except Exception as error:  # a data set runs its own code, which may raise anything
        raise DataError(f"graph {len(graphs)} could not be read: {type(error).__name__}: {error}") from error
    for index, graph in enumerate(graphs):
        if not isinstance(graph, Data) or isinstance(graph, Batch):
            raise DataError(
                f"graph {index} is a {type(graph).__name__}, not a torch_geometric.data.Data",
                hint="pass a list of Data, or one Batch",
            )
    return graphs


def _edge_index(index: int, graph: Data) -> NDArray[np.int64]:
    """2 x edges of one graph; `build_collection` checks their range."""
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
    if value.numel() == 0:  # of any dtype: torch.tensor([[], []]) is float
        return np.zeros((2, 0), np.int64)
    if value.ndim != 2 or value.shape[0] != 2:
        raise DataError(f"edge_index of graph {index} has shape {tuple(value.shape)}, not (2, edges)")
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise DataError(
            f"edge_index of graph {index} is {_dtype_name(value)}", hint="give whole numbers (torch.long)"
        )
    array: NDArray[np.int64] = value.detach().cpu().long().numpy()
    return array


def _num_nodes(index: int, graph: Data, edge_index: NDArray[np.int64]) -> int:
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
    return int(edge_index.max()) + 1 if edge_index.size else 0


def _labels(graphs: Sequence[Data]) -> NDArray[np.float64] | None:
    """Labels of shape (graphs, tasks), NaN for graphs without y; None if no graph has y."""
    import torch

    rows: list[NDArray[np.float64] | None] = []
    first = -1
    for index, graph in enumerate(graphs):
        value = graph.get("y")
        if value is None:
            rows.append(None)
            continue
        try:
            exact = torch.as_tensor(value).detach().cpu()
            row = exact.double().numpy()
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"y of graph {index} is not made of numbers") from error
        if row.ndim > 2 or (row.ndim == 2 and len(row) != 1) or row.size == 0:
            raise DataError(
                f"y of graph {index} has shape {row.shape}", hint="give (1, tasks), one row per graph"
            )
        first = index if first < 0 else first
        rows.append(row.reshape(-1))
        width = len(cast("NDArray[np.float64]", rows[first]))
        if row.size != width:
            raise DataError(f"y of graph {index} has {row.size} values, that of graph {first} {width}")
        if np.isinf(row).any():
            raise DataError(f"y of graph {index} is infinite", hint="use NaN for a label that is missing")
        # Compared as Python numbers: as tensors, both would be rounded.
        if np.abs(row).max() >= 2**53 and not exact.is_floating_point() and row.tolist() != exact.tolist():
            raise DataError(
                f"y of graph {index} is a whole number that no float equals", hint="number classes from 0"
            )
    if first < 0:
        return None
    missing = np.full(width, np.nan)
    return np.stack([missing if row is None else row for row in rows])


# Tables of features as tensors


def _stack_attribute(attribute: str, values: Sequence[object], counts: NDArray[np.int64]) -> Tensor | None:
    """Rows of an attribute of all graphs in one tensor; an error names the graph that differs."""
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
            rows = "nodes" if attribute in ("x", "pos") else "edges"
            raise DataError(f"{what} has {len(part)} rows for {count} {rows}")
        if part.is_complex():
            raise DataError(f"{what} is {_dtype_name(part)}", hint="give real numbers")
        if count == 0 and parts:
            continue  # without rows, its width and dtype do not matter
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
                    f"{what} is {_dtype_name(part)}, that of graph {first} {_dtype_name(parts[0])}",
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


def _positions(graphs: Sequence[Data], counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """`pos` of all graphs; None if one of them has none."""
    values = [graph.get("pos") for graph in graphs]
    if any(value is None and count for value, count in zip(values, counts, strict=True)):
        return None
    stacked = _stack_attribute("pos", values, counts)
    return None if stacked is None else stacked.double().numpy()


def _edge_weight(graphs: Sequence[Data], counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """`edge_weight` of all graphs, 1 where a graph has none; None if no graph has one."""
    import torch

    values = [graph.get("edge_weight") for graph in graphs]
    if all(value is None for value in values):
        return None
    ones = (torch.ones(count, dtype=torch.float64) for count in counts.tolist())
    whole = [one if value is None else value for value, one in zip(values, ones, strict=True)]
    floats = [value.double() if isinstance(value, torch.Tensor) else value for value in whole]
    stacked = _stack_attribute("edge_weight", floats, counts)
    if stacked is not None and stacked.shape[1] != 1:
        raise DataError(f"edge_weight has {stacked.shape[1]} numbers per edge", hint="use edge_attr for them")
    return None if stacked is None else stacked[:, 0].numpy()


def _infer_table(attribute: str, values: Tensor | None, rows: int, one_hot: str) -> FeatureTable:
    """The feature table of a tensor without metadata."""
    if values is None or values.shape[1] == 0:
        return FeatureTable.empty(rows)
    names = [f"{attribute}{k}" for k in range(values.shape[1])]
    if not values.is_floating_point():
        categories = [encode_integers(column, values[:, k].numpy()) for k, column in enumerate(names)]
        return FeatureTable.from_columns(rows, categories)
    if one_hot == "auto" and _is_one_hot(values):
        return FeatureTable.of(
            rows, values.argmax(1, keepdim=True).numpy(), [Column(ONE_HOT, values.shape[1])]
        )
    with np.errstate(over="ignore"):  # a value too large for float32 becomes infinite, which is refused
        return FeatureTable.of(rows, floats=values.numpy(), float_names=names)


def _decode_table(schema: FeatureTable, values: Tensor | None, rows: int) -> FeatureTable | None:
    """The table that `to_pyg` exported, or None if the tensor was changed since and no longer fits."""
    columns, float_names = schema.columns, schema.float_names
    if rows == 0:
        return schema
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
        integers = integers_of(column)
        order = np.argsort(integers)
        place = np.minimum(np.searchsorted(integers[order], numbers[:, k]), column.cardinality - 1)
        if not np.array_equal(integers[order][place], numbers[:, k]):
            return None
        codes[:, k] = order[place]
    return FeatureTable.of(rows, codes, columns, numbers[:, len(columns) :], float_names)


def _to_tensor(table: FeatureTable) -> Tensor | None:
    """A table as `x` or `edge_attr`: int64 for codes, floats for attributes, floats for both."""
    import torch

    if not table.columns and not table.float_names:
        return None
    if [column.name for column in table.columns] == [ONE_HOT] and not table.float_names:
        codes = torch.from_numpy(table.codes[:, 0].astype(np.int64))
        return torch.nn.functional.one_hot(codes, table.columns[0].cardinality).float()
    floats = torch.from_numpy(np.array(table.floats))
    if not table.columns:
        return floats
    integers = [integers_of(column) for column in table.columns]
    numbers = torch.from_numpy(np.stack([of[table.codes[:, k]] for k, of in enumerate(integers)], axis=1))
    if not table.float_names:
        return numbers
    exact = all(np.abs(of).max(initial=0) <= EXACT_FLOAT for of in integers)
    return torch.cat([numbers.to(torch.float32 if exact else torch.float64), floats], dim=1)


def _is_one_hot(values: Tensor) -> bool:
    if values.shape[1] < 2 or len(values) == 0:
        return False
    ones = values == 1
    return bool((ones | (values == 0)).all()) and bool((ones.sum(1) == 1).all())


def integers_of(column: Column) -> NDArray[np.int64]:
    """The integer that each code is exported as: the one it stands for, else the code."""
    try:
        if column.values is not None and all(str(int(value)) == value for value in column.values):
            return np.array([int(value) for value in column.values], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.arange(column.cardinality, dtype=np.int64)


def _dtype_name(value: Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


# Metadata that `Data` has no attributes for


@dataclass(frozen=True)
class _Metadata:
    """What `graphsc_about` stores: the part of a collection that `Data` has no attributes for."""

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
    def from_json(cls, text: str) -> _Metadata:
        """Inverse of `to_json`; malformed content raises one of several built-in errors."""
        saved = json.loads(text)
        tables = {}
        for attribute in ("x", "edge_attr"):
            stored, float_names = saved["tables"][attribute]
            columns = columns_from_json(stored)
            codes, floats = np.zeros((0, len(columns)), np.int64), np.zeros((0, len(float_names)))
            tables[attribute] = FeatureTable.of(0, codes, columns, floats, tuple(float_names))
        classes = {task: tuple(names) for task, names in saved["classes"].items()}
        return cls(tables, str(saved["features"]), bool(saved["undirected"]), tuple(saved["tasks"]), classes)


def _read_metadata(graphs: Sequence[Data]) -> _Metadata | None:
    """The metadata of all graphs, which must be equal because it defines the meaning of the codes."""
    texts = [graph.get(METADATA) for graph in graphs]
    for index, text in enumerate(texts):
        if text != texts[0]:
            raise DataError(
                f"{METADATA} of graph {index} is not that of graph 0: equal numbers may mean other things",
                hint="join by GraphCollection.concatenate, or remove the attribute from all graphs",
            )
    if not texts or texts[0] is None:
        return None
    try:
        return _Metadata.from_json(texts[0])
    except (ValueError, TypeError, KeyError, AttributeError, GraphscError) as error:
        raise DataError(f"{METADATA} of graph 0 is damaged", hint="remove the attribute") from error


def _read_ids(graphs: Sequence[Data]) -> Ids | None:
    """The ids stored with the graphs, if all have one of the same type."""
    ids = [graph.get(ID) for graph in graphs]
    # A Batch turns integers into tensors.
    ids = [value.item() if getattr(value, "numel", int)() == 1 else value for value in ids]
    if all(isinstance(value, str) for value in ids):
        return Strings.of(ids)
    if all(type(value) is int for value in ids):
        return np.array(ids, dtype=np.int64)
    return None


READERS.register("pyg")(
    Reader(
        accepts=accepts_pyg,
        read=read_pyg,
        summary="PyTorch Geometric: a list of Data, a data set or a Batch",
    )
)
