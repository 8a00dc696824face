"""Evaluation of embeddings: protocol, cross-validation, metrics and significance tests on plain arrays."""
