"""Graphs that are similar, graphs that are unlike all others, and groups of graphs, by their embeddings."""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.ids import check_ids
from graphsc.core.random import numpy_generator
from graphsc.core.tables import Table
from graphsc.data.arrays import Strings
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.molecules.conversion import (
    MoleculeTable,
    Plan,
    RowOptions,
    chunk_to_collection,
    read_molecules,
)
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rows import Source, open_rows
from graphsc.data.readers.csv import read_header, table_suffix
from graphsc.evaluation.clustering import find_clusters
from graphsc.evaluation.neighbours import has_embedding, nearest, nearest_streamed, nearest_to
from graphsc.experiments.explore import Embedded, far_from_all
from graphsc.report.drawings import MAX_EDGES, MAX_NODES, graph_svgs, is_molecular
from graphsc.report.figure import svg_of
from graphsc.report.html import Report, ReportCard, ReportFigure, ReportGallery, ReportTable
from graphsc.report.projection import map_figure, project
from graphsc.training.embedding_files import read_embeddings
from graphsc.training.model_files import find_model, is_vectors
from graphsc.training.model_io import Model, load_model

SHOWN_QUERIES = 20  # on a page
SHOWN_GRAPHS = 8  # of a cluster
MAP_GRAPHS = 4_000
DISTANCE = (
    "Distances are Euclidean between embeddings whose columns are standardised. They compare graphs of one "
    "page; they have no unit."
)


@dataclass(frozen=True)
class Similar:
    """The nearest graphs of some queries; queries are graphs of the same source, or others."""

    source: Embedded
    queries: Embedded
    neighbours: NDArray[np.int64]  # queries x k, positions in the source
    distances: NDArray[np.float32]  # queries x k
    searched: int | None = None  # graphs in a library of which the source has only the nearest ones

    def table(self) -> Table:
        """One row per query and neighbour; with its SMILES, if it was found in a library of molecules."""
        smiles = None if self.searched is None else self.source.smiles
        rows = tuple(
            (
                str(query),
                rank + 1,
                str(self.source.ids[index]),
                float(distance),
                *(() if smiles is None else (smiles[index],)),
            )
            for query, near, far in zip(
                self.queries.ids, self.neighbours.tolist(), self.distances.tolist(), strict=True
            )
            for rank, (index, distance) in enumerate(zip(near, far, strict=True))
            if index >= 0
        )
        columns = ("query", "rank", "id", "distance", *(() if smiles is None else ("smiles",)))
        return Table(columns, rows, "Similar graphs", align="lrlr" + "l" * (len(columns) - 4))


def find_similar(
    source: Embedded, *, to: Sequence[str] = (), queries: Embedded | None = None, k: int = 8
) -> Similar:
    """The k graphs nearest to each query.

    Args:
        source: The graphs that are searched.
        to: Ids of graphs of the source, which are the queries; all of them by default. Graphs that share an
            id are all queries.
        queries: Other graphs, embedded with the same model.
        k: Neighbours per query.

    Raises:
        ConfigError: An id is unknown, or k is not positive.
    """
    if k < 1:
        raise ConfigError(f"k is {k}", hint="use 1 or more")
    if queries is not None:
        index, distance = nearest_to(queries.rows, source.rows, k)
        return Similar(source, queries, index, distance)
    index, distance = nearest(source.rows, k)
    if not to:
        return Similar(source, source, index, distance)
    places: dict[str, list[int]] = {}
    for place, identity in enumerate(source.ids):
        places.setdefault(str(identity), []).append(place)
    check_ids(to, places, source.left_out)
    chosen = np.array([place for identity in to for place in places[identity]])
    return Similar(source, _subset(source, chosen), index[chosen], distance[chosen])


LIBRARY_CHUNK = 2_000  # molecules that are embedded at a time
VECTOR_CHUNK = 8_192  # vectors that are compared at a time
MOST_QUERIES = 1_000


