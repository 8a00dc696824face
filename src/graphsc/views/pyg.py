"""Views of PyG batches: PyG in, PyG out, with all keys; as PyG transforms, and in PyG's loaders.

A view is applied to the structure of a batch. Tensors with one row per node or edge follow it, whatever their
name; everything else stays as it is.
"""

from __future__ import annotations

import copy
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.columns import Column
from graphsc.data.features import FeatureScheme
from graphsc.data.pyg_batch import decode, encode, has_version, pointer_of, set_slices, sorted_edges
from graphsc.views.array_ops import use_loops
from graphsc.views.base import VIEWS, View

Graphs: TypeAlias = Data | Batch

__all__ = ["ViewCollator", "ViewTransform", "apply_to_pyg"]


def apply_to_pyg(
    perturb: Callable[[GraphBatch], GraphBatch],
    data: Graphs,
    features: FeatureScheme | None = None,
    *,
    edges: bool = True,
) -> Graphs:
    """Perturb PyG graphs.

    Args:
        perturb: From a batch to a view of it.
        data: A `Batch` or `Data`, which is not changed.
        features: What the integers of `x` mean, for views that change them; see `GraphBatch.from_pyg`.
        edges: False for a view that neither needs nor changes edges, which are then not sorted.

    Returns:
        A copy with the same keys. Edges are sorted by destination; an added edge has the attributes of
        another edge, and an `edge_weight` of 1.
    """
    (view,) = apply_all_to_pyg(lambda batch: (perturb(batch),), data, features, edges=edges)
    return view


def apply_all_to_pyg(
    perturb: Callable[[GraphBatch], tuple[GraphBatch, ...]],
    data: Graphs,
    features: FeatureScheme | None = None,
    *,
    edges: bool = True,
) -> tuple[Graphs, ...]:
    """As `apply_to_pyg`, for several views that are drawn together."""
    stored = data.to_dict()
    x = stored.get("x")
    nodes = x.shape[0] if isinstance(x, Tensor) else int(data.num_nodes)
    keys = _Keys(data, stored, nodes)
    start, order = _structure(data, stored, keys, features, nodes, edges)
    return tuple(_rebuild(data, stored, keys, start, order, view, features) for view in perturb(start))


def _rebuild(
    data: Graphs,
    stored: Mapping[str, Any],
    keys: _Keys,
    start: GraphBatch,
    order: Tensor,
    view: GraphBatch,
    features: FeatureScheme | None,
) -> Graphs:
    """A view as PyG graphs, with all keys of those that it was made of."""
    x = stored.get("x")
    result = copy.copy(data)
    if view is start:
        return result
    # As `result[key]`, without PyG's look-up of properties and of what it remembers of keys: nothing yet.
    store = result._store._mapping
    same_nodes, same_edges = view.ptr is start.ptr, view.source is start.source
    if not same_edges and use_loops(view.source):
        _expand(view)
    if not same_nodes and keys.of_node_numbers:
        raise ConfigError(
            f"the key {keys.of_node_numbers[0]} holds numbers of nodes, which this view changes",
            hint="remove it before the view",
        )
    for key in [] if same_nodes else keys.nodes:
        store[key] = stored[key].index_select(0, view.node_origin)
    if x is not None or view.replaced is not None:
        _set_x(store, x, start, view, features)
    if not same_edges:
        store["edge_index"] = view.edge_index
        origin = order if view.edge_origin is None else order.index_select(0, view.edge_origin)
        for key in keys.edges:
            store[key] = stored[key].index_select(0, origin)
        if view.edge_weight is not None:
            weight = stored["edge_weight"]
            store["edge_weight"] = view.edge_weight.to(weight.dtype).view(-1, *weight.shape[1:])
    if isinstance(data, Batch):
        if not (same_nodes and same_edges):
            _set_batch(result, data, stored, view, keys)
    elif "num_nodes" in stored:
        store["num_nodes"] = view.num_nodes
    return result


