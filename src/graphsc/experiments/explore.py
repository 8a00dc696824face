"""Makes the interactive map of a run or of a file of embeddings."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError, GraphscError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import stored_kind
from graphsc.data.collection import GraphCollection, Subset
from graphsc.data.molecules.rejected import Rejected, common_reasons
from graphsc.data.molecules.rows import open_rows
from graphsc.data.readers import find_reader, open_collection
from graphsc.data.readers.csv import decimal_point, has_decimal_commas, separator_of
from graphsc.evaluation.neighbours import nearest
from graphsc.experiments.run_evaluation import evaluated_run, graphs_of, rows_by_epoch
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.property_model import load_property_model
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
from graphsc.training.distributed import pick_device
from graphsc.training.embedding_files import ENDINGS, read_embeddings
from graphsc.training.model_files import find_model, fine_tuned_files, fraction_folders
from graphsc.training.model_io import load_model

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
    smiles: Sequence[str] | None = None  # as in the source


def explore(
    source: str | Path,
    data: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    way: ProjectionMethod = "tsne",
    attributes: str | Path | None = None,
    evaluate: bool = False,
    most: int = MOST,
    seed: int = 0,
    draw: Draw | None = None,
    device: str | torch.device = "auto",
) -> Explorer:
    """Make the map of a run's folder, of a file of embeddings, or of graphs that a model embeds.

    Args:
        source: A run folder, also of fine-tuning; a file of embeddings; or a model by path or name, which
            embeds `data`.
        data: The graphs, for a file of embeddings, a model, or a run that cannot find them itself. Other
            graphs than those of the run are embedded with its model.
        reader: The reader of `data`; by default guessed, or that of the run.
        options: Options of the reader, likewise.
        way: The projection.
        attributes: A CSV file with a column `id`; graphs can be coloured by its other columns.
        evaluate: Whether the classes of a run without a result are predicted.
        most: The number of graphs above which a random sample is shown.
        seed: Seed of the map and of the sample.
        draw: Makes the drawing of a graph, instead of the default one.
        device: Where a model embeds, as in `Model.to`.
    """
    embedded = embeddings_of(source, data, reader=reader, options=options, evaluate=evaluate, device=device)
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


def embeddings_of(
    source: str | Path,
    data: str | GraphCollection | None = None,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    evaluate: bool = False,
    device: str | torch.device = "auto",
) -> Embedded:
    """The embeddings of a run, of a file, or of graphs that a model embeds; arguments as for `explore`."""
    path, given = Path(source), dict(options or {})
    if path.suffix in ENDINGS:
        return _from_file(path, data, reader, given)
    if fine_tuned_files(path) or stored_kind(path) == "predictor":
        return _from_fine_tuned(path, data, reader, given, device)
    graphs = None if data is None else _graphs_of_run(path, data, reader, given)
    if data is not None and graphs is None:
        return _from_model(source, data, reader, given, device)
    if path.is_dir():
        return _from_run(path, graphs, evaluate)
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
    source: str | Path,
    data: str | GraphCollection,
    reader: str | None,
    options: dict[str, object],
    device: str | torch.device,
) -> Embedded:
    model = load_model(find_model(source), device)
    collection = open_collection(data, reader=reader, **options)
    rows = model.embed(collection)
    if model.gram and rows.shape[0] != rows.shape[1]:
        raise ConfigError(
            f"{model.recipe.method} has kernel values with its own graphs, not among these",
            hint="fit it on these graphs, or use a method with embeddings",
        )
    rows = kernel_pca(rows) if model.gram else rows
    notes = [f"{model.recipe.method} on {collection.name}."]
    if Path(source).is_dir():
        notes.append("These are not the graphs that the run was trained on; its model has embedded them.")
    notes += _about_rejected(collection.rejected, len(collection))
    title = f"{collection.name}, {model.recipe.method}"
    return Embedded(
        title, rows, list(collection.ids), collection, colourings_of(collection), tuple(notes),
        len(collection.rejected), _source_smiles(data, reader, options, collection),
    )  # fmt: skip


def _about_rejected(rejected: Sequence[Rejected], graphs: int) -> list[str]:
    """A note on the rows of a source that hold no graph."""
    if not rejected:
        return []
    reasons = "; ".join(f"{r} ({n:,})" for r, n in common_reasons(row.reason for row in rejected))
    total = graphs + len(rejected)
    return [f"{len(rejected):,} of {total:,} rows have no embedding and are left out: {reasons}."]


def _from_fine_tuned(
    path: Path,
    data: str | GraphCollection | None,
    reader: str | None,
    options: dict[str, object],
    device: str | torch.device,
) -> Embedded:
    """Molecules by a fine-tuned model, its own by default, coloured by its predictions."""
    if data is not None:
        collection = open_collection(data, reader=reader, **options)
        smiles = _source_smiles(data, reader, options, collection)
    else:
        molecules = _own_molecules(path)
        collection, smiles = molecules.collection, molecules.smiles
    first = load_property_model(path, device=pick_device(device))
    if not first.predictors:
        raise ConfigError(
            "this run has no fine-tuned encoder to embed with", where=str(path),
            hint="give pre-trained weights, such as graphsc-plus-molecules",
        )  # fmt: skip
    notes = _about_rejected(collection.rejected, len(collection))
    if first.count > 1:
        notes.append(
            f"Embedded with the encoder of the first of {len(first.predictors)} seeds; predictions are of "
            f"all {first.count} models."
        )
    texts = smiles
    if texts is None:
        from graphsc.report.molecules import smiles_of

        texts = [smiles_of(graph) for graph in collection.graphs()]
    mean, spread = first.predict(collection, texts)
    what = "probability of" if first.kind == "classification" else "predicted"
    own = [by_number(f"{what} {task}", mean[:, k]) for k, task in enumerate(first.tasks)]
    if spread.any():
        own += [by_number(f"spread of {task}", spread[:, k]) for k, task in enumerate(first.tasks)]
    colourings = colourings_of(collection)
    colourings[len(collection.tasks) : len(collection.tasks)] = own  # after the labels, before the sizes
    return Embedded(
        f"{collection.name}, fine-tuned", load_model(find_model(path), device).embed(collection),
        list(collection.ids), collection, colourings, tuple(notes), len(collection.rejected), smiles,
    )  # fmt: skip


def _own_molecules(path: Path) -> MoleculeDataset:
    """The labelled molecules of a fine-tuning run, read again as they were for it."""
    folder = next(reversed(fraction_folders(path).values()), path)
    stored: dict[str, object] = {}
    if folder.is_dir() and RunFolder(folder).config.exists():
        stored = cast(dict[str, object], RunFolder(folder).load_config().get("source") or {})
    if "data" not in stored or "kind" not in stored:
        raise ConfigError("which molecules?", where=str(path), hint="name them with --data")
    options = {
        key: value
        for key, value in stored.items()
        if key not in ("data", "weights", "rows", "notes", "model")
    }
    return read_dataset(str(stored["data"]), **options)  # type: ignore[arg-type]


def far_from_all(distances: NDArray[np.floating]) -> NDArray[np.int64]:
    """Rows whose mean distance to their nearest ones (N x k) is beyond Tukey's outer fence."""
    if distances.size == 0:
        return np.zeros(0, np.int64)
    mean = distances.mean(axis=1)
    low, high = np.quantile(mean, [0.25, 0.75])
    return np.flatnonzero(mean > high + 3 * (high - low))