def search_library(
    model: str | Path,
    query: str | Path,
    library: str | Path,
    *,
    data: str | Path | None = None,
    options: Mapping[str, object] | None = None,
    top: int = 10,
    device: str | torch.device = "auto",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Similar:
    """The molecules of a library that are nearest to each query, by the vectors of a model.

    The search is exhaustive and exact. Molecules are embedded in chunks, and their vectors are kept in a
    temporary file, so memory does not grow with the library.

    Args:
        model: A run folder, a model file or the name of a model.
        query: A SMILES string, or a table, .smi or .sdf file of up to 1,000 molecules.
        library: A table, .smi or .sdf file of molecules; or a file of vectors that `graphsc embed` wrote with
            the same model.
        data: The molecules of a file of vectors, row by row, for their drawings.
        options: How tables are read: `smiles_column`, `id_column`, `separator`.
        top: Neighbours per query.
        device: Where the model embeds, as in `Model.to`.
        progress: Called with the molecules embedded and their number.

    Raises:
        ConfigError: `top` is not positive, or there are too many queries.
        DataError: There is no molecule among the queries or in the library.
    """
    if top < 1:
        raise ConfigError(f"top is {top}", hint="use 1 or more")
    loaded = load_model(find_model(model), device)
    if loaded.gram:
        raise ConfigError(
            f"{loaded.recipe.method} has kernel values with its own graphs, no vectors", where=str(model)
        )
    asked = _queries(query, _own_options(query, library, options or {}))
    table = _own_options(data if is_vectors(Path(library)) else library, query, options or {})
    rows_given = {key: table.get(key) for key in ("smiles_column", "id_column", "separator")}
    with tempfile.TemporaryDirectory(prefix="graphsc-") as folder:
        file = Path(folder) / "vectors"
        if is_vectors(Path(library)):
            count, left_out = _copy_vectors(Path(library), file, loaded.dimensions)
            molecules = None if data is None else open_rows(data, **rows_given)  # type: ignore[arg-type]
            numbers = None
            ids = _vector_ids(Path(library))
        else:
            molecules = open_rows(_table_path(library), **rows_given)  # type: ignore[arg-type]
            numbers, rows = _embed_library(loaded, molecules, file, progress)
            count, ids, left_out = len(numbers), None, rows - len(numbers)
        if not count:
            raise DataError("there is no molecule in this library", where=str(library))

        def chunks() -> Iterator[NDArray[np.float32]]:
            # Not a memory map: its pages would count as memory of the process.
            with open(file, "rb") as vectors:
                while len(part := np.fromfile(vectors, np.float32, VECTOR_CHUNK * loaded.dimensions)):
                    yield part.reshape(-1, loaded.dimensions)

        index, distance = nearest_streamed(loaded.embed(asked.collection), chunks, top)
    hits = np.unique(index)
    title = f"{Path(library).name}, {loaded.recipe.method}"
    source = replace(
        _hits(hits, numbers, ids, molecules, title),
        left_out=left_out,
        notes=_without_vector("library", left_out) + _without_vector("query", len(asked.rejected)),
    )
    queries = Embedded(
        "queries", np.zeros((len(asked.smiles), 0), np.float32), list(asked.collection.ids), asked.collection,
        left_out=len(asked.rejected), smiles=asked.smiles,
    )  # fmt: skip
    return Similar(source, queries, np.searchsorted(hits, index), distance, count)


def _without_vector(which: str, rows: int) -> tuple[str, ...]:
    return (f"{rows:,} rows of the {which} table have no molecule and are left out.",) if rows else ()


def _own_options(
    source: str | Path | None, other: str | Path | None, options: Mapping[str, object]
) -> dict[str, object]:
    """Options of one of two tables: a column that only the other one has is not asked of this one."""
    own, others = _header(source), _header(other)
    return {
        key: value
        for key, value in options.items()
        if key not in ("smiles_column", "id_column") or value in own or value not in others
    }


def _header(source: str | Path | None) -> list[str]:
    path = None if source is None else _table_path(source)
    return read_header(path) if path is not None and table_suffix(path) and path.is_file() else []


def _queries(query: str | Path, options: Mapping[str, object]) -> MoleculeTable:
    if not Path(query).exists() and Path(query).suffix not in (".csv", ".tsv", ".smi", ".sdf", ".parquet"):
        try:
            found = read_molecules([str(query)])
        except DataError as error:
            raise DataError(
                f"{str(query)[:60]!r} is neither a file nor a SMILES string",
                hint="give a SMILES string or a table of molecules",
            ) from error
        return replace(found, collection=replace(found.collection, ids=Strings.of([str(query)])))
    found = read_molecules(_table_path(query), **cast(RowOptions, dict(options)))
    if len(found.smiles) > MOST_QUERIES:
        raise ConfigError(
            f"{len(found.smiles):,} queries are too many", where=str(query), hint=f"ask for {MOST_QUERIES:,}"
        )
    return found


def _table_path(source: str | Path) -> Path:
    """The file of a table, or of a data set by name."""
    entry = NAMED.get(str(source).lower())
    if Path(source).exists() or entry is None or entry.reader != "smiles":
        return Path(source)
    return locate(entry)


def _embed_library(
    model: Model, molecules: Source, file: Path, progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int64], int]:
    """Write the vectors of all molecules one after another; return the row of each, and the table's rows."""
    numbers: list[NDArray[np.int64]] = []
    total = sum(1 for _ in molecules.rows())
    rows, done = molecules.rows(), 0
    with open(file, "wb") as target:
        while part := list(islice(rows, LIBRARY_CHUNK)):
            collection, _ = chunk_to_collection(part, _PLAN)
            done += len(part)
            if collection is not None:
                target.write(model.embed(collection).astype(np.float32).tobytes())
                numbers.append(np.asarray(collection.ids, np.int64))
            progress(done, total)
    return np.concatenate(numbers) if numbers else np.zeros(0, np.int64), total


