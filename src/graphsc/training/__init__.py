"""Training: the loop of every method, callbacks, checkpoints, distribution and model files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.training.callbacks import BarReporter as BarReporter
    from graphsc.training.callbacks import Callback as Callback
    from graphsc.training.callbacks import EarlyStopping as EarlyStopping
    from graphsc.training.callbacks import Metrics as Metrics
    from graphsc.training.callbacks import PlainReporter as PlainReporter
    from graphsc.training.callbacks import Reporter as Reporter
    from graphsc.training.embed_io import embed_files as embed_files
    from graphsc.training.embed_io import embed_source as embed_source
    from graphsc.training.embed_io import write_embeddings as write_embeddings
    from graphsc.training.embedding_files import read_embeddings as read_embeddings
    from graphsc.training.export import PygModule as PygModule
    from graphsc.training.export import read_vectors as read_vectors
    from graphsc.training.export import to_anndata as to_anndata
    from graphsc.training.export import write_vectors as write_vectors
    from graphsc.training.loggers import CsvLog as CsvLog
    from graphsc.training.loggers import Logger as Logger
    from graphsc.training.loggers import MlflowLog as MlflowLog
    from graphsc.training.loggers import TensorBoard as TensorBoard
    from graphsc.training.loggers import WandbLog as WandbLog
    from graphsc.training.loggers import after_step as after_step
    from graphsc.training.loggers import make_loggers as make_loggers
    from graphsc.training.model_io import Model as Model
    from graphsc.training.model_io import available_models as available_models
    from graphsc.training.model_io import load_model as load_model
    from graphsc.training.model_io import save_model as save_model
    from graphsc.training.pretrain import Pretraining as Pretraining
    from graphsc.training.pretrain import pretrain as pretrain
    from graphsc.training.train import Run as Run
    from graphsc.training.train import embed_with as embed_with
    from graphsc.training.train import model_of as model_of
    from graphsc.training.train import stored_embeddings as stored_embeddings
    from graphsc.training.train import train as train
    from graphsc.training.trainer import Trainer as Trainer
    from graphsc.training.trainer import TrainSettings as TrainSettings

__all__ = export_lazily(
    __name__,
    {
        "callbacks": "BarReporter Callback EarlyStopping Metrics PlainReporter Reporter",
        "embed_io": "embed_files embed_source write_embeddings",
        "embedding_files": "read_embeddings",
        "export": "PygModule read_vectors to_anndata write_vectors",
        "loggers": "CsvLog Logger MlflowLog TensorBoard WandbLog after_step make_loggers",
        "model_io": "Model available_models load_model save_model",
        "pretrain": "Pretraining pretrain",
        "train": "Run embed_with model_of stored_embeddings train",
        "trainer": "TrainSettings Trainer",
    },
)
