"""From a run or a file of vectors to a map one can walk in."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.experiments.run_evaluation import evaluated_run, rows_by_epoch
from graphsc.report.drawings import Draw, draw_all
from graphsc.report.explorer import Colouring, Explorer, by_cell, by_name, colourings_of, edge_counts
from graphsc.report.projection import ProjectionMethod, kernel_pca, nearest, project
from graphsc.training.embed_io import read_embeddings

MOST = 20_000  # graphs on one map; beyond, a map is a carpet and takes long to make
_WAYS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}


@dataclass(frozen=True)
class Embedded:
    """Graphs with their vectors, and what is known of them besides."""

    title: str
    rows: NDArray[np.float32]
    ids: Sequence[int | str]
    collection: GraphCollection | None
    colourings: Sequence[Colouring] = ()
    notes: tuple[str, ...] = field(default=())


def explore(
    source: str | Path,
    data: str | GraphCollection | None = None,
    *,
    way: ProjectionMethod = "tsne",
    attributes: str | Path | None = None,
    judge: bool = False,
    most: int = MOST,
    seed: int = 0,
    draw: Draw | None = None,
) -> Explorer:
    """Make the map of a run's folder, or of a file of vectors.

    `data` are the graphs, where a run cannot find them itself or a file should have drawings. `attributes` is
    a CSV file with a column `id`; its other columns can be coloured by. `judge` predicts the classes of a run
    that has no result yet. Of more than `most` graphs a random sample is shown. `draw` makes the drawing
    of a graph, instead of ours.
    """
    path = Path(source)
    found = _of_run(path, data, judge) if path.is_dir() else _of_file(path, data)
    colourings = list(found.colourings)
    if attributes is not None:
        colourings += read_attributes(Path(attributes), found.ids)
    kept, notes = np.arange(len(found.rows)), list(found.notes)
    if len(kept) > most:
        kept = np.sort(numpy_generator(seed, "explorer sample").permutation(len(kept))[:most])
        notes.append(f"A random sample: {most:,} of {len(found.rows):,} graphs.")
    rows = found.rows[kept]
    graphs = None if found.collection is None else found.collection[kept]
    neighbours, distances = nearest(rows)
    notes.append(
        f"The map is {_WAYS[way]} of {rows.shape[1]} dimensions, standardised. Near each other means alike; "
        "far apart, sizes of groups and empty space mean little. The nearest graphs are found in all "
        "dimensions, not on the map."
    )
    return Explorer(
        title=found.title,
        ids=[found.ids[index] for index in kept.tolist()],
        positions=project(rows, seed, way),
        neighbours=neighbours,
        distances=distances,
        colourings=[_taken(colouring, kept) for colouring in colourings],
        sizes=None if graphs is None else np.stack([np.diff(graphs.node_ptr), edge_counts(graphs)], axis=1),
        drawings=None if graphs is None else draw_all(graphs, draw),
        notes=notes,
    )


def _of_run(path: Path, data: str | GraphCollection | None, judge: bool) -> Embedded:
    run = evaluated_run(path, data, evaluate=judge)
    collection, result = run.collection, run.result
    by_epoch, gram = rows_by_epoch(run.folder, collection)
    epoch = max(by_epoch)
    rows = kernel_pca(by_epoch[epoch]) if gram else by_epoch[epoch]
    colourings = colourings_of(collection)
    notes = [f"{run.method} on {collection.name}" + (f", after {epoch} epochs." if epoch else ".")]
    if result is not None:
        predicted = [result.classes[code] for code in result.predictions]
        right = np.where(result.predictions == result.labels, "right", "wrong").tolist()
        # Behind the labels, before sizes.
        colourings[len(collection.tasks) : len(collection.tasks)] = [
            by_name("prediction", predicted), by_name("right or wrong", right),
        ]  # fmt: skip
        notes.append(f"A graph is predicted when its fold is held out. {result.words}")
    title = f"{collection.name}, {run.method}"
    return Embedded(title, rows, list(collection.ids), collection, colourings, tuple(notes))


def _of_file(path: Path, data: str | GraphCollection | None) -> Embedded:
    rows, ids = read_embeddings(path)
    if data is None:
        return Embedded(path.stem, rows, ids, None, notes=("No graphs were given, so none are drawn.",))
    collection = open_collection(data)
    wanted = _positions(ids, [str(identity) for identity in collection.ids], str(path))
    collection = collection[wanted]
    return Embedded(collection.name, rows, list(collection.ids), collection, colourings_of(collection))


def _positions(ids: Sequence[int | str], known: Sequence[str], where: str) -> NDArray[np.int64]:
    """Where the graphs of these ids are; without a doubt, or an error."""
    names = [str(identity) for identity in ids]
    if names == list(known):
        return np.arange(len(names))
    places = {name: position for position, name in enumerate(known)}
    if len(places) < len(known):
        raise DataError("graphs share ids, and the vectors are not in their order", where=where)
    strange = [name for name in names if name not in places]
    if strange:
        raise ConfigError(
            f"{len(strange)} of {len(names)} ids are of no graph, {strange[0][:60]!r} first", where=where,
            hint="give the graphs that were embedded",
        )  # fmt: skip
    return np.array([places[name] for name in names], np.int64)


def read_attributes(path: Path, ids: Sequence[int | str]) -> list[Colouring]:
    """The columns of a CSV file, joined by its column `id`; graphs that it does not name have none."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read attributes: {error}", where=str(path)) from error
    if not lines or "id" not in lines[0]:
        raise DataError("a file of attributes needs a column id and a row", where=str(path))
    by_id = {line["id"]: line for line in lines}
    names = [name for name in lines[0] if name and name != "id"]
    return [by_cell(name, [by_id.get(str(one), {}).get(name) or "" for one in ids]) for name in names]


def _taken(colouring: Colouring, kept: NDArray[np.int64]) -> Colouring:
    return Colouring(
        colouring.title,
        colouring.names,
        None if colouring.codes is None else colouring.codes[kept],
        None if colouring.numbers is None else colouring.numbers[kept],
    )