def _expand(view: GraphBatch) -> None:
    """Fill in what PyG has of a batch, in one pass instead of one per property."""
    from graphsc.data.compiled import pyg_index_of

    arrays = pyg_index_of(view.rowptr.numpy(), view.source.numpy(), view.ptr.numpy())
    for name, array in zip(("edge_index", "batch", "edge_ptr"), arrays, strict=True):
        vars(view)[name] = torch.from_numpy(array)  # a cached property


class _Keys:
    """The keys of PyG graphs by what they have one row of; others stay as they are."""

    def __init__(self, data: Graphs, stored: Mapping[str, Any], nodes: int) -> None:
        slices = vars(data._store).get("_slice_dict")
        edge_index = stored.get("edge_index")
        edges = int(data.num_edges) if edge_index is None else edge_index.shape[1]
        self.nodes: list[str] = []  # without x
        self.edges: list[str] = []  # without edge_index and edge_weight
        self.of_node_numbers: list[str] = []
        of_nodes = None if slices is None else stored["ptr"].cpu()
        of_edges = None if slices is None else slices.get("edge_index")
        for key, value in stored.items():
            if key in ("x", "edge_index", "edge_weight", "batch", "ptr", "num_nodes") or not (
                isinstance(value, Tensor) and value.ndim
            ):
                continue
            if "index" in key or key == "face":  # PyG adds the number of earlier nodes to these
                self.of_node_numbers.append(key)
            elif slices is None or key not in slices:
                # A batch without its graphs' places, or a key that follows another one.
                kind = "edge" if "edge" in key and len(value) == edges else "node"
                if len(value) == (edges if kind == "edge" else nodes):
                    getattr(self, f"{kind}s").append(key)
                elif len(value) == edges:
                    self.edges.append(key)
            elif "edge" in key and len(value) == edges and _equal(slices[key], of_edges):
                self.edges.append(key)
            elif len(value) == nodes and _equal(slices[key], of_nodes):
                self.nodes.append(key)
            elif len(value) == edges != len(stored["ptr"]) - 1 and _equal(slices[key], of_edges):
                self.edges.append(key)


def _equal(left: Tensor | None, right: Tensor | None) -> bool:
    return left is not None and right is not None and torch.equal(left, right)


def _structure(
    data: Graphs,
    stored: Mapping[str, Any],
    keys: _Keys,
    features: FeatureScheme | None,
    nodes: int,
    edges: bool,
) -> tuple[GraphBatch, Tensor]:
    """The batch that a view perturbs, without edges if it needs none, and the old number of each edge."""
    edge_index = stored.get("edge_index")
    if edges or edge_index is None:
        rowptr, source, order, undirected = sorted_edges(edge_index, nodes)
    else:
        rowptr = torch.zeros(nodes + 1, dtype=torch.int32, device=edge_index.device)
        source, order, undirected = rowptr[:0], edge_index[0, :0], True
    device = source.device
    x, weight = stored.get("x"), stored.get("edge_weight")
    scheme, codes, floats = _features(x, nodes, features, device)
    ptr = pointer_of(data)
    for _, version, earlier in list(_RECENT):
        if (
            earlier.rowptr is rowptr
            and earlier.ptr is ptr
            and version == ptr._version
            and earlier.features == scheme
            and (earlier.codes is codes or torch.equal(earlier.codes, codes))
            # Equal floats are not enough: gradients must reach these.
            and (earlier.floats is floats or not floats.shape[1])
            and earlier.edge_weight is weight is None
            and (earlier.node_origin is not None) == bool(keys.nodes)
            and (earlier.edge_origin is not None) == bool(keys.edges)
        ):
            return earlier, order
    start = GraphBatch(
        codes=codes,
        floats=floats,
        rowptr=rowptr,
        source=source,
        ptr=ptr,
        features=scheme,
        undirected=undirected,
        edge_weight=None if weight is None else weight.reshape(-1).float().index_select(0, order),
        # Views draw other edges' attributes for added edges only where there are any.
        node_origin=torch.arange(nodes, device=device) if keys.nodes else None,
        edge_origin=torch.arange(len(source), device=device) if keys.edges else None,
    )
    if edges and edge_index is not None and has_version(edge_index) and has_version(ptr):
        _RECENT.append((weakref.ref(edge_index, _forget), ptr._version, start))
    return start, order


