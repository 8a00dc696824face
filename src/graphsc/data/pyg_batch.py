"""PyG batches as `GraphBatch` and back, in a few passes over their tensors and none over their graphs.

`read_pyg` infers what numbers mean from all graphs at once. A loader sees one batch at a time, so here the
feature scheme is given: integer features then have the same width in every batch.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.core.compiled import use_compiled
from graphsc.core.errors import DataError
from graphsc.data.arrays import pointer
from graphsc.data.collection import EXACT_FLOAT
from graphsc.data.columns import Column
from graphsc.data.features import CONSTANT, DEGREE, FeatureScheme
from graphsc.data.readers.pyg import ONE_HOT, integers_of

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

    from graphsc.data.batch import GraphBatch


def is_pyg(value: object) -> bool:
    """Whether this is a PyG `Data`, or a `Batch` of such, without importing PyG."""
    return any(
        base.__module__ == "torch_geometric.data.data" and base.__name__ == "Data"
        for base in type(value).__mro__
    )


def batch_from_pyg(data: Data | Batch, features: FeatureScheme) -> GraphBatch:
    """A PyG batch under a feature scheme.

    Args:
        data: G graphs, or one.
        features: The scheme of the graphs that an encoder was made for, as `open_collection(graphs).features`
            gives it. Integer `x` has one number per label column, or is one-hot as floats.

    Raises:
        DataError: `x` or `edge_attr` has another width or type, or a value that the scheme does not know.
    """
    nodes = int(data.num_nodes)
    rowptr, source, order, undirected = sorted_edges(data.get("edge_index"), nodes)
    device = source.device
    labels = [column for column in features.columns if column.name not in (DEGREE, CONSTANT)]
    codes, floats = decode("x", data.get("x"), labels, features.float_names, nodes, device)
    if len(labels) < len(features.columns):
        codes = _with_computed(codes, features, rowptr, source)
    edge_codes, edge_floats = _edge_attributes(data.get("edge_attr"), features, len(source), device)
    edge_weight, y, pos = data.get("edge_weight"), data.get("y"), data.get("pos")
    ptr = pointer_of(data)
    from graphsc.data.batch import GraphBatch

    return GraphBatch(
        codes=codes,
        floats=floats,
        rowptr=rowptr,
        source=source,
        ptr=ptr,
        features=features,
        undirected=undirected,
        edge_codes=None if edge_codes is None else edge_codes.index_select(0, order),
        edge_floats=None if edge_floats is None else edge_floats.index_select(0, order),
        edge_weight=None if edge_weight is None else edge_weight.reshape(-1).float().index_select(0, order),
        pos=None if pos is None else pos.float(),
        y=None if y is None else y.reshape(len(ptr) - 1, -1),
        edge_columns=features.edge_columns,
    )


def sorted_edges(edge_index: Tensor | None, nodes: int) -> _Edges:
    """Edges in the order of a `GraphBatch`.

    Args:
        edge_index: Of a PyG batch; None for no edges.
        nodes: Their number.

    Returns:
        Row pointer by destination (N + 1, int32), sources (E, int32), the old number of each edge (E, int64),
        and whether every edge has its reverse.

    Raises:
        DataError: An edge names a node that does not exist.
    """
    if edge_index is None:
        edge_index = torch.zeros(2, 0, dtype=torch.int64)
    for other, version, count, edges in list(_RECENT):
        if other() is edge_index and version == edge_index._version and count == nodes:
            return edges
    edges = _sort(edge_index.long(), nodes)
    if has_version(edge_index):
        _RECENT.append((weakref.ref(edge_index), edge_index._version, nodes, edges))
    return edges


def has_version(tensor: Tensor) -> bool:
    """Whether results may be kept for as long as this tensor stays the same: not in inference mode.

    Tensors that are made there do not say when they change, and cannot be used in training later.
    """
    return not (tensor.is_inference() or torch.is_inference_mode_enabled())


# Two views of a batch, and an encoder of it, sort its edges once.
_Edges = tuple[Tensor, Tensor, Tensor, bool]
_RECENT: deque[tuple[weakref.ref[Tensor], int, int, _Edges]] = deque(maxlen=4)


def _sort(edge_index: Tensor, nodes: int) -> _Edges:
    if edge_index.is_cpu and use_compiled():
        from graphsc.data.compiled import csr_of_edges

        ends = np.ascontiguousarray(edge_index.numpy())
        rows, sources, numbers, undirected = csr_of_edges(ends[0], ends[1], nodes)
        if not len(rows):
            raise _out_of_range(nodes)
        return (
            torch.from_numpy(rows), torch.from_numpy(sources), torch.from_numpy(numbers), bool(undirected),
        )  # fmt: skip
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
        raise _out_of_range(nodes)
    source, destination = edge_index
    key, order = (destination * nodes + source).sort(stable=True)
    reverse = (source * nodes + destination).sort()[0]
    rowptr = torch.zeros(nodes + 1, dtype=torch.int32, device=source.device)
    rowptr[1:] = torch.bincount(destination, minlength=nodes).cumsum(0)
    return rowptr, source.index_select(0, order).int(), order, bool(torch.equal(key, reverse))


def _out_of_range(nodes: int) -> DataError:
    return DataError(f"edge_index names a node that is not among the {nodes} of these graphs")


def pointer_of(data: Data | Batch) -> Tensor:
    """G + 1, int64: the nodes of each graph."""
    ptr: Tensor | None = data.get("ptr")
    if ptr is not None:
        return ptr.long()
    edge_index, assignment = data.get("edge_index"), data.get("batch")
    device = None if edge_index is None else edge_index.device
    if assignment is None:
        return torch.tensor([0, int(data.num_nodes)], device=device)
    counts = torch.bincount(assignment)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def decode(
    key: str,
    values: Tensor | None,
    columns: Sequence[Column],
    float_names: Sequence[str],
    rows: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Codes (rows x columns) and floats (rows x names) of a PyG tensor that holds both, codes first."""
    wanted = len(columns) + len(float_names)
    if not wanted:
        return torch.zeros(rows, 0, dtype=torch.int64, device=device), torch.zeros(rows, 0, device=device)
    if values is None:
        raise DataError(f"these graphs have no {key}, the feature scheme has {wanted} columns")
    values = values.unsqueeze(1) if values.ndim == 1 else values
    one_hot = len(columns) == wanted == 1 and values.shape[1] == columns[0].cardinality > 1
    if one_hot and values.is_floating_point():
        if not bool(((values == 0) | (values == 1)).all() and (values.sum(1) == 1).all()):
            raise DataError(f"{key} has {values.shape[1]} floats that are not one-hot", hint="give integers")
        return values.argmax(1, keepdim=True), torch.zeros(rows, 0, device=device)
    if values.shape != (rows, wanted):
        raise DataError(
            f"{key} has shape {tuple(values.shape)}, not {(rows, wanted)}; the scheme has the columns "
            f"{', '.join([*(column.name for column in columns), *float_names])}"
        )
    if not float_names and values.dtype in _INTEGERS and use_compiled():
        translated = _translate(values.long(), _code_tables(tuple(columns)))
        if translated is not None:
            return translated, torch.empty(rows, 0, device=device)
    # Torch does what the tables cannot, and names a value that a column does not know.
    floats = values[:, len(columns) :].float()
    codes = [_code(key, values[:, k], column) for k, column in enumerate(columns)]
    return torch.stack(codes, 1) if codes else torch.zeros(rows, 0, dtype=torch.int64, device=device), floats


