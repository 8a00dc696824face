"""Makes the interactive map of a run or of a file of embeddings."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError, GraphscError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import stored_kind
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rejected import common_reasons
from graphsc.data.molecules.rows import open_rows
from graphsc.data.readers import find_reader, open_collection
from graphsc.evaluation.neighbours import nearest
from graphsc.experiments.run_evaluation import OtherGraphsError, evaluated_run, rows_by_epoch
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.delivered import mean_and_spread
from graphsc.finetuning.model import load_predictor, predictors_of
from graphsc.report.drawings import MAX_NODES, Draw, draw_all, is_molecular
from graphsc.report.explorer import (
    Colouring,
    Explorer,
    by_cell,
    by_name,
    by_number,
    colourings_of,
    edge_counts,
)
from graphsc.report.projection import ProjectionMethod, kernel_pca, project
from graphsc.training.embed_io import read_embeddings
from graphsc.training.model_io import (
    available_models,
    find_model,
    fine_tuned_files,
    fraction_folders,
    load_model,
)

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
    smiles: Sequence[str] | None = None  # as in the source
    left_out: int = 0  # rows of the source without an embedding


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
    """Make the map of a run's folder, of a file of embeddings, or of any graphs by a model.

    Args:
        source: A run folder, also of fine-tuning; a file of embeddings; a model file or a model's name.
        data: The graphs, for a file of embeddings, a model, or a run that cannot find them itself. Other
            graphs than those of the run are embedded with its model.
        way: The projection.
        attributes: A CSV file with a column `id`; graphs can be coloured by its other columns.
        judge: Whether the classes of a run without a result are predicted.
        most: The number of graphs above which a random sample is shown.
        seed: Seed of the map and of the sample.
        draw: Makes the drawing of a graph, instead of the default one.
    """
    path = Path(source)
    if fine_tuned_files(path) or _is_model(path):
        embedded = _from_model(path, data)
    elif path.is_dir():
        try:
            embedded = _from_run(path, data, judge)
        except OtherGraphsError:
            if data is None:
                raise
            embedded = _from_model(path, data)
            other = "These are not the graphs that the run was trained on; its model has embedded them."
            embedded = replace(embedded, notes=(other, *embedded.notes))
    else:
        embedded = _from_file(path, data)
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
    outliers = far_from_all(distances)
    if len(outliers):
        notes.append(
            f"{len(outliers):,} graphs are flagged as outliers: the mean distance to their nearest graphs is "
            "more than three interquartile ranges above the upper quartile."
        )
    shown_colourings = [_subset(colouring, shown) for colouring in colourings]
    if distances.size:
        shown_colourings.append(by_number("distance to nearest", distances.mean(axis=1)))
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
        colourings=shown_colourings,
        sizes=None if graphs is None else np.stack([np.diff(graphs.node_ptr), edge_counts(graphs)], axis=1),
        drawings=None if graphs is None else draw_all(graphs, draw),
        outliers=outliers.tolist(),
        smiles=None if graphs is None else _smiles(embedded, graphs, shown),
        notes=notes,
        left_out=embedded.left_out,
    )


def far_from_all(distances: NDArray[np.floating]) -> NDArray[np.int64]:
    """Rows whose mean distance to their nearest ones (N x k) is beyond Tukey's outer fence."""
    if distances.size == 0:
        return np.zeros(0, np.int64)
    mean = distances.mean(axis=1)
    low, high = np.quantile(mean, [0.25, 0.75])
    return np.flatnonzero(mean > high + 3 * (high - low))


def _source_smiles(source: object, collection: GraphCollection) -> list[str] | None:
    """The SMILES of these molecules in their table or .smi file; None for other graphs."""
    if not isinstance(source, (str, Path)) or not is_molecular(collection):
        return None
    try:
        reading = find_reader(str(source), None, {})
        if reading.reader != "smiles":
            return None
        column = reading.options.get("smiles_column")
        rows = open_rows(reading.source, smiles_column=None if column is None else str(column))
        lost = {row.row for row in collection.rejected}
        texts = [row.smiles for row in rows.rows() if row.number not in lost]
    except GraphscError:
        return None  # a source that has moved, or whose columns have unusual names
    return texts if len(texts) == len(collection) else None