# Two views of a batch share what they compute of it. No longer than the batch lives, since it holds tensors.
_RECENT: deque[tuple[weakref.ref[Tensor], int, GraphBatch]] = deque(maxlen=2)


def _forget(_: object) -> None:
    _RECENT.clear()


def _features(
    x: Tensor | None, nodes: int, features: FeatureScheme | None, device: torch.device
) -> tuple[FeatureScheme, Tensor, Tensor]:
    """The scheme, codes and floats of `x`: floats as they are, integers by the scheme."""
    if x is None or x.is_floating_point():
        no_codes = torch.empty(nodes, 0, dtype=torch.int64, device=device)
        if x is None:
            return _float_scheme(0), no_codes, torch.empty(nodes, 0, device=device)
        rows = x.unsqueeze(1) if x.ndim == 1 else x
        return _float_scheme(rows.shape[1]), no_codes, rows
    rows = x.unsqueeze(1) if x.ndim == 1 else x
    no_floats = torch.empty(nodes, 0, device=device)
    if features is not None:
        codes, _ = decode("x", rows, features.columns, (), nodes, device)
        return FeatureScheme("x", features.columns, ()), codes, no_floats
    # Without a scheme, integers are codes up to the largest of this batch.
    if not nodes:
        largest = [0] * rows.shape[1]
    else:  # NumPy takes few elements faster
        largest = rows.numpy().max(0).tolist() if rows.is_cpu else rows.amax(0).tolist()
    return _code_scheme(tuple(largest)), rows.long(), no_floats


@lru_cache(maxsize=64)
def _float_scheme(width: int) -> FeatureScheme:
    return FeatureScheme("x", (), tuple(f"x{k}" for k in range(width)))


@lru_cache(maxsize=64)
def _code_scheme(largest: tuple[int, ...]) -> FeatureScheme:
    return FeatureScheme("x", tuple(Column(f"x{k}", value + 1) for k, value in enumerate(largest)), ())


def _set_x(
    store: dict[str, Any],
    x: Tensor | None,
    start: GraphBatch,
    view: GraphBatch,
    features: FeatureScheme | None,
) -> None:
    if x is None:
        raise ConfigError("these graphs have no x to mask", hint="give them features")
    if x.is_floating_point():
        rows = view.floats
        if view.replaced is not None and view.replacement is not None:
            rows = rows.index_copy(0, view.replaced, view.replacement.to(rows.dtype))
        elif rows is start.floats:
            return
    elif view.replaced is not None:
        raise ConfigError(
            "integer x cannot hold noise",
            hint="mask by a token, MaskAttributes(token=CODE), or make x floats",
        )
    elif view.codes is start.codes:
        return
    else:
        rows = view.codes
        if features is not None:
            numbers = encode(rows, view.features.columns, None)
            assert numbers is not None  # noqa: S101 - integers have columns
            rows = numbers
    if rows.dtype != x.dtype or rows.ndim != x.ndim:
        rows = rows.to(x.dtype).view(-1, *x.shape[1:])
    store["x"] = rows