def _code(key: str, values: Tensor, column: Column) -> Tensor:
    """The code of each value of a column."""
    known = _integers(column).to(values.device)
    if len(known) and bool((known.diff() == 1).all()):  # consecutive numbers
        codes = values.long() - known[0]
        valid = (codes >= 0) & (codes < len(known)) & (values == values.long())
    else:
        ordered, order = known.sort()
        place = torch.searchsorted(ordered, values.long().contiguous()).clamp_(max=len(known) - 1)
        codes, valid = order[place], ordered[place] == values
    if not bool(valid.all()):
        value = values[int(valid.logical_not().int().argmax())].item()
        raise DataError(f"{key} has the value {value}, which the column {column.name!r} does not know")
    return codes


@lru_cache(maxsize=256)
def _integers(column: Column) -> Tensor:
    """The integer of each code; a shared tensor that must not be modified in place."""
    return torch.from_numpy(integers_of(column))


# Of some columns: results of all of them end to end, where those of each column begin, and the number that
# the first one of each column stands for.
_Tables = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
_LONGEST_TABLE = 1 << 16
# Those whose values an int64 can hold.
_INTEGERS = frozenset((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool))


@lru_cache(maxsize=64)
def _number_tables(columns: tuple[Column, ...]) -> _Tables:
    """From codes to the integers they stand for."""
    known = [_integers(column).numpy() for column in columns]
    return np.concatenate(known), pointer(np.array([len(of) for of in known])), np.zeros(len(known), np.int64)


@lru_cache(maxsize=64)
def _code_tables(columns: tuple[Column, ...]) -> _Tables | None:
    """From integers to codes; None if they lie too far apart for a table."""
    from graphsc.data.compiled import ABSENT

    tables, lowest = [], []
    for column in columns:
        known = _integers(column).numpy()
        low, high = (int(known.min()), int(known.max())) if len(known) else (0, -1)
        if high - low >= _LONGEST_TABLE:
            return None
        table = np.full(high - low + 1, ABSENT)
        table[known - low] = np.arange(len(known))
        tables.append(table)
        lowest.append(low)
    return (
        np.concatenate(tables),
        pointer(np.array([len(table) for table in tables])),
        np.array(lowest, np.int64),
    )


def _translate(values: Tensor, tables: _Tables | None) -> Tensor | None:
    """Look up integers (rows x columns) in one pass; None if a table lacks one, or if torch has to do it."""
    if tables is None or not values.is_cpu:
        return None
    from graphsc.data.compiled import translate

    result, complete = translate(np.ascontiguousarray(values.numpy()), *tables)
    return torch.from_numpy(result) if complete else None


