"""Makes the interactive map of a run or of a file of embeddings."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection, Subset
from graphsc.data.molecules.rejected import common_reasons
from graphsc.data.readers import open_collection
from graphsc.evaluation.neighbours import nearest
from graphsc.experiments.run_evaluation import evaluated_run, graphs_of, rows_by_epoch
from graphsc.report.drawings import Draw, draw_all
from graphsc.report.explorer import Colouring, Explorer, by_cell, by_name, colourings_of, edge_counts
from graphsc.report.projection import ProjectionMethod, kernel_pca, project
from graphsc.training.embed_io import ENDINGS, read_embeddings
from graphsc.training.model_io import find_model, load_model

MOST = 20_000  # graphs on one map; more points cover each other, and take long to place
_PROJECTIONS = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}


@dataclass(frozen=True)
class Embedded:
    """Embeddings with their graphs, if they are given, and the columns that they can be coloured by."""

    title: str
    rows: NDArray[np.float32]
    ids: Sequence[int | str]
    collection: GraphCollection | None
    colourings: Sequence[Colouring] = ()
    notes: tuple[str, ...] = ()
    left_out: int = 0  # rows of the source without an embedding


def explore(
    source: str | Path,
    data: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    way: ProjectionMethod = "tsne",
    attributes: str | Path | None = None,
    judge: bool = False,
    most: int = MOST,
    seed: int = 0,
    draw: Draw | None = None,
) -> Explorer:
    """Make the map of a run's folder, of a file of embeddings, or of graphs that a model embeds.

    Args:
        source: A run folder, a file of embeddings, or a model by path or name, which embeds `data`.
        data: The graphs, for a file of embeddings, a model or a run that cannot find them itself.
        reader: The reader of `data`; by default guessed, or that of the run.
        options: Options of the reader, likewise.
        way: The projection.
        attributes: A CSV file with a column `id`; graphs can be coloured by its other columns.
        judge: Whether the classes of a run without a result are predicted.
        most: The number of graphs above which a random sample is shown.
        seed: Seed of the map and of the sample.
        draw: Makes the drawing of a graph, instead of the default one.
    """
    embedded = embeddings_of(source, data, reader=reader, options=options, judge=judge)
    colourings = list(embedded.colourings)
    if attributes is not None:
        colourings += read_attributes(Path(attributes), embedded.ids)
    shown, notes = np.arange(len(embedded.rows)), list(embedded.notes)
    if len(shown) > most:
        shown = np.sort(numpy_generator(seed, "explorer sample").permutation(len(shown))[:most])
        notes.append(f"A random sample: {most:,} of {len(embedded.rows):,} graphs.")
    rows = embedded.rows[shown]
    graphs = None if embedded.collection is None else embedded.collection[shown]
    neighbours, distances = nearest(rows)
    notes.append(
        f"The map is {_PROJECTIONS[way]} of {rows.shape[1]} dimensions, standardised. Graphs near each other "
        "are similar; long distances, sizes of groups and empty space mean little. The nearest graphs are "
        "computed in all dimensions, not on the map."
    )
    return Explorer(
        title=embedded.title,
        ids=[embedded.ids[index] for index in shown.tolist()],
        positions=project(rows, seed, way),
        neighbours=neighbours,
        distances=distances,
        colourings=[_subset(colouring, shown) for colouring in colourings],
        sizes=None if graphs is None else np.stack([np.diff(graphs.node_ptr), edge_counts(graphs)], axis=1),
        drawings=None if graphs is None else draw_all(graphs, draw),
        notes=notes,
        left_out=embedded.left_out,
    )


def embeddings_of(
    source: str | Path,
    data: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    judge: bool = False,
) -> Embedded:
    """The embeddings of a run, of a file, or of graphs that a model embeds; arguments as for `explore`."""
    path, given = Path(source), dict(options or {})
    if path.suffix in ENDINGS:
        return _from_file(path, data, reader, given)
    graphs = None if data is None else _graphs_of_run(path, data, reader, given)
    if data is not None and graphs is None:
        return _from_model(source, data, reader, given)
    if path.is_dir():
        return _from_run(path, graphs, judge)
    find_model(source)  # names what there is, if this is no model either
    raise ConfigError(f"{source} is a model, and a map needs graphs", hint="name them with --data")


def _graphs_of_run(
    path: Path, data: str | GraphCollection, reader: str | None, options: Mapping[str, object]
) -> GraphCollection | None:
    """The graphs, if the path is a run folder and they are those it was trained on."""
    if not path.is_dir() or "transfer" in (config := RunFolder(path).load_config()):
        return None
    try:
        return graphs_of(config, data, reader=reader, options=options)
    except (ConfigError, DataError):
        return None


def _from_model(
    source: str | Path, data: str | GraphCollection, reader: str | None, options: dict[str, object]
) -> Embedded:
    model = load_model(find_model(source))
    collection = open_collection(data, reader=reader, **options)
    rows = model.embed(collection)
    rows = kernel_pca(rows) if model.gram else rows
    lost = collection.rejected
    notes = [f"{model.recipe.method} on {collection.name}."]
    if lost:
        reasons = "; ".join(f"{r} ({n:,})" for r, n in common_reasons(row.reason for row in lost))
        total = len(collection) + len(lost)
        notes.append(f"{len(lost):,} of {total:,} rows have no embedding and are left out: {reasons}.")
    title = f"{collection.name}, {model.recipe.method}"
    return Embedded(
        title, rows, list(collection.ids), collection, colourings_of(collection), tuple(notes), len(lost)
    )


def _from_run(path: Path, graphs: GraphCollection | None, judge: bool) -> Embedded:
    run = evaluated_run(path, graphs, evaluate=judge)
    collection, result = run.collection, run.result
    by_epoch, gram = rows_by_epoch(run.folder, collection)
    if isinstance(collection, Subset):  # of a pre-training run; drawings need arrays of its own
        collection = collection.copy()
    epoch = max(by_epoch)
    rows = kernel_pca(by_epoch[epoch]) if gram else by_epoch[epoch]
    colourings = colourings_of(collection)
    notes = [f"{run.method} on {collection.name}" + (f", after {epoch} epochs." if epoch else ".")]
    if result is not None:
        predicted = [result.classes[code] for code in result.predictions]
        right = np.where(result.predictions == result.labels, "right", "wrong").tolist()
        # After the labels, before the sizes.
        colourings[len(collection.tasks) : len(collection.tasks)] = [
            by_name("prediction", predicted), by_name("right or wrong", right),
        ]  # fmt: skip
        notes.append(f"Each graph is predicted when its fold is held out. {result.words}")
    title = f"{collection.name}, {run.method}"
    return Embedded(title, rows, list(collection.ids), collection, colourings, tuple(notes))


def _from_file(
    path: Path, data: str | GraphCollection | None, reader: str | None, options: dict[str, object]
) -> Embedded:
    stored = read_embeddings(path)
    rows, ids = stored.rows, stored.ids
    notes = []
    if stored.left_out:
        reasons = "; ".join(f"{reason} ({count:,})" for reason, count in common_reasons(stored.reasons))
        lost = (
            f"{stored.left_out:,} of {stored.left_out + len(ids):,} rows have no embedding and are left out"
        )
        notes.append(f"{lost}: {reasons}." if reasons else f"{lost}.")
    if data is None:
        notes.append("No graphs were given, so none are drawn.")
        return Embedded(path.stem, rows, ids, None, notes=tuple(notes), left_out=stored.left_out)
    collection = open_collection(data, reader=reader, **options)
    collection = collection[_positions(ids, [str(identity) for identity in collection.ids], str(path))]
    return Embedded(
        collection.name, rows, list(collection.ids), collection, colourings_of(collection), tuple(notes),
        stored.left_out,
    )  # fmt: skip


def _positions(ids: Sequence[int | str], known: Sequence[str], where: str) -> NDArray[np.int64]:
    """The position of each id among the known ones.

    Raises:
        DataError: Where graphs share ids and positions are ambiguous.
        ConfigError: Where an id is unknown.
    """
    names = [str(identity) for identity in ids]
    if names == list(known):
        return np.arange(len(names))
    places = {name: position for position, name in enumerate(known)}
    if len(places) < len(known):
        raise DataError("graphs share ids, and the embeddings are not in their order", where=where)
    unknown = [name for name in names if name not in places]
    if unknown:
        raise ConfigError(
            f"{len(unknown)} of {len(names)} ids are of no graph, {unknown[0][:60]!r} first", where=where,
            hint="give the graphs that were embedded",
        )  # fmt: skip
    return np.array([places[name] for name in names], np.int64)


def read_attributes(path: Path, ids: Sequence[int | str]) -> list[Colouring]:
    """The columns of a CSV file, joined by its column `id`; graphs that are not in it have no value."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read attributes: {error}", where=str(path)) from error
    if not lines or "id" not in lines[0]:
        raise DataError("a file of attributes needs a column id and at least one row", where=str(path))
    by_id = {line["id"]: line for line in lines}
    names = [name for name in lines[0] if name and name != "id"]
    return [
        by_cell(name, [by_id.get(str(identity), {}).get(name) or "" for identity in ids]) for name in names
    ]


def _subset(colouring: Colouring, shown: NDArray[np.int64]) -> Colouring:
    return replace(
        colouring,
        codes=None if colouring.codes is None else colouring.codes[shown],
        numbers=None if colouring.numbers is None else colouring.numbers[shown],
    )
