"""Fine-tuning on labelled molecules: data sets, splits, models, predictions and baselines."""