def _copy_vectors(path: Path, file: Path, dimensions: int) -> tuple[int, int]:
    """Write the rows of a file one after another; return how many have a vector, and how many have none."""
    with open(file, "wb") as target:
        count = empty = 0
        for chunk in vector_chunks(path, VECTOR_CHUNK):
            if chunk.shape[1] != dimensions:
                raise DataError(
                    f"its vectors have {chunk.shape[1]} dimensions, those of the model {dimensions}",
                    where=str(path), hint="embed the library with the same model",
                )  # fmt: skip
            target.write(np.ascontiguousarray(chunk, np.float32).tobytes())
            valid = int(has_embedding(chunk).sum())
            count, empty = count + valid, empty + len(chunk) - valid
    return count, empty


def vector_chunks(path: Path, size: int) -> Iterator[NDArray[np.float32]]:
    """The rows of a file of `graphsc embed`, NaN where there is no molecule; .npz files are streamed."""
    if path.suffix != ".npz":
        stored = read_embeddings(path, keep_empty=True).rows
        yield from (stored[start : start + size] for start in range(0, len(stored), size))
        return
    try:
        with zipfile.ZipFile(path) as archive, archive.open("vectors.npy") as member:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0
            if version[0] > 1:
                read = np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(member)
            if len(shape) != 2 or fortran or dtype.kind != "f":
                raise ValueError("vectors are not a table of numbers")
            for start in range(0, shape[0], size):
                count = min(size, shape[0] - start)
                content = member.read(count * shape[1] * dtype.itemsize)
                yield np.frombuffer(content, dtype).reshape(count, shape[1]).astype(np.float32)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"not a file of embeddings: {error}", where=str(path), hint="write one with graphsc embed"
        ) from error


def _vector_ids(path: Path) -> Sequence[int | str]:
    if path.suffix != ".npz":
        return read_embeddings(path, keep_empty=True).ids
    with np.load(path) as stored:
        ids: list[int | str] = stored["ids"].tolist()
    return ids


def _hits(
    hits: NDArray[np.int64],
    numbers: NDArray[np.int64] | None,
    ids: Sequence[int | str] | None,
    molecules: Source | None,
    title: str,
) -> Embedded:
    """The molecules that were found, read again from their table; by id alone where there is none."""
    empty = np.zeros((len(hits), 0), np.float32)
    known = [str(place) for place in hits.tolist()] if ids is None else [ids[k] for k in hits.tolist()]
    if molecules is None:
        return Embedded(title, empty, known, None)
    places = hits if numbers is None else numbers[hits]
    wanted = {int(row): place for place, row in enumerate(places.tolist())}
    rows = [row for row in molecules.rows() if row.number in wanted]
    smiles = [row.smiles for row in rows]
    if len(rows) != len(hits):
        raise DataError("the table has other rows than the vectors", where=molecules.where)
    found = read_molecules(smiles)
    if len(found.smiles) != len(rows):
        raise DataError("a vector belongs to a row that is no molecule", where=molecules.where)
    if ids is None:
        known = [str(row.number) if row.id is None else row.id for row in rows]
    return Embedded(title, empty, known, found.collection, smiles=smiles)


_PLAN = Plan("library", "auto", (), {}, False, MAX_ATOMS, MAX_LENGTH)


