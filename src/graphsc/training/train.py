"""Train a method by name on a collection, in a run folder that can be resumed."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from graphsc import __version__
from graphsc.core.config import build
from graphsc.core.errors import ConfigError, DamagedFileError, NotFoundError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rejected import write_rejected
from graphsc.data.molecules.rows import hash_of
from graphsc.data.readers import open_collection
from graphsc.data.readers.csv import write_malformed
from graphsc.encoders import as_encoder, ignored_inputs, reads_edges
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.methods import (
    METHODS,
    AnyMethod,
    FittedMethod,
    TrainedMethod,
    make_recipe,
    training_settings,
)
from graphsc.methods.base import preserved
from graphsc.methods.registry import ENCODER, check_objects, kind_of
from graphsc.training.callbacks import Callback, HealthMetrics, Metrics, Reporter
from graphsc.training.distributed import (
    Distributed,
    make_fabric,
    pick_device,
    pick_precision,
    precision_warning,
)
from graphsc.training.model_io import (
    Model,
    check_finite,
    check_weights,
    find_model,
    load_model,
    run_facts,
    save_model,
)
from graphsc.training.trainer import Trainer, TrainSettings


@dataclass(frozen=True)
class Run:
    """A finished training."""

    model: Model
    metrics: Metrics
    folder: RunFolder | None
    config: dict[str, object]
    rows: NDArray[np.float32] | None = None  # embeddings of the training graphs, if fitting computed them


def train(
    collection: object,
    method: str | TrainedMethod = "graphsc",
    *,
    settings: Mapping[str, object] | None = None,
    preset: str = "default",
    encoder: str | nn.Module = ENCODER,
    training: TrainSettings | Mapping[str, object] | None = None,
    device: str | torch.device = "auto",
    devices: int = 1,
    nodes: int = 1,
    out: str | Path | None = None,
    source: str | None = None,
    reading: Mapping[str, object] | None = None,
    callbacks: Sequence[Callback] = (),
    reporter: Reporter | None = None,
    keep_embeddings: bool = True,
    keep_every_epoch: bool = False,
    weights: NDArray[np.float64] | None = None,
    facts: Mapping[str, object] | None = None,
    start: str | Path | None = None,
) -> Run:
    """Train a method. With `out`, the same call again resumes the run or finds it finished.

    Args:
        collection: The graphs: a collection, or anything else that `open_collection` takes, such as a list
            of PyG graphs. Their labels are removed before the method sees them.
        method: A registered method by name, or an object with its own encoder, which is trained in place.
        settings: The keywords of a method by name, and those of an encoder by name as `encoder.KEY`.
        preset: A preset of a method by name.
        encoder: A registered encoder by name, or a module, which is trained in place: one from batches to
            rows with an attribute `dimensions`, or a PyG module.
        training: Settings of the loop; what a mapping leaves out, and all by default, is the preset's.
        device: `auto`, `cpu`, `cuda`, `cuda:NUMBER`, `mps`, or a device of torch.
        devices: Processes per machine that share every batch.
        nodes: Machines. All of them must see the folder `out`; only the main process writes to it.
        out: The run folder; without it nothing is written.
        source: The source of the graphs as the user gave it, for the stored configuration.
        reading: How the graphs were read (`describe_reading`), by which other verbs read them again.
        callbacks: Called by the trainer.
        reporter: Shows progress and messages; silent by default.
        keep_embeddings: Store the embeddings of all graphs after some epochs. Not for millions of graphs.
        keep_every_epoch: Store them after every epoch.
        weights: How often an epoch has each graph, as in `batches_of_epoch`; once by default.
        facts: More about the graphs, such as the meaning of their weights, for the stored configuration.
        start: A run folder or model file of the same method and settings, whose weights are the initial ones.
    """
    collection = open_collection(collection)
    check_objects(method, encoder)
    if not isinstance(training, TrainSettings):
        own: dict[str, object] = {}
        if isinstance(method, str):
            own = training_settings(method, preset, collection.name, kind_of(collection))
        training = build(TrainSettings, {**own, **(training or {})}, "training")
    kind = METHODS.get(method).kind if isinstance(method, str) else "trained"
    chosen = pick_device(device)
    # Stored as resolved: a machine that would choose otherwise must not resume the run unnoticed.
    training = replace(training, precision=pick_precision(training.precision, chosen))
    fabric = make_fabric(chosen, training.precision, devices, nodes) if kind == "trained" else None
    distributed = Distributed.current() if fabric is None else Distributed.current(fabric.device)
    reporter = reporter if reporter is not None and distributed.is_main else Reporter()
    if reads_edges(method.encoder if isinstance(method, TrainedMethod) else encoder):
        collection = collection.with_edge_features()
    identity = collection.content_hash  # before the labels are removed
    collection = without_labels(collection)
    if isinstance(encoder, nn.Module):
        if isinstance(method, TrainedMethod):
            raise ConfigError("a method that is an object has its own encoder", hint="leave encoder out")
        with torch.random.fork_rng(devices=[]):  # a module may draw its weights when it first runs
            torch.manual_seed(derive_seed(training.seed, "encoder"))
            encoder = as_encoder(encoder, collection.features)
    recipe = make_recipe(method, collection, settings, preset=preset, encoder=encoder)
    if weights is not None and (len(weights) != len(collection) or weights.min() < 0 or weights.max() <= 0):
        raise ConfigError("weights must be one number per graph, none negative and not all zero")
    config: dict[str, object] = {
        "graphsc": __version__,
        "data": {"name": collection.name, "graphs": len(collection), "content_hash": identity,
                 "features": collection.features.name, **(facts or {})},
        **recipe.to_json(),
        "training": {key: value for key, value in training.to_json().items() if key != "epochs"},
        "epochs": training.epochs,
        "device": chosen,
        "source": source,
    }  # fmt: skip
    if reading is not None:
        config["reading"] = dict(reading)
    if distributed.world_size > 1:
        config["ranks"] = distributed.world_size  # random draws depend on it
    built = recipe.build(
        collection.features,
        training.seed,
        encoder=encoder if isinstance(encoder, nn.Module) else None,
        method=method if isinstance(method, TrainedMethod) else None,
    )
    if start is not None:
        config["start"] = _initial_weights(built, start)
    reporter.log(f"{recipe.method} on {collection.name}: {len(collection)} graphs, device {chosen}")
    for note in collection.notes:
        reporter.log(f"note: {note}")
    if isinstance(built, TrainedMethod) and built.trains:
        for words in ignored_inputs(built.encoder, collection):
            other = "; gine does" if words.startswith("edge attributes") else ""
            reporter.log(f"note: the encoder {recipe.encoder} does not use the {words}{other}")
    if fabric is not None and (warning := precision_warning(training.precision, chosen)) is not None:
        reporter.log(f"warning: {warning}")
    folder = None if out is None else RunFolder(out)
    with folder.lock() if folder is not None and distributed.is_main else nullcontext():
        if folder is not None:
            if distributed.is_main:
                folder.save_config(config)
                folder.record_environment(environment(chosen))
                if collection.rejected:
                    write_rejected(folder.path / "rejected.csv", collection.rejected)
                elif collection.rejected_edges:
                    write_malformed(folder.path / "rejected.csv", collection.rejected_edges)
            distributed.barrier()
        if isinstance(built, FittedMethod):
            if folder is not None and folder.model.exists():
                # Fitting is not resumable: the model is there as a whole or not at all.
                reporter.log("this run is finished")
                return Run(load_model(folder.model), Metrics(None), folder, config)
            metrics, rows = Metrics(None), built.fit(collection, training.seed)
            # A Gram matrix can be recomputed from the model and grows with the square of the graphs.
            if folder is not None and kind == "fitted":
                store_embeddings(folder, 0, rows, identity)
        else:
            assert fabric is not None  # noqa: S101 - trained methods have one
            first: list[Callback] = [HealthMetrics()]
            if folder is not None and keep_embeddings:
                first.append(SaveEmbeddings(folder, collection, identity, keep_every_epoch))
            trainer = Trainer(
                built, collection, training, fabric, recipe.method,
                None if folder is None else folder.checkpoints, None if folder is None else folder.metrics,
                reporter, [*first, *callbacks], weights,
            )  # fmt: skip
            metrics, rows = trainer.run(), None
            finish(built, collection)
            check_finite(built, recipe.method)
            built.eval()
        if folder is not None:
            if distributed.is_main:
                save_model(folder.model, built, recipe, collection.features, run_facts(config))
            distributed.barrier()
    return Run(Model(built, recipe, collection.features), metrics, folder, config, rows)


def _initial_weights(method: AnyMethod, source: str | Path) -> str:
    """Give a method the weights of a model; returns the hash of its file.

    Raises:
        ConfigError: The model is packed, fitted, or of other settings.
    """
    path = find_model(source)
    if not path.exists():
        raise NotFoundError("there is no run folder, model file or model", where=str(source))
    tensors, facts = load_tensors(path, "model")
    if not isinstance(method, TrainedMethod) or facts.get("part") is not None or "dtypes" in facts:
        raise ConfigError(
            "these weights cannot be trained further: they are packed, or fitted in one call",
            where=str(path), hint="give the folder of a run or one of its snapshots",
        )  # fmt: skip
    check_weights(method, {name: tuple(value.shape) for name, value in tensors.items()}, str(path))
    method.load_state_dict(tensors)
    return hash_of(path)


def without_labels(collection: GraphCollection) -> GraphCollection:
    """The same graphs without labels, so that no method can read them."""
    return collection if collection.labels is None else replace(collection, labels=None, tasks=(), classes={})


def finish(method: TrainedMethod, collection: GraphCollection) -> None:
    """Re-estimate BatchNorm on clean graphs, unless the method keeps its running statistics."""
    if method.batch_norm_embedding != "running":
        reestimate_batchnorm(method, collection)


class SaveEmbeddings(Callback):
    """Stores the embeddings of all graphs after every epoch, or after 0, 1, 2, 5, 10, 20, ... and the end."""

    def __init__(
        self, folder: RunFolder, collection: GraphCollection, identity: str, every: bool = False
    ) -> None:
        self.folder = folder
        self.collection = collection
        self.identity = identity
        self.every = every

    def on_train_start(self, trainer: Trainer) -> None:
        if not trainer.resumed:
            self.on_epoch_end(trainer)

    def on_epoch_end(self, trainer: Trainer) -> None:
        if self.every or _round_number(trainer.epoch) or trainer.is_last_epoch():
            embeddings = embed_clean(trainer.method, self.collection)
            store_embeddings(self.folder, trainer.epoch, embeddings, self.identity)


def embed_clean(method: TrainedMethod, collection: GraphCollection) -> NDArray[np.float32]:
    """Embed as if training ended now; the method is left unchanged."""
    with preserved(method):
        finish(method, collection)
        return embed(method, collection)


def store_embeddings(folder: RunFolder, epoch: int, rows: NDArray[np.float32], identity: str) -> None:
    """Store the embeddings of one epoch with the content hash of their graphs."""
    facts = {"epoch": epoch, "content_hash": identity}
    save_tensors(folder.embedding(epoch), "embeddings", {"rows": torch.from_numpy(rows)}, facts)


def stored_embeddings(folder: RunFolder, epoch: int, identity: str | None = None) -> NDArray[np.float32]:
    """The embeddings that a run stored after one epoch.

    Args:
        folder: The run.
        epoch: Number of epochs.
        identity: Content hash of the graphs; None where they are not at hand.

    Raises:
        DamagedFileError: The file says that it is of another epoch or of other graphs.
    """
    path = folder.embedding(epoch)
    tensors, facts = load_tensors(path, "embeddings")
    if facts.get("epoch") != epoch:
        raise DamagedFileError(
            f"these are the embeddings of epoch {facts.get('epoch')}, not of epoch {epoch}", where=str(path),
            hint="restore the file, or train the run again in another folder",
        )  # fmt: skip
    if identity is not None and facts.get("content_hash") != identity:
        raise DamagedFileError("these are the embeddings of other graphs", where=str(path))
    rows: NDArray[np.float32] = tensors["rows"].numpy()
    return rows


def embed_with(model: Model, collection: object) -> NDArray[np.float32]:
    """Embed any graphs with a trained model, as `Model.embed` does."""
    return model.embed(collection)


def model_of(
    path: str | Path,
    device: str | torch.device = "auto",
    *,
    encoder: nn.Module | None = None,
    method: TrainedMethod | None = None,
) -> Model:
    """Load the model of a run folder, a model file, or a model by name, as `load_model` does."""
    return load_model(find_model(path), device, encoder=encoder, method=method)


def _round_number(epochs: int) -> bool:
    """0, and 1, 2 or 5 times a power of ten."""
    while epochs >= 10 and epochs % 10 == 0:
        epochs //= 10
    return epochs in (0, 1, 2, 5)


def environment(device: str) -> dict[str, object]:
    """Versions, platform and number of threads, on which exact equality of two runs depends."""
    return {
        "graphsc": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": device,
    }
