"""Fine-tuning on labelled molecules: data sets, splits, models, predictions and baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.finetuning.baselines import baseline as baseline
    from graphsc.finetuning.baselines import ecfp as ecfp
    from graphsc.finetuning.dataset import MoleculeDataset as MoleculeDataset
    from graphsc.finetuning.dataset import read_dataset as read_dataset
    from graphsc.finetuning.finetune import FineTuneRun as FineTuneRun
    from graphsc.finetuning.finetune import FineTuneSettings as FineTuneSettings
    from graphsc.finetuning.finetune import finetune as finetune
    from graphsc.finetuning.model import Predictor as Predictor
    from graphsc.finetuning.model import load_predictor as load_predictor
    from graphsc.finetuning.predict import Predicted as Predicted
    from graphsc.finetuning.predict import predict_files as predict_files
    from graphsc.finetuning.predict import predict_table as predict_table
    from graphsc.finetuning.result import TransferResult as TransferResult
    from graphsc.finetuning.splits import split_molecules as split_molecules

__all__ = export_lazily(
    __name__,
    {
        "baselines": "baseline ecfp",
        "dataset": "MoleculeDataset read_dataset",
        "finetune": "FineTuneRun FineTuneSettings finetune",
        "model": "Predictor load_predictor",
        "predict": "Predicted predict_files predict_table",
        "result": "TransferResult",
        "splits": "split_molecules",
    },
)
