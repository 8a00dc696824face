"""`GraphEmbedder`: a scikit-learn transformer from graphs to embeddings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
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
    from graphsc.training.train import Run

OnInvalid = Literal["raise", "nan", "drop"]


class GraphEmbedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn one embedding per graph from unlabelled graphs.

    `X` is a collection, a list of SMILES strings, PyG or NetworkX graphs, or anything else that
    `graphsc.open_collection` takes. Labels, whether passed as `y` or part of the graphs, are never read.

    Args:
        method: a name that `graphsc methods` lists.
        features: node features: "auto", "labels", "degree[:CAP]", "constant", "attributes", joined by "+".
        epochs: of training; like `batch_size` and `learning_rate` ignored by methods that do not train.
        batch_size: graphs per step.
        learning_rate: None takes the method's own.
        preset: "default" or a preset of the method, such as "paper_literal".
        settings: further keywords of the method, and of the encoder as "encoder.KEY".
        device: "auto", "cpu", "cuda" or "mps".
        random_state: an integer, a RandomState, or None for a random seed.
        on_invalid: an input that is no molecule gets a row of NaN ("nan"), has no row ("drop"), or raises an
            error ("raise"). With the first two, a warning says how many there are. None is trained on.
        verbose: print a line per epoch.

    Attributes:
        model_: the trained model.
        metrics_: one dictionary per epoch.
        n_features_out_: the length of an embedding.
    """

    def __init__(
        self,
        method: str = "graphsc",
        *,
        features: str = "auto",
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float | None = None,
        preset: str = "default",
        settings: Mapping[str, object] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        on_invalid: OnInvalid = "nan",
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.features = features
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.preset = preset
        self.settings = settings
        self.device = device
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
        from graphsc.core.config import build
        from graphsc.methods import training_settings
        from graphsc.methods.registry import kind_of
        from graphsc.training.callbacks import PlainReporter, Reporter
        from graphsc.training.train import train
        from graphsc.training.trainer import TrainSettings

        for name in ("model_", "metrics_", "n_features_out_"):
            self.__dict__.pop(name, None)  # if training fails, no model of other settings is left
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        loop = training_settings(self.method, self.preset, collection.name, kind_of(collection))
        loop |= {"epochs": self.epochs, "batch_size": self.batch_size, "seed": int(seed)}
        if self.learning_rate is not None:
            loop["learning_rate"] = self.learning_rate
        run = train(
            collection,
            self.method,
            settings=self.settings,
            preset=self.preset,
            training=build(TrainSettings, loop, "training"),
            device=self.device,
            reporter=PlainReporter() if self.verbose else Reporter(),
        )
        self.model_ = run.model
        self.metrics_ = run.metrics.rows
        self.n_features_out_ = run.model.dimensions
        return run

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
        prefix = self.method.replace("-", "_")
        return np.array([f"{prefix}{index}" for index in range(self.n_features_out_)], dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one safetensors file."""
        from graphsc.training.model_io import save_model

        check_is_fitted(self, "model_")
        save_model(path, self.model_.method, self.model_.recipe, self.model_.features)

    @classmethod
    def from_pretrained(cls, model: str | os.PathLike[str]) -> GraphEmbedder:
        """A fitted embedder from a model by name (`graphsc models` lists them) or a path."""
        return cls.load(model)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraphEmbedder:
        """A fitted embedder from a saved model, a run folder or a model by name."""
        from graphsc.training.train import model_of

        model = model_of(os.fspath(path))
        # With the model's settings a new fit trains the same method; its number of epochs is not stored.
        settings = {**model.recipe.settings}
        settings |= {f"encoder.{key}": value for key, value in model.recipe.encoder_settings.items()}
        embedder = cls(model.recipe.method, features=model.features.name, settings=settings)
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
