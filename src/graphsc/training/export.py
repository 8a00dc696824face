"""Trained models and embeddings for other tools: PyG and torch.export, AnnData, FAISS and hnswlib."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import atomic_write, write_json
from graphsc.core.registry import require
from graphsc.data.arrays import Strings
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.features import FeatureScheme
from graphsc.methods.base import TrainedMethod

if TYPE_CHECKING:
    from anndata import AnnData
    from torch.export import ExportedProgram
    from torch_geometric.data import Batch, Data

TENSORS = ("codes", "floats", "rowptr", "source", "ptr", "edge_codes", "edge_floats", "edge_weight", "pos")


class PygModule(nn.Module):
    """A trained encoder that takes PyG batches: `module(batch)` gives one embedding per graph.

    A plain torch module: it has parameters, gradients and a state, and can be a part of another model. It
    comes in evaluation mode, in which its rows are those of `Model.embed`.

    Args:
        method: A trained method; of one that embeds by its encoder, only the encoder is kept.
        features: The feature scheme that it expects. `x` and `edge_attr` of a batch have the columns of the
            scheme, as `to_pyg` gives them.
    """

    def __init__(self, method: TrainedMethod, features: FeatureScheme) -> None:
        super().__init__()
        by_encoder = type(method).embed is TrainedMethod.embed
        if by_encoder:
            method = TrainedMethod(method.encoder, batch_norm_embedding=method.batch_norm_embedding)
        self.method = method
        self.features = features
        self.dimensions = method.dimensions(features)
        self.eval()

    def forward(self, batch: Data | Batch) -> Tensor:
        """G x dimensions."""
        return self.method.embed(GraphBatch.from_pyg(batch, self.features))

    def tensors(self, batch: Data | Batch) -> dict[str, Tensor]:
        """The arguments of an exported program for a PyG batch, by name."""
        own = GraphBatch.from_pyg(batch, self.features)
        inputs: frozenset[str] = getattr(self.method.encoder, "inputs", frozenset())
        unused = {"edge_weight", "pos"} - inputs
        if "edge_attr" not in inputs:
            unused |= {"edge_codes", "edge_floats"}
        values = {name: getattr(own, name) for name in TENSORS if name not in unused}
        return {name: value for name, value in values.items() if value is not None}

    def export(self, batch: Data | Batch) -> ExportedProgram:
        """Export with `torch.export`, for any numbers of graphs, nodes and edges from 2 on.

        The program takes the tensors that `tensors` gives, by name, and needs no code of this package.
        `torch.export.save` writes it.

        Args:
            batch: An example, with all the tensors that later batches have.

        Raises:
            ConfigError: PyTorch cannot export this encoder, e.g. one whose shapes depend on values.
        """
        from torch.export import Dim, export

        tensors = self.tensors(batch)
        shapes = {name: {0: Dim.AUTO} for name in tensors}
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                module = _Tensors(self.method, self.features)
                return export(module, (), kwargs=tensors, dynamic_shapes=shapes, strict=False)
        except Exception as error:  # torch raises errors of many types, some of them private
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ConfigError(
                f"PyTorch cannot export the encoder {type(self.method.encoder).__name__}: {reason}",
                hint="use the module itself, or the encoder gin, gine, gcn, gat or graphsage",
            ) from error
        finally:
            self.train(was_training)


class _Tensors(nn.Module):
    """A method that takes the tensors of a batch."""

    def __init__(self, method: TrainedMethod, features: FeatureScheme) -> None:
        super().__init__()
        self.method = method
        self.features = features
        self.train(method.training)

    def forward(
        self,
        codes: Tensor,
        floats: Tensor,
        rowptr: Tensor,
        source: Tensor,
        ptr: Tensor,
        edge_codes: Tensor | None = None,
        edge_floats: Tensor | None = None,
        edge_weight: Tensor | None = None,
        pos: Tensor | None = None,
    ) -> Tensor:
        batch = GraphBatch(
            codes=codes, floats=floats, rowptr=rowptr, source=source, ptr=ptr, features=self.features,
            undirected=False, edge_codes=edge_codes, edge_floats=edge_floats, edge_weight=edge_weight,
            pos=pos,
        )  # fmt: skip
        return self.method.embed(batch)


def to_anndata(embeddings: NDArray[np.floating], graphs: GraphCollection) -> AnnData:
    """Embeddings as AnnData: one observation per graph, with its id and labels.

    Class labels become categories by their names, other labels numbers. Needs the extra `anndata`.

    Args:
        embeddings: Graphs x dimensions.
        graphs: The graphs, in the order of the rows.
    """
    _check_rows(embeddings, len(graphs))
    anndata = require("anndata")
    import pandas

    index = [str(graph_id) for graph_id in graphs.ids]
    observations = pandas.DataFrame(index=pandas.Index(index, name="id"))
    for k, task in enumerate(graphs.tasks):
        assert graphs.labels is not None  # noqa: S101 - tasks are of labels
        values, names = graphs.labels[:, k], graphs.classes.get(task)
        if names is not None:
            known = ~np.isnan(values)
            words = [names[int(value)] if there else None for value, there in zip(values, known, strict=True)]
            observations[task] = pandas.Categorical(words, categories=list(names))
        else:
            observations[task] = np.asarray(values, np.float64)
    variables = pandas.DataFrame(index=[f"v{k}" for k in range(embeddings.shape[1])])
    table: AnnData = anndata.AnnData(
        np.ascontiguousarray(embeddings, np.float32), obs=observations, var=variables
    )
    return table


Index = Literal["none", "faiss", "hnswlib"]
FILES: Mapping[str, str] = {"faiss": "index.faiss", "hnswlib": "index.hnsw"}


def write_vectors(
    folder: str | Path,
    embeddings: NDArray[np.floating],
    ids: Ids | Sequence[int | str],
    *,
    index: Index = "none",
) -> None:
    """Write embeddings for a search by similarity, into a folder that is made if it is missing.

    The folder has `vectors.npy` (graphs x dimensions, float32, as FAISS and hnswlib take it, also by memory
    map), `ids.json` (row by row), and, if asked, an index of Euclidean distances.

    Args:
        folder: Files in it with these names are replaced; an index of earlier vectors is removed.
        embeddings: Graphs x dimensions.
        ids: One per row.
        index: `faiss` writes an exact `index.faiss`, for `faiss.read_index`; `hnswlib` an approximate
            `index.hnsw`, for `hnswlib.Index.load_index`. Both number rows from 0 and need the library.
    """
    if index not in ("none", *FILES):
        raise ConfigError(f"unknown index {index!r}", hint=f"use none, {' or '.join(FILES)}")
    _check_rows(embeddings, len(ids))
    library = None if index == "none" else require(index)
    path, vectors = Path(folder), np.ascontiguousarray(embeddings, np.float32)
    for name in FILES.values():
        (path / name).unlink(missing_ok=True)
    with atomic_write(path / "vectors.npy") as file:
        np.save(file, vectors)
    texts = list(ids) if isinstance(ids, Strings) else np.asarray(ids).tolist()
    write_json(path / "ids.json", {"ids": texts, "dimensions": vectors.shape[1]})
    if library is None:
        return
    if index == "faiss":
        flat = library.IndexFlatL2(vectors.shape[1])
        flat.add(vectors)
        content = library.serialize_index(flat).tobytes()
        with atomic_write(path / FILES[index]) as file:
            file.write(content)
        return
    graph = library.Index(space="l2", dim=vectors.shape[1])
    graph.init_index(max_elements=max(len(vectors), 1), random_seed=0)
    graph.add_items(vectors, np.arange(len(vectors)), num_threads=1)
    with atomic_write(path / FILES[index]) as file:
        graph.save_index(file.name)  # hnswlib takes a path only


def read_vectors(folder: str | Path) -> tuple[NDArray[np.float32], list[int | str]]:
    """The embeddings, by memory map, and ids that `write_vectors` wrote."""
    path = Path(folder)
    try:
        vectors = np.load(path / "vectors.npy", mmap_mode="r")
        ids: list[int | str] = json.loads((path / "ids.json").read_text(encoding="utf-8"))["ids"]
        count = len(ids)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"not a folder of vectors: {error}", where=str(path)) from error
    _check_rows(vectors, count)
    return vectors, ids


def _check_rows(embeddings: NDArray[np.floating], count: int) -> None:
    if embeddings.ndim != 2 or len(embeddings) != count:
        raise DataError(f"embeddings of shape {embeddings.shape} for {count} graphs")
