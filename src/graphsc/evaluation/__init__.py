"""Evaluation of embeddings: protocol, cross-validation, metrics and significance tests on plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.evaluation.clustering import clustering_quality as clustering_quality
    from graphsc.evaluation.cross_validation import Evaluation as Evaluation
    from graphsc.evaluation.cross_validation import evaluate as evaluate
    from graphsc.evaluation.cross_validation import few_labels as few_labels
    from graphsc.evaluation.metrics import average_precision as average_precision
    from graphsc.evaluation.metrics import mae as mae
    from graphsc.evaluation.metrics import rmse as rmse
    from graphsc.evaluation.metrics import roc_auc as roc_auc
    from graphsc.evaluation.neighbours import nearest as nearest
    from graphsc.evaluation.neighbours import nearest_to as nearest_to
    from graphsc.evaluation.protocol import Protocol as Protocol
    from graphsc.evaluation.significance import average_ranks as average_ranks
    from graphsc.evaluation.significance import corrected_t_test as corrected_t_test
    from graphsc.evaluation.significance import critical_difference as critical_difference
    from graphsc.evaluation.significance import holm as holm
    from graphsc.evaluation.significance import wilcoxon as wilcoxon

__all__ = export_lazily(
    __name__,
    {
        "clustering": "clustering_quality",
        "cross_validation": "Evaluation evaluate few_labels",
        "metrics": "average_precision mae rmse roc_auc",
        "neighbours": "nearest nearest_to",
        "protocol": "Protocol",
        "significance": "average_ranks corrected_t_test critical_difference holm wilcoxon",
    },
)
