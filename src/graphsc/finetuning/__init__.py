"""Fine-tuning on labelled molecules: data sets, splits, models, predictions and baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.finetuning.baselines import baseline as baseline
    from graphsc.finetuning.baselines import ecfp as ecfp
    from graphsc.finetuning.dataset import MoleculeDataset as MoleculeDataset
    from graphsc.finetuning.dataset import read_dataset as read_dataset
    from graphsc.finetuning.ensemble import Ensemble as Ensemble
    from graphsc.finetuning.ensemble import load_ensemble as load_ensemble
    from graphsc.finetuning.explain import Explanation as Explanation
    from graphsc.finetuning.explain import explain as explain
    from graphsc.finetuning.features import descriptors as descriptors
    from graphsc.finetuning.finetune import FineTuneRun as FineTuneRun
    from graphsc.finetuning.finetune import FineTuneSettings as FineTuneSettings
    from graphsc.finetuning.finetune import finetune as finetune
    from graphsc.finetuning.model import Predictor as Predictor
    from graphsc.finetuning.model import load_predictor as load_predictor
    from graphsc.finetuning.predict import Predicted as Predicted
    from graphsc.finetuning.predict import predict_files as predict_files
    from graphsc.finetuning.predict import predict_table as predict_table
    from graphsc.finetuning.property_model import PropertyModel as PropertyModel
    from graphsc.finetuning.property_model import load_property_model as load_property_model
    from graphsc.finetuning.result import TransferResult as TransferResult
    from graphsc.finetuning.splits import split_molecules as split_molecules

__all__ = export_lazily(
    __name__,
    {
        "baselines": "baseline ecfp",
        "dataset": "MoleculeDataset read_dataset",
        "ensemble": "Ensemble load_ensemble",
        "explain": "Explanation explain",
        "features": "descriptors",
        "finetune": "FineTuneRun FineTuneSettings finetune",
        "model": "Predictor load_predictor",
        "predict": "Predicted predict_files predict_table",
        "property_model": "PropertyModel load_property_model",
        "result": "TransferResult",
        "splits": "split_molecules",
    },
)