@dataclass(frozen=True)
class Outliers:
    """How far each graph is from its nearest ones, the farthest first."""

    source: Embedded
    order: NDArray[np.int64]
    scores: NDArray[np.float64]  # mean distance to the k nearest, per graph
    flagged: NDArray[np.bool_]  # beyond three interquartile ranges above the upper quartile
    nearest: NDArray[np.int64]
    k: int

    def table(self) -> Table:
        """One row per graph, the most unusual first."""
        rows = tuple(
            (
                str(self.source.ids[index]),
                float(self.scores[index]),
                "yes" if self.flagged[index] else "no",
                str(self.source.ids[self.nearest[index]]),
            )
            for index in self.order.tolist()
        )
        return Table(("id", "score", "outlier", "nearest"), rows, "Outliers", align="lrll")


def find_outliers(source: Embedded, *, k: int = 8) -> Outliers:
    """Score graphs by their mean distance to their k nearest ones."""
    if k < 1:
        raise ConfigError(f"k is {k}", hint="use 1 or more")
    index, distance = nearest(source.rows, k)
    if not distance.size:
        raise DataError("an outlier needs other graphs to be far from", hint="give two graphs or more")
    scores = distance.mean(axis=1, dtype=np.float64)
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[far_from_all(distance)] = True
    order = np.argsort(-scores, kind="stable")
    return Outliers(source, order, scores, flagged, index[:, 0], distance.shape[1])


@dataclass(frozen=True)
class Clusters:
    """Groups of graphs by k-means, numbered from 1, the largest first."""

    source: Embedded
    cluster: NDArray[np.int64]
    distance: NDArray[np.float64]  # to the centre of the own cluster
    silhouette: float
    tried: dict[int, float]  # silhouette by number of clusters, where the number was chosen

    @property
    def number(self) -> int:
        return int(self.cluster.max())

    def table(self) -> Table:
        """One row per graph, in the order of the source."""
        rows = tuple(
            (str(identity), int(cluster), float(distance))
            for identity, cluster, distance in zip(self.source.ids, self.cluster, self.distance, strict=True)
        )
        return Table(("id", "cluster", "distance"), rows, "Clusters")


def cluster_graphs(source: Embedded, *, clusters: int | None = None, seed: int = 0) -> Clusters:
    """Group graphs by k-means of their standardised embeddings.

    Args:
        source: The graphs.
        clusters: The number of groups; by default the one from 2 to 10 with the best silhouette.
        seed: Of k-means.
    """
    found = find_clusters(source.rows, clusters, seed=seed)
    return Clusters(source, found.cluster, found.distance, found.silhouette, found.tried)


# Pages


def similar_page(found: Similar) -> Report:
    """A gallery per query: the query first, then its nearest graphs."""
    shown = range(min(SHOWN_QUERIES, len(found.queries.ids)))
    galleries = []
    for query in shown:
        near = [index for index in found.neighbours[query].tolist() if index >= 0]
        cards = [
            *_cards(found.queries, [query], [{"": "query"}]),
            *_cards(found.source, near, [{"distance": f"{d:.3f}"} for d in found.distances[query].tolist()]),
        ]
        galleries.append(ReportGallery(f"Similar to {found.queries.ids[query]}", cards))
    total = len(found.queries.ids)
    notes = [*found.source.notes, DISTANCE]
    if total > len(shown):
        notes.append(f"The page shows {len(shown)} of {total:,} queries; the table has all.")
    return Report(
        title=f"Similar graphs in {found.source.title}",
        lead=f"The {found.neighbours.shape[1]} nearest of "
        f"{found.searched or len(found.source.ids):,} graphs to each query.",
        galleries=galleries,
        notes=notes,
    )


def outliers_page(found: Outliers, most: int = 20) -> Report:
    """The graphs that are farthest from all others, drawn beside their nearest graph's name."""
    shown = found.order[:most].tolist()
    facts = [
        {
            "distance to nearest": f"{found.scores[index]:.3f}",
            "nearest": str(found.source.ids[found.nearest[index]]),
            "outlier": "yes" if found.flagged[index] else "no",
        }
        for index in shown
    ]
    count = int(found.flagged.sum())
    usual = float(np.median(found.scores))
    return Report(
        title=f"Outliers in {found.source.title}",
        lead=f"{count:,} of {len(found.source.ids):,} graphs are unusually far from their nearest ones.",
        galleries=[
            ReportGallery(f"The {len(shown)} most unusual graphs", _cards(found.source, shown, facts))
        ],
        notes=[
            *found.source.notes,
            f"The score of a graph is its mean distance to its {found.k} nearest graphs; the median is "
            f"{usual:.3f}. An outlier is more than three interquartile ranges above the upper quartile.",
            DISTANCE,
        ],
    )