def _with_computed(codes: Tensor, features: FeatureScheme, rowptr: Tensor, source: Tensor) -> Tensor:
    """Codes of all columns, from those of the label columns, degrees and constants."""
    destination = torch.repeat_interleave(rowptr.diff().long(), output_size=len(source))
    proper = destination[destination != source]
    degree = torch.bincount(proper, minlength=len(rowptr) - 1)
    columns, label = [], 0
    for column in features.columns:
        if column.name == DEGREE:
            columns.append(degree.clamp(max=column.cardinality - 1))
        elif column.name == CONSTANT:
            columns.append(torch.zeros_like(degree))
        else:
            columns.append(codes[:, label])
            label += 1
    return torch.stack(columns, 1)


def _edge_attributes(
    values: Tensor | None, features: FeatureScheme, edges: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None]:
    """Edge codes and floats. Without columns in the scheme, integers are codes as they are."""
    if features.has_edges:
        codes, floats = decode(
            "edge_attr", values, features.edge_columns, features.edge_float_names, edges, device
        )
        return codes if features.edge_columns else None, floats if features.edge_float_names else None
    if values is None:
        return None, None
    values = values.unsqueeze(1) if values.ndim == 1 else values
    if values.is_floating_point():
        return None, values.float()
    return values.long(), None


def batch_to_pyg(batch: GraphBatch, *, dense: bool = False) -> Batch:
    """A batch for PyG, with the tensors that `to_pyg` gives the graphs of its collection.

    Args:
        batch: G graphs.
        dense: Give `x` as encoders see it: one-hot codes, degrees and constants included, then floats. This
            is always so if a view has replaced features by noise.
    """
    from torch_geometric.data import Batch

    labels = [k for k, column in enumerate(batch.features.columns) if column.name not in (DEGREE, CONSTANT)]
    if dense or batch.replaced is not None:
        x: Tensor | None = batch.dense_x()
    else:
        columns = [batch.features.columns[k] for k in labels]
        x = encode(batch.codes[:, labels], columns, batch.floats)
    y = batch.y
    if y is not None and batch.integer_labels:
        y = y.long().view(-1)
    of_nodes = {"x": x, "pos": batch.pos}
    of_edges = {
        "edge_index": batch.edge_index,
        "edge_attr": batch.edge_attr if not batch.edge_columns or batch.edge_codes is None
        else encode(batch.edge_codes, batch.edge_columns, batch.edge_floats),
        "edge_weight": batch.edge_weight,
    }  # fmt: skip
    result = Batch(batch=batch.batch, ptr=batch.ptr)
    for key, value in (*of_nodes.items(), *of_edges.items(), ("y", y)):
        if value is not None:
            result[key] = value
    set_slices(
        result, batch, [key for key in of_nodes if key in result], [key for key in of_edges if key in result]
    )
    if x is None and batch.pos is None:
        result.num_nodes = batch.num_nodes
        result._store._num_nodes = batch.ptr.diff().tolist()
    if y is not None:
        result._slice_dict["y"] = torch.arange(batch.num_graphs + 1)
        result._inc_dict["y"] = torch.zeros(batch.num_graphs, dtype=torch.int64)
    return result


def encode(codes: Tensor, columns: Sequence[Column], floats: Tensor | None) -> Tensor | None:
    """Codes as the integers they stand for, then floats; the inverse of `decode`."""
    if not columns:
        return floats if floats is not None and floats.shape[1] else None
    has_floats = floats is not None and floats.shape[1] > 0
    if [column.name for column in columns] == [ONE_HOT] and not has_floats:
        return torch.nn.functional.one_hot(codes[:, 0], columns[0].cardinality).float()
    numbers = _translate(codes, _number_tables(tuple(columns))) if use_compiled() else None
    if numbers is None:
        known = [_integers(column).to(codes.device) for column in columns]
        numbers = torch.stack([of[codes[:, k]] for k, of in enumerate(known)], 1)
    if not has_floats or floats is None:
        return numbers
    exact = all(int(_integers(column).abs().max()) <= EXACT_FLOAT for column in columns if column.cardinality)
    return torch.cat([numbers.to(torch.float32 if exact else torch.float64), floats], dim=1)


def set_slices(result: Any, batch: GraphBatch, of_nodes: Sequence[str], of_edges: Sequence[str]) -> None:
    """Tell a PyG batch where its graphs begin, so that `to_data_list` can separate them."""
    nodes, edges = batch.ptr.cpu(), batch.edge_ptr.cpu()
    # PyG keeps these beside its keys; without its own look-up, which costs as much as a tensor operation.
    about = vars(result._store)
    slices, increments = (dict(about.get(name, {})) for name in ("_slice_dict", "_inc_dict"))
    slices |= {**dict.fromkeys(of_nodes, nodes), **dict.fromkeys(of_edges, edges)}
    missing = [key for key in (*of_nodes, *of_edges) if key not in increments]
    if missing:
        increments |= dict.fromkeys(missing, torch.zeros(batch.num_graphs, dtype=torch.int64))
    increments["edge_index"] = nodes[:-1]
    about.update(_slice_dict=slices, _inc_dict=increments, _num_graphs=batch.num_graphs)
