"""`GraphEmbedder`: a scikit-learn transformer from graphs to embeddings."""

from __future__ import annotations

import copy
import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from graphsc.core.errors import ConfigError, DataError, GraphscWarning
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection

if TYPE_CHECKING:
    import torch
    from torch import nn

    from graphsc.methods import TrainedMethod
    from graphsc.training.callbacks import Callback
    from graphsc.training.train import Run
    from graphsc.training.trainer import TrainSettings

OnInvalid = Literal["raise", "nan", "drop"]


class GraphEmbedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn one embedding per graph from unlabelled graphs.

    `X` is a collection, a list of SMILES strings, PyG or NetworkX graphs, or anything else that
    `graphsc.open_collection` takes. Labels, whether passed as `y` or part of the graphs, are never read.

    Args:
        method: a name that `graphsc methods` lists, or a `TrainedMethod` with its own encoder.
        encoder: the encoder's name, or a module: one from batches to rows with an attribute `dimensions`, or
            a PyG module that takes `x` and `edge_index`. None is `gine`, which uses bonds, for molecules from
            SMILES and `gin` for other graphs. Like a method that is an object, a module is copied: `fit`
            trains the copy and leaves the parameter as it is.
        features: node features: "auto", "labels", "degree[:CAP]", "constant", "attributes", joined by "+".
        epochs: of training; like `batch_size` and `learning_rate` ignored by methods that do not train.
        batch_size: graphs per step.
        learning_rate: None takes the method's own.
        preset: "default" or a preset of the method, such as "paper_literal".
        settings: further keywords of the method, and of the encoder as "encoder.KEY".
        training: further settings of the loop, such as {"schedule": "cosine", "clip": 1.0}, or a
            `TrainSettings`. They win over `epochs`, `batch_size` and `learning_rate`; the seed is
            `random_state`.
        callbacks: of the training loop.
        out: a run folder, in which `fit` can be resumed; None writes nothing.
        device: "auto", "cpu", "cuda", "cuda:NUMBER", "mps", or a device of torch.
        devices: processes that share every batch, started by a script.
        random_state: an integer, a RandomState, or None for a random seed.
        on_invalid: an input that is no molecule gets a row of NaN ("nan"), has no row ("drop"), or raises an
            error ("raise"). With the first two, a warning says how many there are. None is trained on.
        verbose: 0 prints nothing. 1 shows a progress bar on a terminal or in a notebook, and a line per epoch
            elsewhere. 2 prints a line per epoch everywhere.

    Attributes:
        model_: the trained model.
        metrics_: one dictionary per epoch.
        n_features_out_: the length of an embedding.
    """

    def __init__(
        self,
        method: str | TrainedMethod = "graphsc",
        *,
        encoder: str | nn.Module | None = None,
        features: str = "auto",
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        training: Mapping[str, object] | TrainSettings | None = None,
        callbacks: Sequence[Callback] | None = None,
        out: str | os.PathLike[str] | None = None,
        device: str | torch.device = "auto",
        devices: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        on_invalid: OnInvalid = "nan",
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.features = features
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.preset = preset
        self.settings = settings
        self.training = training
        self.callbacks = callbacks
        self.out = out
        self.device = device
        self.devices = devices
        self.random_state = random_state
        self.on_invalid = on_invalid
        self.verbose = verbose

    def fit(self, X: object, y: object = None) -> GraphEmbedder:  # noqa: N803 - scikit-learn's name
        """Train on the graphs; `y` is ignored."""
        collection = open_collection(X, features=self.features)
        _report_invalid(X, collection, self.on_invalid)
        self._fit(collection)
        return self

    def _fit(self, collection: GraphCollection) -> Run:
        from graphsc.training.callbacks import PlainReporter, Reporter, reporter_for_terminal
        from graphsc.training.train import train

        for name in ("model_", "metrics_", "n_features_out_"):
            self.__dict__.pop(name, None)  # if training fails, no model of other settings is left
        reporter = Reporter()
        if self.verbose:
            reporter = reporter_for_terminal() if self.verbose < 2 else PlainReporter()
        # An object is where training starts. scikit-learn wants parameters to stay as they are.
        run = train(
            collection,
            self.method if isinstance(self.method, str) else copy.deepcopy(self.method),
            settings=self.settings,
            preset=self.preset,
            encoder=copy.deepcopy(self._encoder(collection)),
            training=self._loop(),
            callbacks=self.callbacks or (),
            out=None if self.out is None else os.fspath(self.out),
            device=self.device,
            devices=self.devices,
            reporter=reporter,
        )
        self.model_ = run.model
        self.metrics_ = run.metrics.rows
        self.n_features_out_ = run.model.dimensions
        return run

    def _encoder(self, collection: GraphCollection) -> str | nn.Module:
        from graphsc.methods.registry import ENCODER, default_encoder

        if self.encoder is None:  # a method that is an object has its own
            return default_encoder(self.method, collection) if isinstance(self.method, str) else ENCODER
        return self.encoder

    def _loop(self) -> dict[str, object]:
        """Settings of the loop that differ from those of the method and preset."""
        from graphsc.training.trainer import TrainSettings

        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        loop: dict[str, object] = {"epochs": self.epochs, "batch_size": self.batch_size}
        if self.learning_rate is not None:
            loop["learning_rate"] = self.learning_rate
        if isinstance(self.training, TrainSettings):
            loop = dataclasses.asdict(self.training)
        elif self.training is not None:
            if "seed" in self.training:
                raise ConfigError("the seed of training is random_state", hint="leave seed out of training")
            loop |= self.training
        return {**loop, "seed": int(seed)}

    def fit_transform(self, X: object, y: object = None) -> NDArray[np.float32]:  # noqa: N803
        """Train on the graphs and embed them; document methods return the rows of their fit."""
        collection = open_collection(X, features=self.features)
        _report_invalid(X, collection, self.on_invalid)
        rows = self._fit(collection).rows
        rows = self.transform(collection) if rows is None else rows
        return _for_every_input(X, collection, rows, self.on_invalid)

    def transform(self, X: object, *, on_invalid: OnInvalid | None = None) -> NDArray[np.float32]:  # noqa: N803
        """One embedding per graph, for any graphs whose features the model knows.

        Args:
            X: Graphs, as for `fit`.
            on_invalid: "raise", "nan" or "drop"; by default that of the embedder.

        Returns:
            One row per input, or per molecule with "drop".
        """
        from graphsc.training.train import embed_with

        check_is_fitted(self, "model_")
        rule = self.on_invalid if on_invalid is None else on_invalid
        collection = open_collection(X)
        _report_invalid(X, collection, rule)
        return _for_every_input(X, collection, embed_with(self.model_, collection), rule)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """`graphsc0`, `graphsc1`, ..."""
        check_is_fitted(self, "model_")
        name = self.method if isinstance(self.method, str) else type(self.method).__name__.lower()
        prefix = name.replace("-", "_")
        return np.array([f"{prefix}{index}" for index in range(self.n_features_out_)], dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one safetensors file.

        The file holds weights, not code: a model with a method or an encoder that is an object is loaded with
        another such object.
        """
        from graphsc.training.model_io import save_model

        check_is_fitted(self, "model_")
        save_model(path, self.model_.method, self.model_.recipe, self.model_.features)

    @classmethod
    def from_pretrained(
        cls, model: str | os.PathLike[str], device: str | torch.device = "auto"
    ) -> GraphEmbedder:
        """A fitted embedder from a model by name (`graphsc models` lists them) or a path."""
        return cls.load(model, device)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        device: str | torch.device = "auto",
        *,
        encoder: nn.Module | None = None,
        method: TrainedMethod | None = None,
    ) -> GraphEmbedder:
        """A fitted embedder from a saved model, a run folder or a model by name.

        Args:
            path: The model.
            device: As of the embedder: where it embeds and, after another `fit`, trains.
            encoder: for a model whose encoder is an object: another such object; a copy gets the weights.
            method: likewise for a method that is an object.
        """
        from graphsc.training.train import model_of

        model = model_of(
            os.fspath(path), device, encoder=copy.deepcopy(encoder), method=copy.deepcopy(method)
        )
        # With the model's settings a new fit trains the same method; its number of epochs is not stored.
        settings = {**model.recipe.settings}
        settings |= {f"encoder.{key}": value for key, value in model.recipe.encoder_settings.items()}
        embedder = cls(
            method or model.recipe.method,
            encoder=None if method is not None else encoder or model.recipe.encoder,
            features=model.features.name,
            settings=settings or None,
            device=device,
        )
        embedder.model_ = model
        embedder.metrics_ = []
        embedder.n_features_out_ = model.dimensions
        return embedder

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = False
        tags.target_tags.required = False
        tags.no_validation = True
        return tags