def _source_smiles(
    source: object, reader: str | None, options: Mapping[str, object], collection: GraphCollection
) -> list[str] | None:
    """The SMILES of these molecules in their table or file; None for other graphs."""
    if not isinstance(source, (str, Path)) or not is_molecular(collection):
        return None
    try:
        reading = find_reader(str(source), reader, options)
        if reading.reader != "smiles":
            return None
        known = ("smiles_column", "id_column", "separator", "decimal")
        rows = open_rows(reading.source, **{key: reading.options.get(key) for key in known})  # type: ignore[arg-type]
        lost = {row.row for row in collection.rejected}
        texts = [row.smiles for row in rows.rows() if row.number not in lost]
    except GraphscError:
        return None  # a source that has moved
    return texts if len(texts) == len(collection) else None


def _smiles(embedded: Embedded, graphs: GraphCollection, shown: NDArray[np.int64]) -> list[str] | None:
    """The SMILES of the source, or those of the drawn structures; None for graphs that are no molecules."""
    if embedded.smiles is not None:
        return [embedded.smiles[index] for index in shown.tolist()]
    if not is_molecular(graphs) or importlib.util.find_spec("rdkit") is None:
        return None
    from graphsc.report.molecules import smiles_of

    return [smiles_of(graph) if graph.num_nodes <= MAX_NODES else "" for graph in graphs.graphs()]


