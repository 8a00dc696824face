"""The way out to PyTorch Geometric: a collection as a list of `Data`, without loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphsc.data.collection import GraphCollection
from graphsc.data.doors.pyg_about import ABOUT, ID, About
from graphsc.data.doors.pyg_table import EXACT_FLOAT, to_tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_pyg(collection: GraphCollection) -> list[Data]:
    """One `Data` a graph; `read_pyg` gives an equal collection back.

    Codes leave as the whole numbers they stand for, else as codes; with attributes beside them, as
    floats before these. `y` is a class number of shape (1,) where all labels are whole numbers of one
    task, floats of shape (1, tasks) otherwise.
    """
    import torch
    from torch_geometric.data import Data

    collection.touch(np.arange(len(collection)))
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
