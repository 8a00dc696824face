"""GraphSC as one writes it with PyG: per-graph transforms in a DataLoader, GINConv, global_add_pool.

The same mathematics, weights and defaults as ours, in the ordinary style of the library; nothing in it is
slower than it needs to be in that style.
"""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, relu
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import is_undirected, subgraph, to_undirected

from graphsc.data.collection import GraphCollection
from graphsc.methods.graphsc import GraphSC


def keep_nodes(data: Data, keep: Tensor) -> Data:
    edge_index, _ = subgraph(keep, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
    return Data(x=data.x[keep], edge_index=edge_index, num_nodes=int(keep.sum()))


def drop_nodes(data: Data, count: int) -> Data:
    keep = torch.ones(data.num_nodes, dtype=torch.bool)
    keep[torch.randperm(data.num_nodes)[:count]] = False
    return keep_nodes(data, keep)


def grow(data: Data, count: int) -> Data:
    """A connected part of the graph: repeatedly a random neighbour of what is already in it."""
    neighbours: list[list[int]] = [[] for _ in range(data.num_nodes)]
    for source, destination in data.edge_index.T.tolist():
        neighbours[source].append(destination)
    target = data.num_nodes - count
    inside: set[int] = set()
    frontier: list[int] = []
    waiting: set[int] = set()
    while len(inside) < target:
        if frontier:
            position = random.randrange(len(frontier))
            frontier[position], frontier[-1] = frontier[-1], frontier[position]
            node = frontier.pop()
        else:
            node = random.choice([n for n in range(data.num_nodes) if n not in inside])
        inside.add(node)
        for other in neighbours[node]:
            if other not in inside and other not in waiting:
                waiting.add(other)
                frontier.append(other)
    keep = torch.zeros(data.num_nodes, dtype=torch.bool)
    keep[list(inside)] = True
    return keep_nodes(data, keep)


def perturb_edges(data: Data, count: int) -> Data:
    """Drop `count` undirected edges and add as many that were not there."""
    source, destination = data.edge_index
    once = data.edge_index[:, source <= destination]
    kept = once[:, torch.randperm(once.shape[1])[count:]]
    added = absent_edges(once, count, data.num_nodes)
    edge_index = to_undirected(torch.cat([kept, added], dim=1), num_nodes=data.num_nodes)
    return Data(x=data.x, edge_index=edge_index, num_nodes=data.num_nodes)


def absent_edges(once: Tensor, count: int, num_nodes: int) -> Tensor:
    """`count` pairs of distinct nodes without an edge, or all of them if there are fewer."""
    left = num_nodes * (num_nodes - 1) // 2 - once.shape[1]
    if left < 4 * count or num_nodes < 256:  # few are absent, or the matrix is small
        present = torch.zeros(num_nodes, num_nodes, dtype=torch.bool)
        present[once[0], once[1]] = True
        absent = (~present).triu(1).nonzero()
        return absent[torch.randperm(len(absent))[:count]].T
    taken = once[0] * num_nodes + once[1]
    found = once.new_empty(0)
    while len(found) < count:  # most random pairs are absent
        pairs = torch.randint(num_nodes, (2, 2 * count))
        low, high = pairs.min(0).values, pairs.max(0).values
        new = (low * num_nodes + high)[low < high]
        found = torch.cat([found, new[~torch.isin(new, taken)]]).unique()
    found = found[torch.randperm(len(found))[:count]]
    return torch.stack([found // num_nodes, found % num_nodes])


class Triples(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Anchor, weak and strong view of each graph, made when it is asked for."""

    def __init__(self, graphs: list[Data], operations: list[str], weak: float, strong: float) -> None:
        self.graphs, self.operations, self.rates = graphs, operations, (weak, strong)

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> tuple[Data, Data, Data]:
        data = self.graphs[index]
        operation = random.choice(self.operations)
        edges = operation == "perturb-edges"
        size = int((data.edge_index[0] <= data.edge_index[1]).sum()) if edges else data.num_nodes
        most = size if edges else size - 1
        weak = min(max(1, round(self.rates[0] * size)), most)
        strong = min(max(weak + 1, round(self.rates[1] * size)), most)
        change = {"drop-nodes": drop_nodes, "subgraph": grow, "perturb-edges": perturb_edges}[operation]
        return data, change(data, weak), change(data, strong)


class PygGraphSC(nn.Module):
    """The model and loss with PyG's layers, made from one of ours so that both have the same weights."""

    def __init__(self, ours: GraphSC) -> None:
        super().__init__()
        self.convs, self.norms = nn.ModuleList(), nn.ModuleList()
        for block in ours.encoder.blocks:
            first = block.first.weight.T if hasattr(block.first, "features") else block.first.weight
            mlp = nn.Sequential(nn.Linear(*first.T.shape), nn.ReLU(), nn.Linear(*block.second.weight.T.shape))
            self.convs.append(GINConv(mlp))
            mlp[0].load_state_dict({"weight": first, "bias": block.bias})  # GINConv has drawn anew
            mlp[2].load_state_dict(block.second.state_dict())
            self.norms.append(nn.BatchNorm1d(first.shape[0]))
        self.heads = nn.ModuleList()
        for head in (ours.first_head, ours.second_head, ours.third_head):
            assert head is not None
            copy = nn.Sequential(
                nn.Linear(*head[0].weight.shape), nn.ReLU(), nn.Linear(*head[2].weight.shape)
            )
            copy.load_state_dict(head.state_dict())
            self.heads.append(copy)

    def encode(self, data: Data) -> Tensor:
        x, pooled = data.x, []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(relu(conv(x, data.edge_index)))
            pooled.append(global_add_pool(x, data.batch))
        return torch.cat(pooled, dim=1)

    def loss(self, anchor: Data, weak: Data, strong: Data, factors: int = 4, margin: float = 0.2) -> Tensor:
        h = [self.encode(data) for data in (anchor, weak, strong)]
        raw = [self.heads[0](part) for part in h]
        y, y_positive, y_negative = (normalize(part, dim=1) for part in raw)
        relative = relu((y - y_positive).square().sum(1) - (y - y_negative).square().sum(1) + margin).mean()
        mask = torch.ones(factors, y.shape[1], dtype=y.dtype)
        for m, part in enumerate(mask.chunk(factors, dim=1)):
            part[m] = 0
        q = normalize(self.heads[1](y), dim=1)[:, None]
        q_positive = normalize(self.heads[1](y_positive[:, None] * mask), dim=2)
        q_negative = normalize(self.heads[1](y_negative[:, None] * mask), dim=2)
        score = (q * (q_positive - q_negative)).sum(2).detach() / 0.1
        weight = (1 - score.softmax(1)) / (factors - 1)
        hinge = relu((q - q_positive).square().sum(2) - (q - q_negative).square().sum(2) + margin)
        masked = (weight * hinge).sum(1).mean()
        z, z_positive = self.heads[2](h[0]), self.heads[2](h[1])
        z = (z - z.mean(0)) / z.std(0, correction=0)
        z_positive = (z_positive - z_positive.mean(0)) / z_positive.std(0, correction=0)
        correlation = z.T @ z_positive / len(z)
        diagonal = correlation.diagonal()
        twins = (1 - diagonal).square().sum() + 0.013 * (correlation.square().sum() - diagonal.square().sum())
        factor = dependence(raw[1], factors) + dependence(raw[2], factors)
        return relative + masked + 0.01 * factor + 0.01 * twins


def dependence(y: Tensor, factors: int) -> Tensor:
    """HSIC over all ordered pairs of factors, RBF kernels with the median as bandwidth."""
    size = len(y)
    centre = torch.eye(size, dtype=y.dtype) - 1 / size
    other = ~torch.eye(size, dtype=torch.bool)
    kernels = []
    for part in y.chunk(factors, dim=1):
        squares = (part[:, None] - part[None]).square().sum(2)
        bandwidth = squares.detach()[other].quantile(0.5)
        kernels.append(centre @ torch.exp(-squares / (2 * bandwidth)) @ centre)
    stacked = torch.stack(kernels).flatten(1)
    pairs = stacked @ stacked.T
    return (pairs.sum() - pairs.diagonal().sum()) / (size - 1) ** 2


def loader_of(
    collection: GraphCollection,
    operations: list[str],
    rates: tuple[float, float],
    workers: int,
    batch_size: int,
) -> DataLoader:
    from graphsc.data.batch import GraphBatch

    graphs = []
    for index in range(len(collection)):
        batch = GraphBatch.gather(collection, [index])  # type: ignore[arg-type]
        graphs.append(Data(x=batch.dense_x(), edge_index=batch.edge_index, num_nodes=batch.num_nodes))
    assert not graphs or is_undirected(graphs[0].edge_index)
    return DataLoader(
        Triples(graphs, operations, *rates), batch_size, shuffle=True, num_workers=workers,
        persistent_workers=workers > 0,
    )  # fmt: skip