def _from_run(path: Path, graphs: GraphCollection | None, evaluate: bool) -> Embedded:
    run = evaluated_run(path, graphs, evaluate=evaluate)
    collection, result = run.collection, run.result
    by_epoch, gram = rows_by_epoch(run.folder, collection)
    rejected = collection.rejected
    if isinstance(collection, Subset):  # of a pre-training run; drawings need arrays of its own
        collection, rejected = collection.copy(), ()
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
    notes += _about_rejected(rejected, len(collection))
    title = f"{collection.name}, {run.method}"
    smiles = None
    if (reading := cast("Mapping[str, object] | None", run.config.get("reading"))) is not None:
        given = cast("Mapping[str, object]", reading.get("options") or {})
        smiles = _source_smiles(
            reading.get("path") or reading["source"],
            cast("str | None", reading.get("reader")),
            given,
            collection,
        )
    return Embedded(
        title, rows, list(collection.ids), collection, colourings, tuple(notes), len(rejected), smiles
    )


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
    smiles = _source_smiles(data, reader, options, collection)
    positions = _positions(ids, [str(identity) for identity in collection.ids], str(path))
    collection = collection[positions]
    return Embedded(
        collection.name, rows, list(collection.ids), collection, colourings_of(collection), tuple(notes),
        stored.left_out, None if smiles is None else [smiles[index] for index in positions.tolist()],
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
    """The columns of a CSV file, joined by its column `id`; graphs that are not in it have no value.

    The separator and decimal commas are detected. Rows that share an id must be equal.
    """
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = list(csv.DictReader(file, delimiter=separator_of(path, None)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read attributes: {error}", where=str(path)) from error
    if not lines or "id" not in lines[0]:
        found = f"; its columns are {', '.join(filter(None, lines[0]))}" if lines else ""
        raise DataError(
            f"a file of attributes needs a column id and at least one row{found}", where=str(path)
        )
    names = [name for name in lines[0] if name and name != "id"]
    for name in names:
        cells = [(line[name] or "").strip() for line in lines]
        try:
            commas = has_decimal_commas(cells, None, name, str(path))
        except DataError:
            continue  # perhaps thousands: shown as they are
        if commas:
            for line, cell in zip(lines, cells, strict=True):
                line[name] = decimal_point(cell)
    by_id: dict[str, dict[str, str]] = {}
    for line in lines:
        if by_id.setdefault(line["id"], line) != line:
            raise DataError(
                f"two rows of attributes have the id {line['id']!r} and other values", where=str(path),
                hint="leave one of them out",
            )  # fmt: skip
    return [
        by_cell(name, [by_id.get(str(identity), {}).get(name) or "" for identity in ids]) for name in names
    ]


def _subset(colouring: Colouring, shown: NDArray[np.int64]) -> Colouring:
    return replace(
        colouring,
        codes=None if colouring.codes is None else colouring.codes[shown],
        numbers=None if colouring.numbers is None else colouring.numbers[shown],
    )
