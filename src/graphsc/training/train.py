"""From a collection and a method's name to a trained model, in a folder that can be gone on with."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.config import build
from graphsc.core.run_folder import RunFolder
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.rejected import write_rejected
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.methods import METHODS, FittedMethod, Recipe, TrainedMethod, make_recipe, training_settings
from graphsc.methods.registry import ENCODER
from graphsc.training.callbacks import Metrics, Reporter
from graphsc.training.distributed import Ranks, make_fabric, pick_device
from graphsc.training.model_io import Model, find_model, load_model, save_model
from graphsc.training.trainer import EpochHook, Trainer, TrainSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Run:
    """A finished training."""

    model: Model
    metrics: Metrics
    folder: RunFolder | None
    config: dict[str, object]
    rows: NDArray[np.float32] | None = None  # of the training graphs, where learning itself gave them


def train(
    collection: GraphCollection,
    method: str = "graphsc",
    *,
    settings: Mapping[str, object] | None = None,
    preset: str = "default",
    encoder: str = ENCODER,
    training: TrainSettings | None = None,
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    out: str | Path | None = None,
    source: str | None = None,
    hooks: Sequence[EpochHook] = (),
    reporter: Reporter | None = None,
    keep_embeddings: bool = True,
) -> Run:
    """Train a method by name; with `out`, the same call again goes on or finds the run finished.

    `settings` are the method's keywords, `encoder.KEY` the encoder's. Without `training`, the loop's are the
    preset's. Labels are never read. `devices` on each of `nodes` machines share every batch; all of them must
    see the folder `out`, and only the first writes to it. `keep_embeddings` stores the vectors of all graphs
    after some epochs; leave it out for millions of graphs.
    """
    if training is None:
        training = build(TrainSettings, training_settings(method, preset, collection.name), "training")
    entry = METHODS.get(method)
    chosen = pick_device(device)
    fabric = make_fabric(chosen, training.precision, devices, nodes) if entry.kind == "trained" else None
    ranks = Ranks.here()
    reporter = reporter if reporter is not None and ranks.first else Reporter()
    identity = collection.content_hash  # of the graphs as given, labels included
    collection = without_labels(collection)
    recipe = make_recipe(method, collection, settings, preset=preset, encoder=encoder)
    config: dict[str, object] = {
        "graphsc": __version__,
        "data": {"name": collection.name, "graphs": len(collection), "content_hash": identity,
                 "features": collection.features.name},
        **recipe.to_json(),
        "training": {key: value for key, value in training.to_json().items() if key != "epochs"},
        "epochs": training.epochs,
        "device": chosen,
        "source": source,
    }  # fmt: skip
    if ranks.size > 1:
        config["ranks"] = ranks.size  # draws depend on it
    built = recipe.build(collection.features, training.seed)
    reporter.say(f"{method} on {collection.name}: {len(collection)} graphs, device {chosen}")
    job = _Job(collection, identity, recipe, training, fabric, reporter, hooks, keep_embeddings)
    if out is None:
        metrics, rows = job.learn(built, None)
        return Run(Model(built, recipe, collection.features), metrics, None, config, rows)
    folder = RunFolder(out)
    with folder.lock() if ranks.first else nullcontext():
        if ranks.first:
            folder.save_config(config)
            folder.record_environment(environment(chosen))
            if collection.rejected:
                write_rejected(folder.path / "rejected.csv", collection.rejected)
        ranks.wait()
        if isinstance(built, FittedMethod) and folder.model.exists():
            # Fitted in one go: either it is all there or nothing is.
            reporter.say("this run is finished")
            return Run(load_model(folder.model), Metrics(None), folder, config)
        metrics, rows = job.learn(built, folder)
        if ranks.first:
            save_model(folder.model, built, recipe, collection.features)
        ranks.wait()
    return Run(Model(built, recipe, collection.features), metrics, folder, config, rows)


Learned = tuple[Metrics, NDArray[np.float32] | None]


@dataclass(frozen=True)
class _Job:
    """One learning, by whichever way the method learns."""

    collection: GraphCollection
    identity: str
    recipe: Recipe
    training: TrainSettings
    fabric: Fabric | None  # None for a method that is not `trained`
    reporter: Reporter
    hooks: Sequence[EpochHook]
    keep_embeddings: bool

    def learn(self, method: TrainedMethod | FittedMethod, folder: RunFolder | None) -> Learned:
        if isinstance(method, FittedMethod):
            rows = method.fit(self.collection, self.training.seed)
            # A Gram matrix can be had again from the model and grows with the square of the graphs.
            if folder is not None and METHODS.get(self.recipe.method).kind == "fitted":
                store_embeddings(folder, 0, rows, self.identity)
            return Metrics(None), rows
        assert self.fabric is not None  # noqa: S101 - trained methods have one
        hooks = list(self.hooks)
        if folder is not None and self.keep_embeddings:
            last = self.training.epochs if method.trains else 0
            hooks.insert(0, KeepEmbeddings(folder, self.collection, self.identity, last))
        metrics = Trainer(
            method,
            self.collection,
            self.training,
            self.fabric,
            self.recipe.method,
            None if folder is None else folder.checkpoints,
            None if folder is None else folder.metrics,
            self.reporter,
            hooks,
        ).run()
        finish(method, self.collection)
        method.eval()
        return metrics, None


def without_labels(collection: GraphCollection) -> GraphCollection:
    """The same graphs with no label in reach, so that no method can look."""
    from dataclasses import replace

    return collection if collection.labels is None else replace(collection, labels=None, tasks=(), classes={})


def finish(method: TrainedMethod, collection: GraphCollection) -> None:
    """Make a method ready to embed: BatchNorm as of clean graphs, unless it keeps the running one."""
    if method.bn == "reestimate":
        reestimate_batchnorm(method, collection)


class KeepEmbeddings:
    """Epoch hook: store embeddings of epochs 0, 1, 2, 5, 10, 20, 50, ... and the last."""

    def __init__(self, folder: RunFolder, collection: GraphCollection, identity: str, last: int) -> None:
        self.folder = folder
        self.collection = collection
        self.identity = identity
        self.last = last

    def __call__(self, epochs: int, method: TrainedMethod) -> None:
        if epochs != self.last and not _round_number(epochs):
            return
        store_embeddings(self.folder, epochs, embed_clean(method, self.collection), self.identity)


def embed_clean(method: TrainedMethod, collection: GraphCollection) -> NDArray[np.float32]:
    """Embeddings as they would be if training ended now; the method is left as it was."""
    buffers = {name: value.clone() for name, value in method.named_buffers()}
    finish(method, collection)
    rows = embed(method, collection)
    for name, value in method.named_buffers():
        value.copy_(buffers[name])
    return rows


def store_embeddings(folder: RunFolder, epoch: int, rows: NDArray[np.float32], identity: str) -> None:
    """Keep the embeddings of one epoch, with the hash of the graphs they are of."""
    facts = {"epoch": epoch, "content_hash": identity}
    save_tensors(folder.embedding(epoch), "embeddings", {"rows": torch.from_numpy(rows)}, facts)


def stored_embeddings(folder: RunFolder, epoch: int) -> NDArray[np.float32]:
    """The embeddings kept for one epoch."""
    tensors, _ = load_tensors(folder.embedding(epoch), "embeddings")
    rows: NDArray[np.float32] = tensors["rows"].numpy()
    return rows


def embed_with(model: Model, collection: GraphCollection) -> NDArray[np.float32]:
    """Embed any graphs with a trained model; features are matched by meaning."""
    return model.embed(collection)


def model_of(path: str | Path) -> Model:
    """The model of a run folder, a model file itself, or a model by name."""
    return load_model(find_model(path))


def hash_of_model(path: str | Path) -> str:
    """What tells two model files apart."""
    return hashlib.sha256(find_model(path).read_bytes()).hexdigest()


def _round_number(epochs: int) -> bool:
    """0, and 1, 2 or 5 times a power of ten."""
    while epochs >= 10 and epochs % 10 == 0:
        epochs //= 10
    return epochs in (0, 1, 2, 5)


def environment(device: str) -> dict[str, object]:
    """Versions and threads, without which two runs cannot be told to be equal."""
    return {
        "graphsc": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "device": device,
    }
