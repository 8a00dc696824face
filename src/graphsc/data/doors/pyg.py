"""PyTorch Geometric: a list of `Data`, a data set or a `Batch` in; `to_pyg` gives them back, without loss.

Integer (or bool) `x` and `edge_attr` are categories, one column each; so is float `x` that is one-hot
throughout, because an encoder looks codes up instead of multiplying (`one_hot="keep"` leaves it float).
Other floats are attributes, kept in 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, GraphscError
from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection
from graphsc.data.doors import DOORS, Door
from graphsc.data.doors.pyg_about import about_of, ids_of
from graphsc.data.doors.pyg_out import to_pyg as to_pyg
from graphsc.data.doors.pyg_table import described, dtype_name, interpreted, stack_rows

if TYPE_CHECKING:
    from torch_geometric.data import Data


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
    collection = assemble(
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


DOORS.register("pyg")(
    Door(
        accepts=accepts_pyg,
        read=read_pyg,
        summary="PyTorch Geometric: a list of Data, a data set or a Batch",
    )
)