def _set_batch(result: Any, data: Batch, stored: Mapping[str, Any], view: GraphBatch, keys: _Keys) -> None:
    """The assignment of nodes to graphs, and where the graphs begin."""
    store = result._store._mapping
    if view.ptr is not stored.get("ptr"):
        store["ptr"], store["batch"] = view.ptr, view.batch
    if "num_nodes" in stored:
        store["num_nodes"] = view.num_nodes
    if "_num_nodes" in vars(data._store):
        vars(result._store)["_num_nodes"] = np.diff(view.ptr.cpu().numpy()).tolist()
    of_nodes = [*keys.nodes, *(["x"] if "x" in stored else [])]
    of_edges = [key for key in (*keys.edges, "edge_index", "edge_weight") if key in stored]
    for key, ptr in (*((key, view.ptr) for key in of_nodes), *((key, view.edge_ptr) for key in of_edges)):
        if f"{key}_ptr" in stored:  # made by `follow_batch`
            store[f"{key}_ptr"] = ptr
            store[f"{key}_batch"] = torch.repeat_interleave(ptr.diff())
    slices = vars(data._store).get("_slice_dict")
    if slices is not None:
        set_slices(
            result,
            view,
            [key for key in of_nodes if key in slices],
            [key for key in of_edges if key in slices],
        )


class ViewTransform(BaseTransform):  # type: ignore[misc]
    """A view as a PyG transform, of a `Data` or a whole `Batch`.

    Args:
        view: A view, or its registered name.
        rate: Its rate.
        features: What the integers of `x` mean, for views that change them.
        seed: Of the random draws. None draws from torch's global generator, whose state differs between
            the workers of a loader.
    """

    def __init__(
        self,
        view: View | str,
        rate: float,
        *,
        features: FeatureScheme | None = None,
        seed: int | None = None,
    ) -> None:
        self.view = VIEWS.get(view)() if isinstance(view, str) else view
        self.rate = rate
        self.features = features
        self.seed = seed
        self._generators: dict[torch.device, torch.Generator] = {}

    def __call__(self, data: Graphs) -> Graphs:
        """A view of the graphs, without the copy that PyG makes before: `forward` makes its own."""
        return self.forward(data)

    def forward(self, data: Graphs) -> Graphs:
        """A view of the graphs; see `apply_to_pyg`."""
        edge_index = data.get("edge_index")
        device = torch.device("cpu") if edge_index is None else edge_index.device
        generator = self._generator(device)
        return apply_to_pyg(
            lambda batch: self.view(batch, self.rate, generator), data, self.features,
            edges=self.view.needs_edges,
        )  # fmt: skip

    def _generator(self, device: torch.device) -> torch.Generator:
        if self.seed is None:  # one draw of the global generator, so that torch.manual_seed decides
            seed = int(torch.empty((), dtype=torch.int64).random_())
            return torch.Generator(device).manual_seed(seed)
        if device not in self._generators:
            self._generators[device] = torch.Generator(device).manual_seed(self.seed)
        return self._generators[device]

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_generators": {}}  # generators cannot be sent to the workers of a loader

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.view).__name__}, {self.rate:g})"


class ViewCollator:
    """Makes a batch of each of several views from a list of PyG graphs, for a loader.

    For `torch.utils.data.DataLoader` it is the `collate_fn`. PyG's loader takes none; set its attribute
    `collate_fn` after it is made. The views see the whole batch at once, which is much faster than a
    transform per graph.

    Args:
        transforms: One per batch that is made, e.g. a `ViewTransform`; None is the batch as it is.
        follow_batch: As for PyG's loader.
        exclude_keys: As for PyG's loader.
    """

    def __init__(
        self,
        *transforms: Callable[[Batch], Batch] | None,
        follow_batch: Sequence[str] = (),
        exclude_keys: Sequence[str] = (),
    ) -> None:
        self.transforms = transforms
        self.follow_batch = list(follow_batch)
        self.exclude_keys = list(exclude_keys)

    def __call__(self, graphs: Sequence[Data]) -> tuple[Batch, ...]:
        """One batch per transform, of the same graphs in the same order."""
        batch = Batch.from_data_list(list(graphs), self.follow_batch, self.exclude_keys)
        return tuple(batch if transform is None else transform(batch) for transform in self.transforms)
