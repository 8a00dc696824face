"""Loss functions and training diagnostics: pure functions on tensors, independent of graphs."""

from graphsc.core.lazy import export_lazily
from graphsc.losses.barlow_twins import barlow_twins, mean_squared_distance
from graphsc.losses.contrastive import (
    Negatives,
    Positives,
    Search,
    counterfactual_contrast,
    curriculum_contrast,
    graphcl_nt_xent,
    graphcl_nt_xent_floor,
    independence,
    joint_rationale_loss,
    masked_node_contrast,
    ordered_contrast,
    path_contrast,
    queue_contrast,
    search_path,
)
from graphsc.losses.hsic import factor_dependence, hsic
from graphsc.losses.info_nce import (
    Pairs,
    contrast,
    debiased_info_nce,
    graph_graph,
    hard_negative_info_nce,
    info_nce,
    node_graph,
    node_node,
    nt_xent,
    supervised_contrastive,
)
from graphsc.losses.monitoring import (
    alignment,
    effective_rank,
    mean_cosine,
    retrieval_accuracy,
    triplet_accuracy,
    uniformity,
)
from graphsc.losses.mutual_information import jensen_shannon, pair_bce, roc_auc
from graphsc.losses.nodes import margin_ranking, node_contrast
from graphsc.losses.non_contrastive import byol_cosine, vicreg
from graphsc.losses.reconstruction import gaussian_kl, one_hot_mse, rmse, scaled_cosine_error
from graphsc.losses.supervised import masked_bce, masked_mse
from graphsc.losses.triplet import (
    active_triplet_fraction,
    factor_weights,
    mask_factors,
    masked_first_layer,
    masked_triplet,
    normalise_embeddings,
    split_factors,
    triplet,
)

__all__ = [
    "Negatives",
    "Pairs",
    "Positives",
    "Search",
    "active_triplet_fraction",
    "alignment",
    "barlow_twins",
    "byol_cosine",
    "contrast",
    "counterfactual_contrast",
    "curriculum_contrast",
    "debiased_info_nce",
    "effective_rank",
    "factor_dependence",
    "factor_weights",
    "gaussian_kl",
    "graph_graph",
    "graphcl_nt_xent",
    "graphcl_nt_xent_floor",
    "hard_negative_info_nce",
    "hsic",
    "independence",
    "info_nce",
    "jensen_shannon",
    "joint_rationale_loss",
    "margin_ranking",
    "mask_factors",
    "masked_bce",
    "masked_first_layer",
    "masked_mse",
    "masked_node_contrast",
    "masked_triplet",
    "mean_cosine",
    "mean_squared_distance",
    "node_contrast",
    "node_graph",
    "node_node",
    "normalise_embeddings",
    "nt_xent",
    "one_hot_mse",
    "ordered_contrast",
    "pair_bce",
    "path_contrast",
    "queue_contrast",
    "retrieval_accuracy",
    "rmse",
    "roc_auc",
    "scaled_cosine_error",
    "search_path",
    "split_factors",
    "supervised_contrastive",
    "triplet",
    "triplet_accuracy",
    "uniformity",
    "vicreg",
]

export_lazily(__name__, {})  # so that `dir` lists these names and no others