def clusters_page(found: Clusters, seed: int = 0) -> Report:
    """A map coloured by cluster, a table of sizes, and the most typical graphs of each cluster."""
    source, galleries, rows = found.source, [], []
    for number in range(1, found.number + 1):
        members = np.flatnonzero(found.cluster == number)
        typical = members[np.argsort(found.distance[members], kind="stable")][:SHOWN_GRAPHS].tolist()
        facts = [{"distance to centre": f"{found.distance[index]:.3f}"} for index in typical]
        galleries.append(
            ReportGallery(f"Cluster {number}: {len(members):,} graphs", _cards(source, typical, facts),
                          "The graphs nearest to its centre.")
        )  # fmt: skip
        rows.append([str(number), f"{len(members):,}", *_composition(source, members)])
    sample = np.arange(len(source.rows))
    if len(sample) > MAP_GRAPHS:
        sample = np.sort(numpy_generator(seed, "sample of a map").permutation(len(sample))[:MAP_GRAPHS])
    figure = map_figure(
        {"graphs": project(source.rows[sample], seed)}, [f"cluster {found.cluster[k]}" for k in sample]
    )
    classes = bool(rows) and len(rows[0]) > 2
    chosen = ""
    if found.tried:
        tried = ", ".join(f"{number}: {value:.2f}" for number, value in found.tried.items())
        chosen = f" The number of clusters has the best silhouette of those tried ({tried})."
    return Report(
        title=f"Clusters of {source.title}",
        lead=f"{found.number} clusters of {len(source.ids):,} graphs, silhouette {found.silhouette:.2f}.",
        tables=[ReportTable("Clusters", ["Cluster", "Graphs", *(["Classes"] if classes else [])], rows)],
        figures=[ReportFigure("Map of the graphs", svg_of(figure), "t-SNE, coloured by cluster.")],
        galleries=galleries,
        notes=[
            *source.notes,
            "The silhouette is 1 for separate clusters and 0 for overlapping ones; below 0.1 there are "
            f"hardly any groups.{chosen}",
            DISTANCE,
        ],
    )


def _composition(source: Embedded, members: NDArray[np.int64]) -> list[str]:
    """The classes of some graphs with their counts; nothing where graphs have no classes."""
    named = next((colouring for colouring in source.colourings if colouring.codes is not None), None)
    if named is None or named.codes is None:
        return []
    counts = np.bincount(named.codes[members], minlength=len(named.names))
    return [", ".join(f"{named.names[k]}: {counts[k]:,}" for k in np.argsort(-counts) if counts[k])]


def _cards(source: Embedded, index: Sequence[int], facts: Sequence[dict[str, str]]) -> list[ReportCard]:
    """Graphs with drawings where they are known and small enough."""
    pictures = [""] * len(index)
    if source.collection is not None and len(index):
        graphs = source.collection[np.asarray(index)]
        if not is_molecular(graphs) or importlib.util.find_spec("rdkit") is not None:
            pictures = graph_svgs(graphs)
    cards = []
    for place, own, svg in zip(index, facts, pictures, strict=False):
        said = {name: text for name, text in own.items() if name}
        for colouring in source.colourings[:1]:
            if colouring.codes is not None:
                said[colouring.title] = colouring.names[colouring.codes[place]]
            elif colouring.numbers is not None and not np.isnan(colouring.numbers[place]):
                said[colouring.title] = f"{colouring.numbers[place]:g}"
        if source.smiles is not None:
            said["SMILES"] = source.smiles[place]
        title = str(source.ids[place]) + (f" ({own['']})" if "" in own else "")
        if not svg and source.collection is not None:
            said["size"] = f"more than {MAX_NODES} nodes or {MAX_EDGES} edges, not drawn"
        cards.append(ReportCard(title, said, svg))
    return cards


def _subset(source: Embedded, index: NDArray[np.int64]) -> Embedded:
    return replace(
        source,
        rows=source.rows[index],
        ids=[source.ids[k] for k in index.tolist()],
        collection=None if source.collection is None else source.collection[index],
        colourings=[
            replace(
                colouring,
                codes=None if colouring.codes is None else colouring.codes[index],
                numbers=None if colouring.numbers is None else colouring.numbers[index],
            )
            for colouring in source.colourings
        ],
        smiles=None if source.smiles is None else [source.smiles[k] for k in index.tolist()],
    )