def _smiles(embedded: Embedded, graphs: GraphCollection, shown: NDArray[np.int64]) -> list[str] | None:
    """The SMILES of the source, or those of the drawn structures; None for graphs that are no molecules."""
    if embedded.smiles is not None:
        return [embedded.smiles[index] for index in shown.tolist()]
    if not is_molecular(graphs) or importlib.util.find_spec("rdkit") is None:
        return None
    from graphsc.report.molecules import smiles_of

    return [smiles_of(graph) if graph.num_nodes <= MAX_NODES else "" for graph in graphs.graphs()]


def _is_model(path: Path) -> bool:
    """Whether this is a model file, or the name of a model."""
    if path.exists():
        return path.is_file() and stored_kind(path) in ("model", "predictor")
    return not path.suffix and len(path.parts) == 1 and path.name in available_models()


def _from_model(path: Path, data: str | GraphCollection | None) -> Embedded:
    """Graphs embedded with a model; those of a fine-tuning run by default, coloured by its predictions."""
    file = find_model(path)
    predictors = (
        [load_predictor(one) for one in predictors_of(path)] if stored_kind(file) == "predictor" else []
    )
    notes = []
    if data is not None:
        collection = data if isinstance(data, GraphCollection) else open_collection(data)
        smiles = _source_smiles(data, collection)
    else:
        molecules = _own_molecules(path)
        collection, smiles = molecules.collection, molecules.smiles
    if len(predictors) > 1:
        notes.append(
            f"Embedded with the encoder of the first of {len(predictors)} seeds; predictions are their mean."
        )
    model = load_model(file)
    colourings = colourings_of(collection)
    if predictors:
        mean, spread = mean_and_spread([predictor.predict(collection) for predictor in predictors])
        what = "probability of" if predictors[0].kind == "classification" else "predicted"
        own = [by_number(f"{what} {task}", mean[:, k]) for k, task in enumerate(predictors[0].tasks)]
        if spread.any():
            own += [
                by_number(f"spread of {task}", spread[:, k]) for k, task in enumerate(predictors[0].tasks)
            ]
        colourings[len(collection.tasks) : len(collection.tasks)] = own  # after the labels, before the sizes
    title = f"{collection.name}, {'fine-tuned' if data is None else f'embedded with {path.name}'}"
    rows = model.embed(collection)
    rows = kernel_pca(rows) if model.gram else rows
    return Embedded(title, rows, list(collection.ids), collection, colourings, tuple(notes), smiles)


def _own_molecules(path: Path) -> MoleculeDataset:
    """The labelled molecules of a fine-tuning run, read again as they were for it."""
    folder = next(reversed(fraction_folders(path).values()), path)
    stored: dict[str, object] = {}
    if folder.is_dir() and RunFolder(folder).config.exists():
        stored = cast(dict[str, object], RunFolder(folder).load_config().get("source") or {})
    if "data" not in stored or "kind" not in stored:
        raise ConfigError("which graphs?", where=str(path), hint="name them with --data")
    options = {key: stored[key] for key in ("labels", "smiles_column", "id_column", "kind", "censored")}
    return read_dataset(str(stored["data"]), **options)  # type: ignore[arg-type]


def _from_run(path: Path, data: str | GraphCollection | None, judge: bool) -> Embedded:
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
        # After the labels, before the sizes.
        colourings[len(collection.tasks) : len(collection.tasks)] = [
            by_name("prediction", predicted), by_name("right or wrong", right),
        ]  # fmt: skip
        notes.append(f"Each graph is predicted when its fold is held out. {result.words}")
    title = f"{collection.name}, {run.method}"
    smiles = _source_smiles(run.config.get("source") if data is None else data, collection)
    return Embedded(title, rows, list(collection.ids), collection, colourings, tuple(notes), smiles)


def _from_file(path: Path, data: str | GraphCollection | None) -> Embedded:
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
    collection = open_collection(data)
    smiles = _source_smiles(data, collection)
    positions = _positions(ids, [str(identity) for identity in collection.ids], str(path))
    collection = collection[positions]
    return Embedded(
        collection.name, rows, list(collection.ids), collection, colourings_of(collection), tuple(notes),
        smiles=None if smiles is None else [smiles[index] for index in positions.tolist()],
        left_out=stored.left_out,
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