def _report_invalid(inputs: object, collection: GraphCollection, rule: OnInvalid) -> None:
    """Warn of inputs that are no molecule, or refuse them."""
    if rule not in ("raise", "nan", "drop"):
        raise ConfigError(f"on_invalid is {rule!r}", hint="use raise, nan or drop")
    if isinstance(inputs, GraphCollection) or not collection.rejected:
        return
    first, count = collection.rejected[0], len(collection.rejected)
    what = f"{count:,} of {count + len(collection):,} inputs are no molecule, the first at {first.row}"
    if rule == "raise":
        raise DataError(f"{what}: {first.reason}", hint="correct them, or use on_invalid nan or drop")
    row = "a row of NaN" if rule == "nan" else "no row"
    warnings.warn(f"{what}: {first.reason}; each has {row}", GraphscWarning, stacklevel=3)


def _for_every_input(
    inputs: object, collection: GraphCollection, rows: NDArray[np.float32], rule: OnInvalid
) -> NDArray[np.float32]:
    """Rows for all inputs, NaN for those that are no molecule, unless they are dropped."""
    if rule == "drop" or isinstance(inputs, GraphCollection) or not collection.rejected:
        return rows
    from graphsc.data.molecules.rejected import insert_rejected_rows

    return insert_rejected_rows(rows, collection.ids, collection.rejected)[0].astype(np.float32, copy=False)
