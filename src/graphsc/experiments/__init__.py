"""Methods through training and evaluation, results that are kept, and tables made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.experiments.comparison import Comparison as Comparison
    from graphsc.experiments.comparison import compare as compare
    from graphsc.experiments.comparison import compare_results as compare_results
    from graphsc.experiments.comparison import write_comparison as write_comparison
    from graphsc.experiments.explore import embeddings_of as embeddings_of
    from graphsc.experiments.explore import explore as explore
    from graphsc.experiments.explore import far_from_all as far_from_all
    from graphsc.experiments.result import Result as Result
    from graphsc.experiments.result import ResultStore as ResultStore
    from graphsc.experiments.run_evaluation import RunEvaluation as RunEvaluation
    from graphsc.experiments.run_evaluation import evaluate_run as evaluate_run
    from graphsc.experiments.runner import run_trials as run_trials
    from graphsc.experiments.similarity import cluster_graphs as cluster_graphs
    from graphsc.experiments.similarity import find_outliers as find_outliers
    from graphsc.experiments.similarity import find_similar as find_similar
    from graphsc.experiments.similarity import search_library as search_library
    from graphsc.experiments.sweep import Sweep as Sweep
    from graphsc.experiments.trial import ProbeTrial as ProbeTrial
    from graphsc.experiments.trial import TransferTrial as TransferTrial

__all__ = export_lazily(
    __name__,
    {
        "comparison": "Comparison compare compare_results write_comparison",
        "explore": "embeddings_of explore far_from_all",
        "result": "Result ResultStore",
        "run_evaluation": "RunEvaluation evaluate_run",
        "runner": "run_trials",
        "similarity": "cluster_graphs find_outliers find_similar search_library",
        "sweep": "Sweep",
        "trial": "ProbeTrial TransferTrial",
    },
)
